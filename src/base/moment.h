// SPDX-License-Identifier: Apache-2.0
// Times for users: in their time zone, and only as much as is needed to identify them. Documents
// have UTC; see base/time.h.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace mete::base {

// "14:05" today, "Nov 16 14:05" on another day of this year, else "2027-01-02 14:05".
std::string moment(WallTime time, WallTime now);
// moment() with seconds: "14:05:09".
std::string moment_to_the_second(WallTime time, WallTime now);

// "12 min ago", "in 3 h 5 min", "now".
std::string distance(WallTime time, WallTime now);

// A time in the past, as in --since: "10m" is ten minutes ago, "14:05" the last time that a clock
// showed that, and all that base/time_words.h accepts.
Result<WallTime> parse_since(std::string_view text, WallTime now);

}  // namespace mete::base
