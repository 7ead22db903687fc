// SPDX-License-Identifier: Apache-2.0
// net::Loop, as node and launch see it.
#pragma once

#include <functional>
#include <string>

#include "net/loop.h"
#include "seam/loop.h"

namespace mete::daemon {

// The loop outlives what is returned, and every copy of it.
seam::Loop seam_loop(net::Loop& loop, std::function<void(const std::string&)> log);

}  // namespace mete::daemon
