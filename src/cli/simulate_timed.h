// SPDX-License-Identifier: Apache-2.0
// `mete simulate --timed` and `--history`: jobs with times through the queue, on the user's own
// cards or on a cluster.
#pragma once

#include "cli/options.h"
#include "cli/output.h"

namespace mete::cli {

int simulate_timed(const Parsed& parsed, const Output& output);
int simulate_history(const Parsed& parsed, const Output& output);

}  // namespace mete::cli
