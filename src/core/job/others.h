// SPDX-License-Identifier: Apache-2.0
// What users are shown of other users' jobs: [sight] others in the configuration. A row is made
// from a list of what is shown, so that a field that is added to Job is not shown by accident.
#pragma once

#include <optional>
#include <string_view>

#include "core/job/job.h"

namespace mete::core {

enum class Others {
  kTotals,  // sums, and on each card the number, user and bytes of its jobs
  kRows,    // each job with its user, share, cards, times and state
  kAll,     // also its name and command
};
std::string_view to_string(Others others);  // "totals", "rows", "all"
std::optional<Others> parse_others(std::string_view text);

// The job as other users see it. `last` is the spec of the row before, and becomes the spec of this
// one: rows that show equal words share a spec, since a list may have ten thousand rows.
Job row_of(const Job& job, Others others, SharedSpec& last);

}  // namespace mete::core
