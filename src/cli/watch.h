// SPDX-License-Identifier: Apache-2.0
// `--watch`: repeats the output of a verb. On a terminal each block replaces the one before; in a
// pipe they follow one another; as JSON each is one line. Ends with Ctrl-C, with the cursor
// restored, or when stdout is closed.
#pragma once

#include "cli/options.h"
#include "cli/output.h"

namespace mete::cli {

inline constexpr OptionSpec kWatchOption{
    .name = "--watch",
    .value = "SECONDS",
    .help = "repeat every 2 seconds, or every SECONDS; Ctrl-C ends it",
    .value_optional = true};

// How often a screen or a table is redrawn: "0.5", "2". At most 20 times a second.
Result<unsigned> parse_period_ms(std::string_view option, std::string_view text);

// Runs the verb once or, with --watch, until it is ended. `print` may be called many times, each
// time from scratch.
using Print = int(const Parsed& parsed, const Output& output);
int run_or_watch(const Parsed& parsed, const Output& output, Print* print);

}  // namespace mete::cli
