// SPDX-License-Identifier: Apache-2.0
// See ps_table.h.
#include "cli/ps_table.h"

#include <algorithm>

#include "base/moment.h"
#include "base/text.h"
#include "wire/job_text.h"

namespace mete::cli {

namespace {

using core::Job;
using core::JobState;

std::string seconds_between(WallTime from, WallTime to) {
  return base::duration_in_words(std::max<std::int64_t>(0, (to.ms - from.ms) / 1000));
}

// How long it waits, runs or ran.
std::string time_of(const Job& job, WallTime now) {
  if (job.state == JobState::kEnded && !job.started) return "";
  const bool waits = job.state == JobState::kPending;
  return seconds_between(waits ? job.submitted : job.started.value_or(job.submitted),
                         job.ended.value_or(now));
}

constexpr std::size_t kCommand = 12;  // its column
static_assert(kPsColumns[kCommand].title == "COMMAND");
constexpr std::size_t kCommandWidth = 30;

}  // namespace

PsTable::PsTable(WallTime now) : now_(now), table_({kPsColumns.begin(), kPsColumns.end()}) {}

void PsTable::add(const wire::JobView& view) {
  const Job& job = view.job;
  const std::string reason = this->reason(view);
  reasons_ = reasons_ || !reason.empty();
  table_.add({to_string(job.id), job.spec->name, job.spec->user, wire::state_text(job),
              job.attempt > 1 ? std::to_string(job.attempt) : "",
              job.priority != 0 ? std::to_string(job.priority) : "", wire::gpu_text(job),
              wire::cards_text(job), wire::used_text(view),
              view.idle_since ? seconds_between(*view.idle_since, now_) : "", time_of(job, now_),
              starts(view), base::join(job.spec->command, " "), reason});
}

void PsTable::expect(std::string_view lines) {
  table_.expect(static_cast<std::size_t>(std::count(lines.begin(), lines.end(), '\n')),
                lines.size());
}

// Equal jobs share their wait: thousands of them have one text.
std::string PsTable::reason(const wire::JobView& view) {
  if (view.job.state != JobState::kPending || !view.wait) return wire::reason_text(view, now_);
  auto known = waits_.find(view.wait.get());
  if (known == waits_.end())
    known =
        waits_.emplace(view.wait.get(), std::pair(view.wait, wire::reason_text(view, now_))).first;
  return known->second.second;
}

const std::string& PsTable::starts(const wire::JobView& view) {
  static const std::string kNothing;
  if (view.job.state != JobState::kPending || !view.forecast) return kNothing;
  if (last_start_ != view.forecast->at) {
    last_start_ = view.forecast->at;
    start_text_ = "~" + moment(view.forecast->at, now_);
  }
  return start_text_;
}

std::string PsTable::text(std::optional<std::size_t> width) {
  if (reasons_) table_.cut(kCommand, kCommandWidth);
  return table_.text(width);
}

}  // namespace mete::cli
