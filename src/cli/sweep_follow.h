// SPDX-License-Identifier: Apache-2.0
// Follows a sweep until it is over: on a terminal one line that is kept up to date, elsewhere a
// line for each new best result. The sweep belongs to the daemon: Ctrl-C ends the following only.
#pragma once

#include <functional>
#include <string>

#include "cli/output.h"
#include "cli/sweep_client.h"
#include "runner/daemon_client.h"

namespace mete::cli {

// At the end: the table of the best trials on stdout, or the document with JSON. Returns 0 if the
// sweep has done what it was asked for, 1 if a trial has failed, 143 if it was stopped, 128+N after
// signal N. `csv`: a file for the results, "": none.
// Whether --csv can be written, before anything starts. An existing file is left as it is.
Result<void> check_csv(const std::string& path);
int follow_sweep(runner::DaemonClient client, const SweepRef& ref, const std::string& csv,
                 const Output& output);

}  // namespace mete::cli
