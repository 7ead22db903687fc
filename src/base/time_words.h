// SPDX-License-Identifier: Apache-2.0
// Times as users type them: text in, seconds or a moment out. "Now" is passed in; only the time
// zone is read from the system (TZ, /etc/localtime).
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace mete::base {

// "90", "90s", "10m", "2h", "1d", "1:30:00", "2-12", "2-12:00", "2-12:00:00": seconds, never 0. A
// number alone is seconds, as in sleep(1); "10:30" is minutes and seconds, as in Slurm.
Result<std::uint64_t> parse_duration(std::string_view text);

// moment := "now" [ "+" duration ] | [ day ( " " | "T" ) ] clock | day
//         | date ( " " | "T" ) clock zone
// day    := date | "today" | "tomorrow"        date := YYYY-MM-DD
// clock  := HH:MM [ :SS ]                      zone := "Z" | ( "+" | "-" ) HH:MM
//
// Without a zone it is local time. A clock alone is the next time that it shows that; a date alone
// is the beginning of that day. After "now+" a duration may also be "2 hours", "30minutes", as in
// Slurm. If clocks are set forward, a skipped time is the moment of the change; if they are set
// back, a time that comes twice is the first one (write a zone for the second).
Result<WallTime> parse_moment(std::string_view text, WallTime now);

}  // namespace mete::base
