// SPDX-License-Identifier: Apache-2.0
// See question.h.
#include "core/explain/question.h"

#include <algorithm>

namespace mete::core {

Question::Question(const State& state, const Sight& sight, const Job& job)
    : state_(state), sight_(sight), job_(job), kind_(kind_of(job)) {}

std::size_t Question::most_walks() const {
  // A pass takes as long as looking at this many kinds of jobs, in addition to those in the queue.
  constexpr std::size_t kWalk = 128;
  constexpr std::size_t kMostWork = 40'000;
  return std::clamp<std::size_t>(kMostWork / (kWalk + sight_.input.pending->kinds()), 4, 64);
}

bool Question::starts(const PassInput& input) const {
  return first_to_start(input, job_.id, std::span(&kind_, 1)).has_value();
}

bool Question::over_quota() const {
  const std::optional<Blocked> by = blocked(sight_.input, sight_.result, kind_);
  return by && by->by == Blocked::By::kQuota;
}

std::optional<std::size_t> Question::first_as(std::span<const Kind> kinds) const {
  return first_to_start(sight_.input, job_.id, kinds);
}

bool Question::in_line() const {
  Job job = job_;
  job.held = false;
  JobSpec spec = *job.spec;
  spec.begin.reset();
  job.spec = spec;
  Pending line = state_.pending();
  if (!job_.held) line.erase(job_);
  line.insert(job);
  PassInput input = sight_.input;
  input.pending = &line;
  // The user may have no other job in the queue.
  input.usage.try_emplace(kind_.user, state_.usage_of(kind_.user, input.now));
  return starts(input);
}

std::optional<std::vector<JobId>> Question::with_priority(std::int32_t priority) {
  if (!line_) {
    line_ = state_.pending();
    line_->erase(job_);
  }
  Job job = job_;
  job.priority = priority;
  line_->insert(job);
  PassInput input = sight_.input;
  input.pending = &*line_;
  std::optional<std::vector<JobId>> parked;
  if (starts(input)) {
    parked.emplace();
  } else {
    const PassResult result = walk(input);
    if (const auto room = result.waits_for.find(job_.id); room != result.waits_for.end())
      parked = room->second;
  }
  line_->erase(job);
  return parked;
}

bool Question::without_jobs(std::span<const JobId> ids) const {
  PassInput input = sight_.input;
  for (const JobId id : ids) {
    remove_grant(input.pool, id);
    std::erase_if(input.running, [id](const Running& running) { return running.id == id; });
  }
  // Jobs that waited for such an end enter the queue.
  const std::vector<const Job*> freed = state_.freed_by_cancel(ids);
  if (freed.empty()) return starts(input);
  Pending line = state_.pending();
  for (const Job* waiting : freed) {
    Job job = *waiting;
    job.unmet.clear();
    line.insert(job);
    input.usage.try_emplace(job.spec->user, state_.usage_of(job.spec->user, input.now));
  }
  input.pending = &line;
  return starts(input);
}

bool Question::with_quota(const Quota& quota) const {
  PassInput input = sight_.input;
  input.quotas[kind_.user] = quota;
  return starts(input);
}

bool Question::without_reservation(std::uint64_t id) const {
  PassInput input = sight_.input;
  std::erase_if(input.reservations,
                [id](const Reservation& reservation) { return reservation.id == id; });
  return starts(input);
}

bool Question::undrained(const std::string& uuid) const {
  PassInput input = sight_.input;
  for (PoolCard& card : input.pool.cards)
    if (card.card.uuid == uuid) card.drained = false;
  return starts(input);
}

}  // namespace mete::core
