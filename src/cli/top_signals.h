// SPDX-License-Identifier: Apache-2.0
// Signals to processes that were seen on a screen: only one's own, and never to another process
// that has got the same number meanwhile.
#pragma once

#include "base/result.h"
#include "top/view.h"

namespace mete::cli {

// When somebody asks for it: the processes are there, ours, and the ones that were shown; those
// whose start was not known are known by it from now on. denied, not_found: nothing to ask about.
Result<void> aim(top::Deed& deed);

// After the yes: how many got it. A process that has ended meanwhile is no error.
Result<std::size_t> send_signals(const top::Deed& deed);

}  // namespace mete::cli
