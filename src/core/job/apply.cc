// SPDX-License-Identifier: Apache-2.0
// See state.h: what has happened changes the state, now and in every replay.
#include <algorithm>

#include "base/assert.h"
#include "core/job/state.h"

namespace mete::core {

namespace {

// The correction of forecasts stays between a quarter and twenty times.
constexpr std::uint32_t kLeastFactor = 250;
constexpr std::uint32_t kMostFactor = 20'000;

bool failed(const Job& job) { return job.outcome != Outcome::kOk; }

}  // namespace

Job& State::at(JobId id) {
  const auto found = jobs_.find(id);
  METE_ASSERT(found != jobs_.end());
  return found->second;
}

Job& State::step(JobId id, JobState to) {
  Job& job = at(id);
  METE_ASSERT(may_follow(job.state, to));
  leave(job);
  job.state = to;
  return job;
}

// ---- indexes -----------------------------------------------------------------------------------

void State::enter(const Job& job) {
  const JobSpec& spec = *job.spec;
  if (job.state == JobState::kEnded) {
    into_history(job);
    return;
  }
  ++users_[spec.user].unfinished;
  if (job.runner && !spec.detached) runners_[{job.runner->pid, job.runner->start_ticks}] = job.id;
  if (job.state != JobState::kPending) {
    active_.insert(job.id);
    if (spec.deadline) end_by_.emplace(spec.deadline->ms, job.id);
    return;
  }
  for (const After& after : job.unmet) dependents_[after.id].insert(job.id);
  if (job.put_off) put_off_.insert(job.id);
  if (!job.held && job.unmet.empty()) pending_.insert(job);
  if (spec.deadline)
    start_by_.emplace(spec.deadline->ms - static_cast<std::int64_t>(spec.time_s.value_or(0)) * 1000,
                      job.id);
}

void State::leave(const Job& job) {
  const JobSpec& spec = *job.spec;
  if (job.state == JobState::kEnded) {
    std::erase(ended_, job.id);
    out_of_history(job);
    return;
  }
  --users_[spec.user].unfinished;
  if (job.runner && !spec.detached) runners_.erase({job.runner->pid, job.runner->start_ticks});
  if (job.state != JobState::kPending) {
    active_.erase(job.id);
    if (spec.deadline) end_by_.erase({spec.deadline->ms, job.id});
    return;
  }
  for (const After& after : job.unmet) {
    const auto found = dependents_.find(after.id);
    if (found == dependents_.end()) continue;
    found->second.erase(job.id);
    if (found->second.empty()) dependents_.erase(found);
  }
  doomed_.erase(job.id);
  put_off_.erase(job.id);
  if (!job.held && job.unmet.empty()) pending_.erase(job);
  if (spec.deadline)
    start_by_.erase(
        {spec.deadline->ms - static_cast<std::int64_t>(spec.time_s.value_or(0)) * 1000, job.id});
}

// ---- the events of a job -----------------------------------------------------------------------

void State::on(const JobSubmitted& submitted, WallTime at) {
  METE_ASSERT(submitted.id.number == last_job_ + 1 && !submitted.id.element);
  last_job_ = submitted.id.number;
  const JobSpec& spec = *submitted.spec;
  Job job;
  job.id = submitted.id;
  job.spec = submitted.spec;
  job.runner = submitted.runner;
  job.submitted = at;
  job.priority = spec.priority;
  job.held = spec.held;
  if (!spec.key.empty()) keys_[{spec.uid, spec.key}] = job.id.number;
  // What has ended well by now is met; what can never be was refused.
  for (const After& after : spec.after)
    if (ends_among(after.id).open > 0) job.unmet.push_back(after);
  UserState& user = users_[spec.user];
  const auto add = [&] {
    enter(jobs_.emplace(job.id, job).first->second);
    user.known.hold(job);
    user.open.hold(job);
  };
  if (!spec.array) {
    add();
  } else {
    Ends& array = arrays_[job.id.number];
    for (const std::uint32_t element : elements_of(*spec.array)) {
      job.id.element = element;
      add();
      ++array.open;
      ++array.known;
    }
  }
  forget_for_room(spec.user);
}

void State::take_back_last() {
  const auto last = std::prev(jobs_.end());
  METE_ASSERT(last->first.number == last_job_ && last->second.state == JobState::kPending &&
              last->second.spec->key.empty());
  leave(last->second);
  arrays_.erase(last_job_);
  jobs_.erase(last);
  --last_job_;
  --last_seq_;
}

void State::on(const JobGranted& granted, WallTime at) {
  Job& job = step(granted.id, JobState::kStarting);
  job.grant = granted.cards;
  job.unmet.clear();  // logs of before have jobs that did not wait for what ran again
  enter(job);
  score_forecast(job, at);
}

void State::score_forecast(Job& job, WallTime at) {
  if (!job.forecast) return;
  const bool held = at <= job.forecast->by;
  job.forecast.reset();  // each is scored once, also if nothing is launched and it waits again
  ++score_.given;
  if (held) ++score_.held;
  // A step down for each that held, four up for each that did not: 0.98^4 * 1.0842 is 1, so they
  // balance at 80 in 100.
  if (held)
    score_.factor_milli = std::max(kLeastFactor, score_.factor_milli * 49 / 50);
  else
    score_.factor_milli = std::min(kMostFactor, score_.factor_milli * 2711 / 2500 + 1);
}

// What it cost its user, and how long such jobs run.
void State::charge(const Job& job, const std::optional<Exit>& exit, WallTime at) {
  if (!job.started) return;
  const std::uint64_t passed =
      at.ms > job.started->ms ? static_cast<std::uint64_t>(at.ms - job.started->ms) : 0;
  const std::uint64_t ran_ms = exit && exit->ran_ms ? *exit->ran_ms : passed;
  const std::uint32_t cpus =
      std::max(1u, cpus_of(job.spec->request, job.spec->detached.has_value()));
  fair_.charge(job.spec->user, cost_of(job, ran_ms, cpus, at), at);
  const bool by_itself = job.state != JobState::kStopping && exit && !exit->not_started;
  if (by_itself) estimates_.learn(*job.spec, ran_ms - std::min(ran_ms, parked_ms(job, at)));
}

void State::on(const JobEnded& ended, WallTime at) {
  const Job& before = this->at(ended.id);
  if (before.state != JobState::kPending) charge(before, ended.exit, at);
  // Who gave up waiting after the time that was told makes it no better.
  const bool waited_in_vain = before.state == JobState::kPending && before.forecast &&
                              at > before.forecast->by && ended.outcome == Outcome::kCancelled;
  Job& job = step(ended.id, JobState::kEnded);
  if (waited_in_vain) score_forecast(job, at);
  job.forecast.reset();
  job.outcome = ended.outcome;
  job.exit = ended.exit;
  job.ended = at;
  job.held = false;
  job.put_off.reset();
  job.requeue = false;
  job.park.reset();
  job.idle.reset();
  job.unmet.clear();
  enter(job);
  users_.at(job.spec->user).open.drop(job);
  tell_dependents(job);
  forget_old(job.spec->user);
}

void State::on(const JobRequeued& requeued, WallTime at) {
  Job& job = this->at(requeued.id);
  METE_ASSERT(job.state != JobState::kPending && job.spec->detached);
  if (const auto known = requeued_later_.find(job.id); known != requeued_later_.end())
    if (--known->second == 0) requeued_later_.erase(known);
  const bool was_ended = job.state == JobState::kEnded;
  if (!was_ended) charge(job, requeued.exit, at);
  leave(job);
  if (was_ended) users_.at(job.spec->user).open.hold(job);
  if (was_ended && job.id.element) {
    Ends& array = arrays_[job.id.number];
    ++array.open;
    if (failed(job) && array.failed > 0) --array.failed;
  }
  // Somebody wants it again (not: it is tried again): with what it waited for, if that runs again.
  if (was_ended || job.requeue)
    for (const After& after : job.spec->after)
      if (!in_vain(after)) job.unmet.push_back(after);
  const bool counts = !was_ended && !job.requeue && requeued.outcome != Outcome::kLost;
  if (job.attempts.size() == kAttemptsKept) job.attempts.erase(job.attempts.begin());
  job.attempts.push_back(
      {job.attempt, job.started, was_ended ? *job.ended : at, requeued.outcome, requeued.exit});
  job.failures = was_ended ? 0 : job.failures + (counts ? 1 : 0);
  ++job.attempt;
  job.state = JobState::kPending;
  job.started.reset();
  job.ended.reset();
  job.outcome.reset();
  job.exit.reset();
  job.runner.reset();
  job.program.reset();
  job.grant.clear();
  job.requeue = false;
  job.park.reset();
  job.parked_ms = 0;
  job.resumed.reset();
  job.stayed.clear();
  job.unparkable.reset();
  job.growth = Growth::kFree;
  job.escapes.clear();
  job.idle.reset();
  job.stopped.clear();
  job.gpu = requeued.gpu;
  job.not_before = requeued.not_before;
  job.put_off.reset();
  enter(job);
}

void State::on(const JobPriority& priority, WallTime) {
  Job& job = at(priority.id);
  METE_ASSERT(job.state != JobState::kEnded);
  const bool doomed = doomed_.contains(job.id);
  leave(job);
  job.priority = priority.priority;
  job.forecast.reset();  // was about another place
  enter(job);
  if (doomed) doomed_.insert(job.id);
}

// ---- dependencies ------------------------------------------------------------------------------

void State::tell_dependents(const Job& job) {
  if (!job.id.element) {
    tell_dependents_of(job.id, failed(job));
    return;
  }
  tell_dependents_of(job.id, failed(job));
  Ends& array = arrays_[job.id.number];
  METE_ASSERT(array.open > 0);
  --array.open;
  if (failed(job)) ++array.failed;
  const JobId whole{job.id.number};
  if (array.open == 0) {
    tell_dependents_of(whole, array.failed > 0);
  } else if (array.failed > 0) {
    // Not all of them can end well any more.
    const auto found = dependents_.find(whole);
    if (found == dependents_.end()) return;
    for (const JobId id : found->second)
      for (const After& after : jobs_.at(id).unmet)
        if (after.id == whole && after.when == When::kOk) doomed_.insert(id);
  }
}

void State::tell_dependents_of(JobId target, bool failed) {
  const auto found = dependents_.find(target);
  if (found == dependents_.end()) return;
  const std::set<JobId> dependents = found->second;
  for (const JobId id : dependents) {
    Job& job = at(id);
    const auto met = [&](const After& after) {
      return after.id == target &&
             (after.when == When::kAny || (after.when == When::kFail) == failed);
    };
    const bool was_doomed = doomed_.contains(id);
    leave(job);
    std::erase_if(job.unmet, met);
    enter(job);
    const bool in_vain = std::any_of(job.unmet.begin(), job.unmet.end(),
                                     [&](const After& after) { return after.id == target; });
    if (was_doomed || in_vain) doomed_.insert(id);
  }
}

// ---- the other events --------------------------------------------------------------------------

void State::on(const JobStarted& started, WallTime at) {
  Job& job = step(started.id, JobState::kRunning);
  job.program = started.program;
  job.put_off.reset();
  if (started.runner) job.runner = started.runner;
  job.started = WallTime{at.ms - static_cast<std::int64_t>(started.ago_ms)};
  enter(job);
}

// Of one that is being ended already: for another reason.
void State::on(const JobStopping& stopping, WallTime) {
  Job& job = at(stopping.id);
  METE_ASSERT(job.state == JobState::kStopping || may_follow(job.state, JobState::kStopping));
  leave(job);
  job.state = JobState::kStopping;
  job.outcome = stopping.why;
  job.requeue = stopping.requeue;
  job.stopped = stopping.note;
  enter(job);
}

void State::on(const JobUngranted& ungranted, WallTime) {
  Job& job = step(ungranted.id, JobState::kPending);
  job.grant.clear();
  job.runner.reset();
  if (ungranted.not_before) {
    job.not_before = ungranted.not_before;
    job.put_off = PutOff{ungranted.why, job.put_off ? job.put_off->times + 1 : 1};
  }
  enter(job);
}

void State::set_held(JobId id, bool held) {
  Job& job = at(id);
  METE_ASSERT(job.state == JobState::kPending);
  const bool doomed = doomed_.contains(id);
  leave(job);
  job.held = held;
  job.forecast.reset();  // did not know of that
  enter(job);
  if (doomed) doomed_.insert(id);
}

void State::on(const JobHeld& held, WallTime) { set_held(held.id, true); }
void State::on(const JobReleased& released, WallTime) { set_held(released.id, false); }
void State::on(const JobForecast& told, WallTime) { at(told.id).forecast = told.forecast; }
void State::on(const CardLost& card, WallTime) { lost_.insert(card.uuid); }
void State::on(const CardBack& card, WallTime) { lost_.erase(card.uuid); }
void State::on(const CardDrained& card, WallTime) { drained_[card.uuid] = card.by; }
void State::on(const CardUndrained& card, WallTime) { drained_.erase(card.uuid); }
void State::on(const Booted& booted, WallTime) { boot_id_ = booted.boot_id; }

void State::on(const QuotaSet& set, WallTime) {
  if (set.quota == Quota{})
    quotas_.erase(set.user);
  else
    quotas_[set.user] = set.quota;
}

void State::on(const Reserved& reserved, WallTime) {
  METE_ASSERT(reserved.reservation.id == last_reservation_ + 1);
  last_reservation_ = reserved.reservation.id;
  reservations_.push_back(reserved.reservation);
}

void State::on(const Unreserved& unreserved, WallTime) {
  std::erase_if(reservations_, [&](const Reservation& known) { return known.id == unreserved.id; });
}

void State::apply(const Event& event) {
  METE_ASSERT(event.seq == last_seq_ + 1);
  last_seq_ = event.seq;
  std::visit([&](const auto& what) { on(what, event.at); }, event.what);
}

}  // namespace mete::core
