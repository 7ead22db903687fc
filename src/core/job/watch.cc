// SPDX-License-Identifier: Apache-2.0
// See decide.h: what is done about running jobs. A job that is idle on its cards is warned,
// reported, parked and ended, each after a configured time. A process that holds memory outside its
// meter is reported once, and its job is ended where that is the policy.
#include <algorithm>

#include "base/text.h"
#include "core/job/apply.h"
#include "core/job/decide.h"
#include "core/order/preempt.h"

namespace mete::core {

namespace {

// Shorter pauses are not recorded: they would fill the log.
constexpr std::uint64_t kSpanS = 60;
// Another daemon, or a gap in the readings, gives a span a slightly different beginning.
constexpr std::int64_t kSameSpanMs = 5'000;
// A process is reported again only when it holds this much more than last reported.
constexpr Bytes kMuchMore = Bytes::from_mib(256);

// A job that is idle for this long is parked; 0: never. The job's own time replaces the configured
// one.
std::uint64_t park_after_s(const Rules& rules, const Job& job) {
  return job.spec->idle_s.value_or(rules.idle_park_s);
}

// The shortest time that is configured for the job: a span is recorded from then on.
std::uint64_t recorded_from(const Rules& rules, const Job& job) {
  std::uint64_t least = kSpanS;
  for (const std::uint64_t seconds :
       {rules.idle_warn_s, rules.idle_notify_s, park_after_s(rules, job), rules.idle_stop_s})
    if (seconds != 0) least = std::min(least, seconds);
  return least;
}

bool reached(std::uint64_t seconds, std::uint64_t idle_s) {
  return seconds != 0 && idle_s >= seconds;
}

// As in preemption: not a job that has just begun or come back, nor one that refused lately.
bool may_be_parked(const Rules& rules, const Job& job, WallTime now) {
  const std::optional<WallTime> from = parkable_from(rules, job);
  return from && *from <= now;
}

}  // namespace

std::vector<Happened> Decider::on(const Idle& idle) const {
  const Job* job = state_.find(idle.id);
  if (job == nullptr || job->state != JobState::kRunning || moment_.now <= idle.since) return {};
  const auto idle_s = static_cast<std::uint64_t>(moment_.now.ms - idle.since.ms) / 1000;
  std::vector<Happened> happened;
  IdleStep step = IdleStep::kSeen;
  if (reached(rules_.idle_warn_s, idle_s)) step = IdleStep::kWarned;
  if (reached(rules_.idle_notify_s, idle_s)) step = IdleStep::kNotified;
  const bool known = job->idle && std::abs(job->idle->since.ms - idle.since.ms) <= kSameSpanMs;
  if (known ? step > job->idle->step : idle_s >= recorded_from(rules_, *job))
    happened.emplace_back(JobIdle{job->id, {known ? job->idle->since : idle.since, step}});
  // A job that can be parked then holds next to nothing, and need not be ended.
  if (reached(park_after_s(rules_, *job), idle_s) && may_be_parked(rules_, *job, moment_.now)) {
    happened.emplace_back(JobParked{job->id, JobState::kParking, ParkCause::kIdle, {}, "", false});
  } else if (reached(rules_.idle_stop_s, idle_s)) {
    const std::string why = "ended because it did nothing on its cards for " +
                            base::duration_in_words(static_cast<std::int64_t>(idle_s)) +
                            " (idle.stop_s is " + std::to_string(rules_.idle_stop_s) + ")";
    happened.emplace_back(JobStopping{job->id, Outcome::kCancelled, false, why});
  }
  return happened;
}

std::vector<Happened> Decider::on(const Active& active) const {
  const Job* job = state_.find(active.id);
  std::vector<Happened> happened;
  if (job != nullptr && job->idle) happened.emplace_back(JobActive{job->id});
  return happened;
}

std::vector<Happened> Decider::on(const Escaped& escaped) const {
  const Job* job = state_.find(escaped.id);
  if (job == nullptr || !state_.active().contains(escaped.id) || job->state == JobState::kStopping)
    return {};
  std::vector<Happened> happened;
  const Escape& seen = escaped.escape;
  const auto told =
      std::find_if(job->escapes.begin(), job->escapes.end(), [&](const Escape& known) {
        return known.pid == seen.pid && known.start_ticks == seen.start_ticks &&
               known.card == seen.card;
      });
  if (told == job->escapes.end() ||
      seen.bytes >=
          std::max(told->bytes + kMuchMore, Bytes::from_bytes(told->bytes.count() / 2 * 3)))
    happened.emplace_back(EscapeSeen{job->id, seen});
  if (escaped.stop)
    happened.emplace_back(JobStopping{job->id, Outcome::kEscaped, false,
                                      "ended by the policy on escapes: " + to_string(seen)});
  return happened;
}

std::string to_string(const Escape& escape) {
  return "process " + std::to_string(escape.pid) +
         (escape.command.empty() ? "" : " (" + escape.command + ")") + " holds " +
         to_string(escape.bytes) + " of card " + std::to_string(escape.index) +
         " outside its meter";
}

Remark remark_of(const Job& job, const Rules& rules) {
  if (!job.stopped.empty()) return {job.stopped};
  Remark remark;
  if (job.state == JobState::kEnded) return remark;
  if (!job.escapes.empty()) {
    remark.said = "escape: " + to_string(job.escapes.back());
    if (job.escapes.size() > 1)
      remark.said += ", and " + std::to_string(job.escapes.size() - 1) + " more";
  }
  if (job.idle && job.idle->step != IdleStep::kSeen) {
    Remark::Idle& idle = remark.idle.emplace(Remark::Idle{job.idle->since});
    const std::uint64_t park_s = park_after_s(rules, job);
    idle.parks =
        park_s != 0 && is_parkable(*job.spec) && !(job.unparkable && job.unparkable->standing);
    if (const std::uint64_t seconds = idle.parks ? park_s : rules.idle_stop_s)
      idle.until = WallTime{idle.since.ms + static_cast<std::int64_t>(seconds) * 1000};
  }
  return remark;
}

void EventApplier::on(const EscapeSeen& seen) {
  std::vector<Escape>& known = job_of(seen.id).escapes;
  std::erase_if(known, [&](const Escape& each) {
    return each.pid == seen.escape.pid && each.start_ticks == seen.escape.start_ticks &&
           each.card == seen.escape.card;
  });
  if (known.size() == kEscapesKept) known.erase(known.begin());
  known.push_back(seen.escape);
}

void EventApplier::on(const JobIdle& idle) { job_of(idle.id).idle = idle.span; }
void EventApplier::on(const JobActive& active) { job_of(active.id).idle.reset(); }

}  // namespace mete::core
