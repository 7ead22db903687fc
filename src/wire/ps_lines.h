// SPDX-License-Identifier: Apache-2.0
// The jobs of `mete ps` in lines, for a table: what ten thousand jobs come to is written and read
// within milliseconds. Between our own programs of one version; documents for others are JSON
// (job.h).
//
// The first line is "mete.ps-lines/1", a tab, and the time in milliseconds; every other is a job,
// its columns separated by tabs (docs/formats/ps-lines.md). Backslash, tab, newline and carriage
// return in a value are \\ \t \n \r; an empty column is a value that is absent.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "wire/job.h"

namespace mete::wire {

inline constexpr std::string_view kPsLinesType = "text/tab-separated-values";

// Of a job what a table shows: no labels, holders, peaks or UUIDs; its command is one word.
std::string encode_ps_lines(const std::vector<JobView>& jobs, WallTime at);
Result<std::vector<JobView>> decode_ps_lines(std::string_view text);
// The same, one by one: ten thousand need not be in memory at once. After an error what was taken
// before it is of no use.
Result<void> decode_ps_lines(std::string_view text,
                             const std::function<void(const JobView& view)>& take);

}  // namespace mete::wire
