// SPDX-License-Identifier: Apache-2.0
// Sweeps on the queue's jobs: starting one, changing one, what its trials report, and the steps
// that follow by themselves. core/sweep says what is next; here that becomes events, with the jobs
// that are submitted and ended for it. See decide.h and state.h.
#include <algorithm>

#include "base/text.h"
#include "core/job/decide.h"

namespace mete::core {

namespace {

using sweep::SweepState;

constexpr std::size_t kMostPoints = 64;  // in one report
// A trial that asks for nothing yet: `--gpu auto` decides when it is drawn.
constexpr Bytes kLeastShare = Bytes::from_mib(512);

// The smallest card on which a trial of this request may run.
std::optional<Bytes> smallest_card(const Pool& machine, const Request& request) {
  std::optional<Bytes> least;
  for (const PoolCard& card : machine.cards) {
    if (request.gpu_type && card.card.type != *request.gpu_type) continue;
    if (card.card.capacity.is_zero()) continue;
    least = std::min(least.value_or(card.card.capacity), card.card.capacity);
  }
  return least;
}

// Any point of the space: all trials ask for the same, but for their command.
JobSpec first_job(const sweep::Plan& plan, std::uint64_t number) {
  const std::vector<double> middle(plan.space.parameters().size(), 0.5);
  std::optional<Bytes> share;
  if (plan.auto_gpu) share = kLeastShare;
  return job_of_trial(plan, number, 1, plan.space.at(middle), share);
}

Error no_such_sweep() {
  return Error::not_found("there is no such sweep").with_hint("mete sweep ls lists your sweeps");
}

Error is_over(const sweep::Sweep& sweep) {
  const std::string& name = sweep.plan().name;
  return Error::invalid("sweep " + name + " is over")
      .with_evidence(sweep.why())
      .with_hint("mete sweep extend " + name + " --trials 20 adds trials");
}

// A job that is cancelled for its sweep.
void end_job(const State& state, JobId id, const std::string& why,
             std::vector<Happened>& happened) {
  const Job* job = state.find(id);
  if (job == nullptr || job->state == JobState::kEnded) return;
  if (job->state == JobState::kPending)
    happened.emplace_back(JobEnded{id, Outcome::kCancelled, {}});
  else if (job->state != JobState::kStopping || job->requeue)
    happened.emplace_back(JobStopping{id, Outcome::kCancelled, false, why});
}

}  // namespace

// ---- what follows by itself --------------------------------------------------------------------

// One step of each sweep, and at most one new job.
void State::sweeps_due(const Moment& moment, std::vector<Happened>& happened) const {
  for (const auto& [number, sweep] : sweeps_.all()) {
    const Request& request = sweep.plan().job.request;
    std::optional<sweep::Step> step =
        sweep.next({moment.now, smallest_card(moment.machine, request)});
    if (!step) continue;
    if (auto* begin = std::get_if<sweep::Begin>(&*step)) {
      if (!moment.new_work) continue;
      const sweep::Trial* old = sweep.find(begin->n);
      JobSpec spec = job_of_trial(sweep.plan(), number, begin->n,
                                  begin->drawn ? *begin->drawn : old->point, begin->granted);
      const bool admin = spec.uid == 0 || spec.priority > 0;
      // No room in the queue, or in a quota: again when something has changed.
      if (!Decider(*this, moment).check_submit({spec, {}, true, admin})) continue;
      begin->job = JobId{last_job_ + 1};
      happened.emplace_back(SweepTrial{number, *std::move(begin)});
      happened.emplace_back(JobSubmitted{JobId{last_job_ + 1}, std::move(spec), {}});
      return;
    }
    if (const auto* end = std::get_if<sweep::EndTrial>(&*step))
      if (const std::optional<JobId> id = sweep.find(end->n)->job)
        end_job(*this, *id, end->why, happened);
    const std::uint64_t of = number;
    std::visit(
        [&](auto& what) {
          using What = std::decay_t<decltype(what)>;
          happened.insert(happened.begin(), OfSweep<What>{of, std::move(what)});
        },
        *step);
    return;
  }
}

// ---- inputs ------------------------------------------------------------------------------------

Decided Decider::on(const StartSweep& start) const {
  const sweep::Plan& plan = *start.plan;
  const std::uint32_t uid = plan.job.uid;
  if (const sweep::Sweep* known = state_.sweeps().find(uid, plan.name)) {
    // Asked again, since the first answer was lost.
    if (!plan.job.key.empty() && known->plan().job.key == plan.job.key)
      return std::vector<Happened>{};
    return Error::invalid("there is a sweep " + plan.name + " already")
        .with_evidence("it is " + std::string(to_string(known->state())) + ", with " +
                       std::to_string(known->trials().size()) + " trials")
        .with_hint("give another --name; or mete sweep resume, extend or rm " + plan.name);
  }
  if (state_.sweeps().count_of(uid) >= sweep::kMaxSweeps)
    return Error::exhausted("a user can have " + std::to_string(sweep::kMaxSweeps) + " sweeps")
        .with_hint("mete sweep rm NAME forgets one that is over");
  const std::uint64_t number = state_.sweeps().last() + 1;
  if (Result<void> r = check_submit({first_job(plan, number), {}, true, start.admin}); !r)
    return std::move(r).error();
  return std::vector<Happened>{SweepStarted{number, start.plan}};
}

Result<std::shared_ptr<const sweep::Plan>> Decider::extended(const sweep::Sweep& sweep,
                                                             const ChangeSweep& change) const {
  sweep::Plan plan = sweep.plan();
  if (change.trials > 0) {
    if (plan.sampling.method == sweep::Method::kLatin)
      return Error::invalid("a Latin hypercube cannot be extended")
          .with_hint("start another sweep with another --seed");
    if (plan.sampling.trials == 0)
      return Error::invalid("sweep " + plan.name + " tries all points of its space already")
          .with_hint("mete sweep extend " + plan.name + " --space FILE adds points");
    if (change.trials > sweep::kMaxTrials)
      return Error::invalid("a sweep has at most " + std::to_string(sweep::kMaxTrials) + " trials");
    plan.sampling.trials += change.trials;
  }
  if (change.space) {
    if (change.space->names() != plan.space.names())
      return Error::invalid("the new space has other parameters")
          .with_evidence("it has " + base::join(change.space->names(), ", ") + "; sweep " +
                         plan.name + " has " + base::join(plan.space.names(), ", "))
          .with_hint("start another sweep with another --name");
    plan.space = *change.space;
  }
  // The length of commands is checked by the caller, which knows the limit.
  Result<sweep::Plan> fine = sweep::checked(std::move(plan), kMaxSpecBytes);
  if (!fine) return std::move(fine).error();
  return std::make_shared<const sweep::Plan>(*std::move(fine));
}

Decided Decider::on(const ChangeSweep& change) const {
  const sweep::Sweep* sweep = state_.sweeps().find(change.sweep);
  if (sweep == nullptr || (!change.by.admin && sweep->plan().job.uid != change.by.uid))
    return no_such_sweep();
  const SweepState state = sweep->state();
  const auto to = [&](SweepState next) -> Decided {
    if (state == next) return std::vector<Happened>{};
    return std::vector<Happened>{SweepChanged{change.sweep, next, {}}};
  };
  switch (change.kind) {
    case ChangeSweep::Kind::kPause:
      return state == SweepState::kDone ? Decided(is_over(*sweep)) : to(SweepState::kPaused);
    case ChangeSweep::Kind::kStop:
      return state == SweepState::kDone ? Decided(is_over(*sweep)) : to(SweepState::kStopped);
    case ChangeSweep::Kind::kResume:
      return state == SweepState::kDone ? std::vector<Happened>{} : to(SweepState::kRunning);
    case ChangeSweep::Kind::kExtend: {
      Result<std::shared_ptr<const sweep::Plan>> plan = extended(*sweep, change);
      if (!plan) return std::move(plan).error();
      return std::vector<Happened>{
          SweepChanged{change.sweep, SweepState::kRunning, *std::move(plan)}};
    }
    case ChangeSweep::Kind::kRemove:
      if (sweep->active().empty() && state != SweepState::kRunning)
        return std::vector<Happened>{SweepRemoved{change.sweep}};
      return Error::busy("sweep " + sweep->plan().name + " still has trials that run or wait")
          .with_evidence(std::to_string(sweep->active().size()) + " trials")
          .with_hint("mete sweep stop " + sweep->plan().name);
  }
  return no_such_sweep();
}

Decided Decider::on(const TrialReport& report) const {
  const Result<const Job*> job = of_user(report.id, report.by_uid);
  if (!job) return job.error();
  const std::optional<sweep::TrialOf>& trial = (*job)->spec->trial;
  if (!trial) return Error::invalid("job " + to_string(report.id) + " is not a trial of a sweep");
  if (report.points.size() > kMostPoints)
    return Error::invalid("a report has at most " + std::to_string(kMostPoints) + " points");
  const sweep::Sweep* sweep = state_.sweeps().find(trial->sweep);
  const sweep::Trial* known = sweep == nullptr ? nullptr : sweep->find(trial->n);
  if (known == nullptr || known->job != report.id || !sweep->active().contains(trial->n) ||
      report.points.empty())
    return std::vector<Happened>{};
  return std::vector<Happened>{SweepReported{trial->sweep, {trial->n, report.points}}};
}

}  // namespace mete::core
