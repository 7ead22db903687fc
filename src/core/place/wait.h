// SPDX-License-Identifier: Apache-2.0
// What to tell a job that must wait: for what, why not on each card, and whose end would help.
// Inside of core/place; called only when there is no room.
#pragma once

#include "core/place/need.h"

namespace mete::core {

Wait wait_for(const Pool& pool, const Needs& needs);

}  // namespace mete::core
