// SPDX-License-Identifier: Apache-2.0
// See ps_table.h.
#include "cli/ps_table.h"

#include <algorithm>

#include "base/text.h"
#include "cli/job_text.h"
#include "cli/moment.h"
#include "cli/table.h"

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

}  // namespace

std::string ps_table(const std::vector<wire::JobView>& jobs, WallTime now,
                     std::optional<std::size_t> width) {
  const bool reasons = std::any_of(jobs.begin(), jobs.end(), [](const wire::JobView& view) {
    return view.job.state == JobState::kPending && view.wait;
  });
  Table table({{"ID", Align::kRight},
               {"NAME", Align::kLeft, 20},
               {"USER", Align::kLeft, 16},
               {"STATE"},
               {"TRY", Align::kRight},
               {"PRIORITY", Align::kRight},
               {"GPU"},
               {"CARDS"},
               {"USED", Align::kRight},
               {"IDLE", Align::kRight},
               {"TIME", Align::kRight},
               {"STARTS", Align::kRight},
               {"COMMAND", Align::kLeft, reasons ? 30U : 0U},
               {"REASON"}});
  for (const wire::JobView& view : jobs) {
    const Job& job = view.job;
    const bool pending = job.state == JobState::kPending;
    table.add({to_string(job.id), job.spec->name, job.spec->user, state_text(job),
               job.attempt > 1 ? std::to_string(job.attempt) : "",
               job.priority != 0 ? std::to_string(job.priority) : "", gpu_text(job),
               cards_text(job), used_text(view),
               view.idle_since ? seconds_between(*view.idle_since, now) : "", time_of(job, now),
               pending && view.forecast ? "~" + moment(view.forecast->at, now) : "",
               base::join(job.spec->command, " "), reason_text(view)});
  }
  return table.text(width);
}

}  // namespace mete::cli
