// SPDX-License-Identifier: Apache-2.0
// Runs a small program of ours that the driver may block, and waits for its answer up to a limit. A
// process that the kernel cannot end (a wedged driver holds it in an uninterruptible call) is left
// behind, not waited for.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "seam/clock.h"

namespace mete::node {

struct ChildRequest {
  std::string program;                   // path
  std::vector<std::string> arguments;    // without the program's own name
  std::vector<std::string> environment;  // NAME=value, all of it
  seam::Milliseconds timeout{10000};
};

struct ChildAnswer {
  std::string output;  // stdout, at most 64 KiB
  std::string errors;  // stderr, likewise
  int exit_code = 0;   // 128+N for a signal
};

// busy: it did not end in time and was killed. io, not_found, denied: it could not be started.
Result<ChildAnswer> run_child(const ChildRequest& request, seam::Clock& clock);

}  // namespace mete::node
