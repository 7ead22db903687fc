// SPDX-License-Identifier: Apache-2.0
// net::Loop behind the interface that node and launch use.
#pragma once

#include <functional>
#include <string>

#include "net/loop.h"
#include "seam/loop.h"

namespace mete::daemon {

// `loop` must outlive the result and every copy of it.
seam::Loop seam_loop(net::Loop& loop, std::function<void(const std::string&)> log);

}  // namespace mete::daemon
