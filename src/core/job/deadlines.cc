// SPDX-License-Identifier: Apache-2.0
// See deadlines.h.
#include "core/job/deadlines.h"

namespace mete::core {

namespace {

Deadlines::Entry start_of(const Job& job) {
  const JobSpec& spec = *job.spec;
  return {spec.deadline->ms - static_cast<std::int64_t>(spec.time_s.value_or(0)) * 1000, job.id};
}

}  // namespace

void Deadlines::enter(const Job& job) {
  if (!job.spec->deadline || job.state == JobState::kEnded) return;
  if (job.state == JobState::kPending)
    start_by_.insert(start_of(job));
  else
    end_by_.emplace(job.spec->deadline->ms, job.id);
}

void Deadlines::leave(const Job& job) {
  if (!job.spec->deadline || job.state == JobState::kEnded) return;
  if (job.state == JobState::kPending)
    start_by_.erase(start_of(job));
  else
    end_by_.erase({job.spec->deadline->ms, job.id});
}

}  // namespace mete::core
