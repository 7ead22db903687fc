// SPDX-License-Identifier: Apache-2.0
// `meted --repair`, which `mete daemon repair` runs: saves what is whole of a damaged store
// (store/repair.h) and says what is lost.
#pragma once

#include <string>

namespace mete::daemon {

// To stdout, as lines or as one document; errors to stderr. Returns the exit code.
int run_repair(const std::string& state_dir, bool json);

}  // namespace mete::daemon
