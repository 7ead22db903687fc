// SPDX-License-Identifier: Apache-2.0
// --dry-run of `mete run` and `mete submit`: what would happen to a job that is not made.
#pragma once

#include <string>

#include "cli/output.h"
#include "runner/daemon_client.h"

namespace mete::cli {

// Asks the daemon about the job of this request (the body of POST /v1/jobs), and prints the cards
// on which it would start, or why and how long it would wait; with JSON the document
// mete.dry-run/1. `label` comes before the text. Returns the exit code: 0 if the job would start or
// wait.
int print_dry_run(runner::DaemonClient& client, const std::string& request,
                  const std::string& label, const Output& output);

}  // namespace mete::cli
