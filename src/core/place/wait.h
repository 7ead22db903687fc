// SPDX-License-Identifier: Apache-2.0
// What to tell a job that must wait: for what, why not on each card, and whose end would help.
// Inside of core/place; called only when there is no room.
#pragma once

#include <string>

#include "core/place/need.h"
#include "core/place/room.h"

namespace mete::core {

// What is in the way on one card; "": nothing.
std::string why_not(const PoolCard& card, const Need& need, const Room& room);

Wait wait_for(const Pool& pool, const Needs& needs);

}  // namespace mete::core
