// SPDX-License-Identifier: Apache-2.0
// Figures for narrow places: a line of a chat, a cell of a screen. Cut, never rounded up.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"

namespace mete::base {

// In GiB: "65.1".
std::string tenths_of_gib(Bytes bytes);
// "55.9G", "512M", "12K", "0".
std::string brief(Bytes bytes);

// "45s", "12m", "3h", "4d": whole units, of the largest that fits.
std::string brief_duration(std::int64_t seconds);
// The time from one moment to another; "0s" if a clock was set back.
std::string brief_duration(WallTime from, WallTime to);
// "0:45", "12:05", "3:12:05", "4d 3:12".
std::string clock_duration(std::int64_t seconds);

// {0,1,2,5}, ascending: "0-2,5".
std::string number_ranges(const std::vector<std::uint32_t>& numbers);

}  // namespace mete::base
