// SPDX-License-Identifier: Apache-2.0
// The folder of our state: $METE_STATE_DIR, else $XDG_STATE_HOME/mete, else ~/.local/state/mete.
// Only its owner may enter. Reads the environment; touches the disk only in make_grants_dir.
#pragma once

#include <string>

#include "base/result.h"

namespace mete::launch {

// An absolute path. invalid when none of the three is set or the one that is set is relative.
Result<std::string> state_dir();

// STATE/grants, made with its parents (0700) when missing. An existing one must belong to us only:
// grant files decide what a job may hold. Every failure has code io and a hint: the caller cannot
// go on without it.
Result<std::string> make_grants_dir(const std::string& state);

}  // namespace mete::launch
