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
  users_.enter(job);
  deadlines_.enter(job);
  if (job.state == JobState::kEnded) {
    history_.enter(job);
    return;
  }
  if (job.runner && !job.spec->detached)
    runners_[{job.runner->pid, job.runner->start_ticks}] = job.id;
  if (job.state != JobState::kPending) {
    active_.insert(job.id);
    return;
  }
  dependencies_.enter(job);
  if (job.put_off) put_off_.insert(job.id);
  if (!job.held && job.unmet.empty()) pending_.insert(job);
}

void State::leave(const Job& job) {
  users_.leave(job);
  deadlines_.leave(job);
  if (job.state == JobState::kEnded) {
    history_.leave(job);
    return;
  }
  if (job.runner && !job.spec->detached) runners_.erase({job.runner->pid, job.runner->start_ticks});
  if (job.state != JobState::kPending) {
    active_.erase(job.id);
    return;
  }
  dependencies_.leave(job);
  put_off_.erase(job.id);
  if (!job.held && job.unmet.empty()) pending_.erase(job);
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
  const auto add = [&] {
    enter(jobs_.emplace(job.id, job).first->second);
    users_.hold(job);
  };
  if (!spec.array) {
    add();
  } else {
    for (const std::uint32_t element : elements_of(*spec.array)) {
      job.id.element = element;
      add();
      history_.open(job.id);
    }
  }
  forget_for_room(spec.user);
}

void State::take_back_last() {
  const auto last = std::prev(jobs_.end());
  METE_ASSERT(last->first.number == last_job_ && last->second.state == JobState::kPending &&
              last->second.spec->key.empty());
  leave(last->second);
  history_.take_back_array(last_job_);
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
  users_.close(job);
  tell_dependents(job);
  forget_old(job.spec->user);
}

void State::on(const JobRequeued& requeued, WallTime at) {
  Job& job = this->at(requeued.id);
  METE_ASSERT(job.state != JobState::kPending && job.spec->detached);
  history_.requeued(job.id);
  const bool was_ended = job.state == JobState::kEnded;
  if (!was_ended) charge(job, requeued.exit, at);
  leave(job);
  if (was_ended) users_.reopen(job);
  if (was_ended && job.id.element) history_.reopen(job);
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
  const bool doomed = dependencies_.is_doomed(job.id);
  leave(job);
  job.priority = priority.priority;
  job.forecast.reset();  // was about another place
  enter(job);
  if (doomed) dependencies_.doom(job.id);
}

// ---- dependencies ------------------------------------------------------------------------------

void State::tell_dependents(const Job& job) {
  tell_dependents_of(job.id, has_failed(job));
  if (!job.id.element) return;
  const Ends& array = history_.close(job);
  const JobId whole{job.id.number};
  if (array.open == 0) {
    tell_dependents_of(whole, array.failed > 0);
  } else if (array.failed > 0) {
    // Not all of them can end well any more.
    for (const JobId id : dependencies_.on(whole))
      for (const After& after : jobs_.at(id).unmet)
        if (after.id == whole && after.when == When::kOk) dependencies_.doom(id);
  }
}

void State::tell_dependents_of(JobId target, bool failed) {
  const std::set<JobId> dependents = dependencies_.on(target);  // changes in the loop
  for (const JobId id : dependents) {
    Job& job = at(id);
    const auto met = [&](const After& after) {
      return after.id == target &&
             (after.when == When::kAny || (after.when == When::kFail) == failed);
    };
    const bool was_doomed = dependencies_.is_doomed(id);
    leave(job);
    std::erase_if(job.unmet, met);
    enter(job);
    const bool in_vain = std::any_of(job.unmet.begin(), job.unmet.end(),
                                     [&](const After& after) { return after.id == target; });
    if (was_doomed || in_vain) dependencies_.doom(id);
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
  const bool doomed = dependencies_.is_doomed(id);
  leave(job);
  job.held = held;
  job.forecast.reset();  // did not know of that
  enter(job);
  if (doomed) dependencies_.doom(id);
}

void State::on(const JobHeld& held, WallTime) { set_held(held.id, true); }
void State::on(const JobReleased& released, WallTime) { set_held(released.id, false); }
void State::on(const JobForecast& told, WallTime) { at(told.id).forecast = told.forecast; }
void State::on(const CardLost& card, WallTime) { lost_.insert(card.uuid); }
void State::on(const CardBack& card, WallTime) { lost_.erase(card.uuid); }
void State::on(const CardDrained& card, WallTime) { admin_.apply(card); }
void State::on(const CardUndrained& card, WallTime) { admin_.apply(card); }
void State::on(const QuotaSet& set, WallTime) { admin_.apply(set); }
void State::on(const Reserved& reserved, WallTime) { admin_.apply(reserved); }
void State::on(const Unreserved& unreserved, WallTime) { admin_.apply(unreserved); }
void State::on(const Booted& booted, WallTime) { boot_id_ = booted.boot_id; }
void State::on(const Repaired& repaired, WallTime) {
  last_job_ = std::max(last_job_ + repaired.lost_events, repaired.last_job);
}

// ---- forgetting --------------------------------------------------------------------------------

void State::forget_old(const std::string& of) {
  const std::string user = of;  // is in a job that may go
  std::size_t spare = history_.too_many(user, rules_.ended_kept);
  if (spare == 0) return;
  history_.forget_oldest(
      user, jobs_, [&] { return spare == 0; },
      [&](const Job& job) {
        --spare;
        drop(job);
      });
}

// The oldest of the user's ended jobs go when all of them take more than they may. More than
// needed, so that this does not go through the list of all users for each new job.
void State::forget_for_room(const std::string& of) {
  const std::string user = of;  // is in a job that may go
  const Account& known = users_.of(user).known;
  if (known.bytes() <= rules_.user_bytes || !history_.has_ended_jobs(user)) return;
  const std::uint64_t most = rules_.user_bytes - rules_.user_bytes / 10;
  history_.forget_oldest(
      user, jobs_, [&] { return known.bytes() <= most; }, [&](const Job& job) { drop(job); });
}

void State::drop(const Job& forgotten) {
  const JobSpec& spec = *forgotten.spec;
  users_.leave(forgotten);
  users_.drop(forgotten);
  jobs_.erase(forgotten.id);
  if (!spec.key.empty() && first_of({forgotten.id.number}) == nullptr)
    keys_.erase({spec.uid, spec.key});
}

void State::apply(const Event& event) {
  METE_ASSERT(event.seq == last_seq_ + 1);
  last_seq_ = event.seq;
  std::visit([&](const auto& what) { on(what, event.at); }, event.what);
}

}  // namespace mete::core
