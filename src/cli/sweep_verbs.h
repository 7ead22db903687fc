// SPDX-License-Identifier: Apache-2.0
// The parts of `mete sweep`, each a function as a verb has: sweep_start.cc, sweep_report.cc and
// sweep_change.cc. `words` are those after the subverb.
#pragma once

#include <string_view>

#include "cli/options.h"
#include "cli/output.h"

namespace mete::cli {

// mete sweep [options] -- COMMAND, and its --dry-run.
int start_sweep(const Parsed& parsed, const Output& output);

// sweep_report.cc
int show_sweep(const Parsed& words, const Output& output);
// `csv`: -o csv.
int report_sweep(const Parsed& words, bool csv, const Output& output);
int best_of_sweep(const Parsed& words, const Output& output);
int logs_of_sweep(const Parsed& words, const Output& output);

// sweep_change.cc
int list_sweeps(const Parsed& words, const Output& output);
// "pause", "resume", "stop", "rm".
int change_sweeps(std::string_view subverb, const Parsed& words, const Output& output);
int extend_sweep(const Parsed& words, const Output& output);

}  // namespace mete::cli
