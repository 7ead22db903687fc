// SPDX-License-Identifier: Apache-2.0
// `--watch`: a verb that prints something, again and again. On a terminal each block takes the
// place of the one before; into a pipe they follow one another; as JSON each is a line. Ends by
// Ctrl-C, with the cursor as it was, or when nobody reads any more.
#pragma once

#include "cli/options.h"
#include "cli/output.h"

namespace mete::cli {

inline constexpr OptionSpec kWatchOption{
    .name = "--watch",
    .value = "SECONDS",
    .help = "repeat every 2 seconds, or every SECONDS; Ctrl-C ends it",
    .value_optional = true};

// How often a screen or a table is made anew: "0.5", "2". No more than 20 times a second.
Result<unsigned> parse_period_ms(std::string_view option, std::string_view text);

// Does what the verb does, once or, with --watch, until somebody ends it. `print` may be asked many
// times, each time as if nothing had been before.
using Print = int(const Parsed& parsed, const Output& output);
int run_or_watch(const Parsed& parsed, const Output& output, Print* print);

}  // namespace mete::cli
