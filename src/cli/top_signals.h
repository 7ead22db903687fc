// SPDX-License-Identifier: Apache-2.0
// Signals to processes that are shown on the screen: only to processes of this user, and never to
// another process that has got the same number since.
#pragma once

#include "base/result.h"
#include "top/view.h"

namespace mete::cli {

// Before the confirmation: checks that the processes exist, belong to this user and are the ones
// that were shown; fills in start times that were not known. denied, not_found: there is nothing to
// confirm.
Result<void> aim(top::Deed& deed);

// After the confirmation: how many processes got the signal. One that has ended is no error.
Result<std::size_t> send_signals(const top::Deed& deed);

}  // namespace mete::cli
