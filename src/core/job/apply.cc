// SPDX-License-Identifier: Apache-2.0
// See apply.h. State::enter() and leave() keep the indexes. Each on() takes the job out of them
// (step()), changes its fields and enters it again. Whatever follows from an end is applied with
// it: the user is charged, dependents are told, old jobs are forgotten. No event reads the clock:
// at_ is the time that was recorded with the event.
#include "core/job/apply.h"

#include <algorithm>

#include "base/assert.h"

namespace mete::core {

namespace {

// The correction of forecasts stays between a quarter and twenty.
constexpr std::uint32_t kLeastFactor = 250;
constexpr std::uint32_t kMostFactor = 20'000;

}  // namespace

Job& EventApplier::job_of(JobId id) {
  const auto found = state_.jobs_.find(id);
  METE_ASSERT(found != state_.jobs_.end());
  return found->second;
}

Job& EventApplier::step(JobId id, JobState to) {
  Job& job = job_of(id);
  METE_ASSERT(may_follow(job.state, to));
  state_.leave(job);
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

void EventApplier::on(const JobSubmitted& submitted) {
  METE_ASSERT(submitted.id.number == state_.last_job_ + 1 && !submitted.id.element);
  state_.last_job_ = submitted.id.number;
  const JobSpec& spec = *submitted.spec;
  Job job;
  job.id = submitted.id;
  job.spec = submitted.spec;
  job.runner = submitted.runner;
  job.submitted = at_;
  job.priority = spec.priority;
  job.held = spec.held;
  if (!spec.key.empty()) state_.keys_[{spec.uid, spec.key}] = job.id.number;
  // A dependency that is met already is left out; one that can never be met was refused.
  for (const After& after : spec.after)
    if (state_.ends_among(after.id).open > 0) job.unmet.push_back(after);
  const auto add = [&] {
    state_.enter(state_.jobs_.emplace(job.id, job).first->second);
    state_.users_.hold(job);
  };
  if (!spec.array) {
    add();
  } else {
    for (const std::uint32_t element : elements_of(*spec.array)) {
      job.id.element = element;
      add();
      state_.history_.open(job.id);
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

void EventApplier::on(const JobGranted& granted) {
  Job& job = step(granted.id, JobState::kStarting);
  job.grant = granted.cards;
  job.unmet.clear();  // old logs have jobs that did not wait for a requeued job
  state_.enter(job);
  score_forecast(job);
}

void EventApplier::score_forecast(Job& job) {
  if (!job.forecast) return;
  const bool held = at_ <= job.forecast->by;
  job.forecast.reset();  // each is scored once, even if the launch fails and the job waits again
  ++state_.score_.given;
  if (held) ++state_.score_.held;
  // One step down for each forecast that held, four up for each that did not: 0.98^4 * 1.0842 is 1,
  // so the factor settles where 80 of 100 hold.
  if (held)
    state_.score_.factor_milli = std::max(kLeastFactor, state_.score_.factor_milli * 49 / 50);
  else
    state_.score_.factor_milli =
        std::min(kMostFactor, state_.score_.factor_milli * 2711 / 2500 + 1);
}

void EventApplier::charge(const Job& job, const std::optional<Exit>& exit) {
  if (!job.started) return;
  const std::uint64_t passed =
      at_.ms > job.started->ms ? static_cast<std::uint64_t>(at_.ms - job.started->ms) : 0;
  const std::uint64_t ran_ms = exit && exit->ran_ms ? *exit->ran_ms : passed;
  const std::uint32_t cpus =
      std::max(1u, cpus_of(job.spec->request, job.spec->detached.has_value()));
  state_.fair_.charge(job.spec->user, cost_of(job, ran_ms, cpus, at_), at_);
  const bool by_itself = job.state != JobState::kStopping && exit && !exit->not_started;
  if (by_itself) state_.estimates_.learn(*job.spec, ran_ms - std::min(ran_ms, parked_ms(job, at_)));
}

void EventApplier::on(const JobEnded& ended) {
  const Job& before = job_of(ended.id);
  if (before.state != JobState::kPending) charge(before, ended.exit);
  // A job cancelled after its forecast had passed counts as a missed forecast.
  const bool waited_in_vain = before.state == JobState::kPending && before.forecast &&
                              at_ > before.forecast->by && ended.outcome == Outcome::kCancelled;
  Job& job = step(ended.id, JobState::kEnded);
  if (waited_in_vain) score_forecast(job);
  job.forecast.reset();
  job.outcome = ended.outcome;
  job.exit = ended.exit;
  job.ended = at_;
  job.held = false;
  job.put_off.reset();
  job.requeue = false;
  job.park.reset();
  job.idle.reset();
  job.unmet.clear();
  state_.enter(job);
  state_.users_.close(job);
  state_.sweeps_.job_ended(job, at_);
  tell_dependents(job);
  forget_old(job.spec->user);
}

void EventApplier::on(const JobRequeued& requeued) {
  Job& job = job_of(requeued.id);
  METE_ASSERT(job.state != JobState::kPending && job.spec->detached);
  state_.history_.requeued(job.id);
  const bool was_ended = job.state == JobState::kEnded;
  if (!was_ended) charge(job, requeued.exit);
  state_.leave(job);
  if (was_ended) state_.users_.reopen(job);
  if (was_ended && job.id.element) state_.history_.reopen(job);
  // A user requeued the job (it is not a retry): dependencies that run again count again.
  if (was_ended || job.requeue)
    for (const After& after : job.spec->after)
      if (!state_.in_vain(after)) job.unmet.push_back(after);
  const bool counts = !was_ended && !job.requeue && requeued.outcome != Outcome::kLost;
  if (job.attempts.size() == kAttemptsKept) job.attempts.erase(job.attempts.begin());
  job.attempts.push_back(
      {job.attempt, job.started, was_ended ? *job.ended : at_, requeued.outcome, requeued.exit});
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
  state_.enter(job);
  state_.sweeps_.job_waits(job);
}

void EventApplier::on(const JobPriority& priority) {
  Job& job = job_of(priority.id);
  METE_ASSERT(job.state != JobState::kEnded);
  const bool doomed = state_.dependencies_.is_doomed(job.id);
  state_.leave(job);
  job.priority = priority.priority;
  job.forecast.reset();  // was for another place in the queue
  state_.enter(job);
  if (doomed) state_.dependencies_.doom(job.id);
}

// ---- dependencies ------------------------------------------------------------------------------

void EventApplier::tell_dependents(const Job& job) {
  tell_dependents_of(job.id, has_failed(job));
  if (!job.id.element) return;
  const Ends& array = state_.history_.close(job);
  const JobId whole{job.id.number};
  if (array.open == 0) {
    tell_dependents_of(whole, array.failed > 0);
  } else if (array.failed > 0) {
    // The array as a whole can no longer succeed.
    for (const JobId id : state_.dependencies_.on(whole))
      for (const After& after : state_.jobs_.at(id).unmet)
        if (after.id == whole && after.when == When::kOk) state_.dependencies_.doom(id);
  }
}

void EventApplier::tell_dependents_of(JobId target, bool failed) {
  const std::set<JobId> dependents = state_.dependencies_.on(target);  // changes in the loop
  for (const JobId id : dependents) {
    Job& job = job_of(id);
    const auto met = [&](const After& after) {
      return after.id == target &&
             (after.when == When::kAny || (after.when == When::kFail) == failed);
    };
    const bool was_doomed = state_.dependencies_.is_doomed(id);
    state_.leave(job);
    std::erase_if(job.unmet, met);
    state_.enter(job);
    const bool in_vain = std::any_of(job.unmet.begin(), job.unmet.end(),
                                     [&](const After& after) { return after.id == target; });
    if (was_doomed || in_vain) state_.dependencies_.doom(id);
  }
}

// ---- the other events --------------------------------------------------------------------------

void EventApplier::on(const JobStarted& started) {
  Job& job = step(started.id, JobState::kRunning);
  job.program = started.program;
  job.put_off.reset();
  if (started.runner) job.runner = started.runner;
  job.started = WallTime{at_.ms - static_cast<std::int64_t>(started.ago_ms)};
  state_.enter(job);
  state_.sweeps_.job_started(job, *job.started);
}

// For a job that is being ended already: the reason changes.
void EventApplier::on(const JobStopping& stopping) {
  Job& job = job_of(stopping.id);
  METE_ASSERT(job.state == JobState::kStopping || may_follow(job.state, JobState::kStopping));
  state_.leave(job);
  job.state = JobState::kStopping;
  job.outcome = stopping.why;
  job.requeue = stopping.requeue;
  job.stopped = stopping.note;
  state_.enter(job);
}

void EventApplier::on(const JobUngranted& ungranted) {
  Job& job = step(ungranted.id, JobState::kPending);
  job.grant.clear();
  job.runner.reset();
  if (ungranted.not_before) {
    job.not_before = ungranted.not_before;
    job.put_off = PutOff{ungranted.why, job.put_off ? job.put_off->times + 1 : 1};
  }
  state_.enter(job);
}

void EventApplier::set_held(JobId id, bool held) {
  Job& job = job_of(id);
  METE_ASSERT(job.state == JobState::kPending);
  const bool doomed = state_.dependencies_.is_doomed(id);
  state_.leave(job);
  job.held = held;
  job.forecast.reset();  // was made before this
  state_.enter(job);
  if (doomed) state_.dependencies_.doom(id);
}

void EventApplier::on(const JobHeld& held) { set_held(held.id, true); }
void EventApplier::on(const JobReleased& released) { set_held(released.id, false); }
void EventApplier::on(const JobForecast& told) { job_of(told.id).forecast = told.forecast; }
void EventApplier::on(const CardLost& card) { state_.lost_.insert(card.uuid); }
void EventApplier::on(const CardBack& card) { state_.lost_.erase(card.uuid); }
void EventApplier::on(const CardDrained& card) { state_.admin_.apply(card); }
void EventApplier::on(const CardUndrained& card) { state_.admin_.apply(card); }
void EventApplier::on(const QuotaSet& set) { state_.admin_.apply(set); }
void EventApplier::on(const Reserved& reserved) { state_.admin_.apply(reserved); }
void EventApplier::on(const Unreserved& unreserved) { state_.admin_.apply(unreserved); }
void EventApplier::on(const Booted& booted) { state_.boot_id_ = booted.boot_id; }
void EventApplier::on(const Repaired& repaired) {
  state_.last_job_ = std::max(state_.last_job_ + repaired.lost_events, repaired.last_job);
}

// ---- forgetting --------------------------------------------------------------------------------

void EventApplier::forget_old(const std::string& of) {
  const std::string user = of;  // `of` may be in a job that is erased
  std::size_t spare = state_.history_.too_many(user, state_.rules_.ended_kept);
  if (spare == 0) return;
  state_.history_.forget_oldest(
      user, state_.jobs_, [&] { return spare == 0; },
      [&](const Job& job) {
        --spare;
        drop(job);
      });
}

// Forgets the user's oldest ended jobs when all of them take more than allowed. Forgets more than
// needed, so that the list of all users is not read for each new job.
void EventApplier::forget_for_room(const std::string& of) {
  const std::string user = of;  // `of` may be in a job that is erased
  const Account& known = state_.users_.of(user).known;
  if (known.bytes() <= state_.rules_.user_bytes || !state_.history_.has_ended_jobs(user)) return;
  const std::uint64_t most = state_.rules_.user_bytes - state_.rules_.user_bytes / 10;
  state_.history_.forget_oldest(
      user, state_.jobs_, [&] { return known.bytes() <= most; },
      [&](const Job& job) { drop(job); });
}

void EventApplier::drop(const Job& forgotten) {
  const JobSpec& spec = *forgotten.spec;
  state_.users_.leave(forgotten);
  state_.users_.drop(forgotten);
  state_.jobs_.erase(forgotten.id);
  if (!spec.key.empty() && state_.first_of({forgotten.id.number}) == nullptr)
    state_.keys_.erase({spec.uid, spec.key});
}

void State::apply(const Event& event) {
  METE_ASSERT(event.seq == last_seq_ + 1);
  last_seq_ = event.seq;
  EventApplier applier(*this, event.at);
  std::visit([&](const auto& what) { applier.on(what); }, event.what);
}

}  // namespace mete::core
