// SPDX-License-Identifier: Apache-2.0
// Sweeps as people read them: the line of progress, the list, one sweep, its trials. Pure:
// documents in, text out; `width` as in table.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "wire/sweep.h"

namespace mete::cli {

// "1 trial", "10,000 points".
std::string numbered(std::uint64_t count, std::string_view noun);

// "lr-scan [#####.....] 12/24, 4 run, 1 failed, best val_loss 0.41, ends ~14:20": at most 80
// columns for a usual name.
std::string progress_line(const wire::SweepRow& row, WallTime now);
// "val_loss 0.41 of trial 7".
std::string best_text(const wire::SweepDocument::Best& best);
// "12 of 24 trials are over: 10 ok, 1 failed, 1 stopped early".
std::string counts_text(const wire::SweepRow& row);
// "sweep lr-scan: done: all 24 trials are over; 23 ok, 1 failed; 12:05; best …".
std::string end_text(const wire::SweepRow& row, WallTime now);
// Why trials failed, by the most frequent reason: "2 trials failed: exit code 1; mete sweep logs
// lr-scan 3 shows the output of trial 3"; "" if none failed.
std::string failures_text(const wire::SweepDocument& sweep);
// What became of a sweep that was changed: "sweep lr-scan is paused; 4 running trials finish".
std::string row_text(const wire::SweepRow& row);

// `users`: with a column for them.
std::string sweeps_table(const wire::SweepsDocument& document, bool users,
                         std::optional<std::size_t> width);

using TrialList = std::vector<const wire::SweepDocument::Trial*>;
// At most `best` of the best ones, then at most `running` of the running ones.
TrialList best_and_running(const wire::SweepDocument& sweep, std::size_t best, std::size_t running);
// All of them, best first.
TrialList all_ranked(const wire::SweepDocument& sweep);
std::string trials_table(const wire::SweepDocument& sweep, const TrialList& trials,
                         std::optional<std::size_t> width);

std::string importance_text(const wire::SweepDocument& sweep, std::optional<std::size_t> width);
// `mete sweep show`. The importance is in the document already.
std::string sweep_text(const wire::SweepDocument& sweep, std::optional<std::size_t> width,
                       bool ascii);

// Whether the locale has characters beyond ASCII.
bool has_utf8();

}  // namespace mete::cli
