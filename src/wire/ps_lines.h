// SPDX-License-Identifier: Apache-2.0
// The jobs of `mete ps` as lines, for a table: ten thousand jobs are written and read within
// milliseconds. Between our own programs of one version; documents for others are JSON (job.h).
//
// The first line is "mete.ps-lines/1", a tab, and the time in milliseconds; every other line is a
// job, with columns separated by tabs (docs/formats/ps-lines.md). Backslash, tab, newline and
// carriage return in a value are \\ \t \n \r; an empty column is an absent value.
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

// Only what a table shows: no labels, holders, peaks or UUIDs; the command is one word.
std::string encode_ps_lines(const std::vector<JobView>& jobs, WallTime at);
Result<std::vector<JobView>> decode_ps_lines(std::string_view text);
// Passes the jobs to take() one by one, so that ten thousand need not be in memory at once. After
// an error the jobs taken before it must be dropped.
Result<void> decode_ps_lines(std::string_view text,
                             const std::function<void(const JobView& view)>& take);

}  // namespace mete::wire
