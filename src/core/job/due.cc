// SPDX-License-Identifier: Apache-2.0
// See state.h: events that follow from time alone, and when the next one is due.
#include <algorithm>

#include "core/job/state.h"
#include "core/order/preempt.h"

namespace mete::core {

std::vector<Happened> State::due(const Moment& moment) const {
  std::vector<Happened> happened;
  for (const JobId id : dependencies_.doomed())
    happened.emplace_back(JobEnded{id, Outcome::kDependency, {}});
  for (const auto& [ms, id] : deadlines_.start_by()) {
    if (ms >= moment.now.ms) break;
    if (!dependencies_.is_doomed(id)) happened.emplace_back(JobEnded{id, Outcome::kDeadline, {}});
  }
  for (const auto& [ms, id] : deadlines_.end_by()) {
    if (ms > moment.now.ms) break;
    if (jobs_.at(id).state != JobState::kStopping)
      happened.emplace_back(JobStopping{id, Outcome::kDeadline});
  }
  for (const Reservation& reservation : reservations())
    if (reservation.until <= moment.now) happened.emplace_back(Unreserved{reservation.id});
  // Steps of sweeps depend on what the events above do to their jobs.
  if (happened.empty()) sweeps_due(moment, happened);
  return happened;
}

std::optional<WallTime> State::next_change(WallTime now) const {
  std::optional<WallTime> next = pending_.next_begin(now);
  const auto consider = [&](std::int64_t ms) {
    const WallTime time{std::max(ms, now.ms + 1)};
    if (!next || time < *next) next = time;
  };
  if (!deadlines_.start_by().empty()) consider(deadlines_.start_by().begin()->first + 1);
  for (const auto& [ms, id] : deadlines_.end_by()) {
    if (jobs_.at(id).state == JobState::kStopping) continue;
    consider(ms);
    break;
  }
  for (const Reservation& reservation : reservations()) {
    if (reservation.from > now) consider(reservation.from.ms);
    consider(reservation.until.ms);
  }
  for (const auto& [number, sweep] : sweeps_.all())
    if (const std::optional<WallTime> at = sweep.next_change(now)) consider(at->ms);
  // A job that has waited too long goes to the front of the queue.
  for (const auto& [queue, jobs] : pending_.queues())
    for (const auto& [id, entry] : jobs) {
      if (entry.not_before_ms > now.ms) continue;
      const std::int64_t starves =
          entry.submitted_ms + static_cast<std::int64_t>(rules_.starve_after_s) * 1000;
      if (starves > now.ms) consider(starves);
      break;
    }
  for (const JobId id : active_) {
    const Job& job = jobs_.at(id);
    if (job.state != JobState::kParked || !job.park->wants_back || job.park->lost) continue;
    if (const auto again = tries_again(rules_, job); again && *again > now) consider(again->ms);
    const std::int64_t starves =
        job.park->since.ms + static_cast<std::int64_t>(rules_.starve_after_s) * 1000;
    if (starves > now.ms) consider(starves);
  }
  // Waiting jobs may have others parked, once those have run for long enough; a job that does not
  // park in time is given up.
  if (pending_.size() > 0)
    for (const JobId id : active_) {
      const Job& job = jobs_.at(id);
      if (const auto from = parkable_from(rules_, job); from && *from > now) consider(from->ms);
      if (job.state == JobState::kParking && job.park) {
        const std::int64_t late =
            job.park->since.ms + static_cast<std::int64_t>(rules_.park_patience_s) * 1000;
        if (late > now.ms) consider(late);
      }
    }
  return next;
}

}  // namespace mete::core
