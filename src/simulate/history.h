// SPDX-License-Identifier: Apache-2.0
// The daemon's past, as a trace: the document of `mete ps -a -o json` in, jobs with times and their
// real waits out. Jobs that never started, and jobs that ran more than once (their waits are not in
// the document), are left out and counted.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "simulate/timed.h"

namespace mete::simulate {

struct History {
  std::vector<TimedJob> jobs;
  Waits recorded;
  std::size_t left_out = 0;
};

// corrupt: not such a document.
Result<History> parse_history(std::string_view json);

}  // namespace mete::simulate
