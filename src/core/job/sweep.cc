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

// All trials ask for the same, but for their command and, with `--gpu auto`, their share.
JobSpec job_of_any(const sweep::Plan& plan) {
  JobSpec spec = plan.job;
  spec.key.clear();
  if (plan.auto_gpu) spec.request.gpu = GpuRequest{{CardCount::Kind::kOne, 0}, Size{kLeastShare}};
  return spec;
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

// Only an administrator may have started it with such a priority.
bool is_admin(const sweep::Sweep& sweep) {
  return sweep.plan().job.uid == 0 || sweep.plan().job.priority > 0;
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

// One step of one sweep, with at most one new job. The sweeps have their turn one after another:
// the caller says with which to begin.
void State::sweeps_due(const Moment& moment, std::vector<Happened>& happened) const {
  if (moment.sweeps_from == Moment::kNoSweeps) return;
  const auto& all = sweeps_.all();
  auto at = all.lower_bound(moment.sweeps_from);
  for (std::size_t i = 0; i < all.size(); ++i, ++at) {
    if (at == all.end()) at = all.begin();
    if (sweep_due(at->second, moment, happened)) return;
  }
}

std::string State::why_blocked(const sweep::Sweep& sweep, const Moment& moment) const {
  if (!sweep.may_begin_more()) return "";
  if (sweep.plan().auto_gpu && !smallest_card(moment.machine, sweep.plan().job.request))
    return "no card was read yet on which a trial may run";
  const Result<void> fine =
      Decider(*this, moment).check_submit({job_of_any(sweep.plan()), {}, true, is_admin(sweep)});
  return fine ? "" : fine.error().message;
}

bool State::sweep_due(const sweep::Sweep& sweep, const Moment& moment,
                      std::vector<Happened>& happened) const {
  const std::uint64_t number = sweep.number();
  const Decider decider(*this, moment);
  const auto may_begin = [&] {
    return moment.new_work &&
           decider.check_submit({job_of_any(sweep.plan()), {}, true, is_admin(sweep)}).ok();
  };
  const auto peak_of = [&](JobId id) -> std::optional<Bytes> {
    if (moment.peaks == nullptr || !moment.peaks->contains(id)) return std::nullopt;
    return moment.peaks->at(id);
  };
  std::optional<sweep::Step> step = sweep.next(
      {moment.now, smallest_card(moment.machine, sweep.plan().job.request), may_begin, peak_of});
  if (!step) return false;
  if (auto* begin = std::get_if<sweep::Begin>(&*step)) {
    const sweep::Trial* old = sweep.find(begin->n);
    JobSpec spec = job_of_trial(sweep.plan(), number, begin->n,
                                begin->drawn ? *begin->drawn : old->point, begin->granted);
    // No room in the queue, or in a quota: again when something has changed.
    if (!decider.check_submit({spec, {}, true, is_admin(sweep)})) return false;
    begin->job = JobId{last_job_ + 1};
    happened.emplace_back(SweepTrial{number, *std::move(begin)});
    happened.emplace_back(JobSubmitted{JobId{last_job_ + 1}, std::move(spec), {}});
    return true;
  }
  if (const auto* end = std::get_if<sweep::EndTrial>(&*step))
    if (const std::optional<JobId> id = sweep.find(end->n)->job)
      end_job(*this, *id, end->why, happened);
  std::visit(
      [&](auto& what) {
        using What = std::decay_t<decltype(what)>;
        happened.insert(happened.begin(), OfSweep<What>{number, std::move(what)});
      },
      *step);
  return true;
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
        .with_hint(known->state() == SweepState::kDone
                       ? "give another --name; or mete sweep extend " + plan.name +
                             " --trials N, or mete sweep rm " + plan.name
                       : "give another --name; or mete sweep follow " + plan.name);
  }
  if (state_.sweeps().count_of(uid) >= sweep::kMaxSweeps)
    return Error::exhausted("a user can have " + std::to_string(sweep::kMaxSweeps) + " sweeps")
        .with_hint("mete sweep rm NAME forgets one that is over");
  const std::uint64_t number = state_.sweeps().last() + 1;
  if (Result<void> r = check_sweep_bytes(plan.job, bytes_of(plan)); !r) return std::move(r).error();
  if (Result<void> r = check_submit({job_of_any(plan), {}, true, start.admin}); !r)
    return std::move(r).error();
  return std::vector<Happened>{SweepStarted{number, start.plan}};
}

Result<std::shared_ptr<const sweep::Plan>> Decider::extended(const sweep::Sweep& sweep,
                                                             const ChangeSweep& change) const {
  sweep::Plan plan = sweep.plan();
  const std::uint64_t made = sweep.trials().size();
  const std::optional<std::uint64_t> points = sweep.wanted();
  if (change.trials > 0) {
    if (plan.sampling.method == sweep::Method::kLatin)
      return Error::invalid("a Latin hypercube cannot be extended")
          .with_hint("start another sweep with another --seed");
    if (!change.space && sweep.has_tried_all())
      return Error::invalid("sweep " + plan.name + " has tried all points of its space")
          .with_evidence(std::to_string(made) + " trials")
          .with_hint("mete sweep extend " + plan.name + " --space FILE adds points");
    if (change.trials > sweep::kMaxTrials)
      return Error::invalid("a sweep has at most " + std::to_string(sweep::kMaxTrials) + " trials");
    // A sweep of all points has no number of its own: this one is for those that are left.
    if (plan.sampling.trials != 0)
      plan.sampling.trials += change.trials;
    else if (points && made + change.trials < *points)
      plan.sampling.trials = made + change.trials;
  } else if (change.space && plan.sampling.trials != 0 && made >= plan.sampling.trials) {
    return Error::invalid("sweep " + plan.name + " has run its " + std::to_string(made) + " trials")
        .with_hint("mete sweep extend " + plan.name + " --space FILE --trials N");
  }
  // What ended the sweep does not end it again at once.
  if (plan.until && *plan.until <= moment_.now) plan.until.reset();
  if (plan.for_s && sweep.ended()) plan.for_s.reset();
  const std::uint64_t failed = sweep.count(sweep::TrialState::kFailed);
  if (plan.max_failures != 0 && failed >= plan.max_failures) plan.max_failures += failed;
  if (change.space) {
    if (change.space->names() != plan.space.names())
      return Error::invalid("the new space has other parameters")
          .with_evidence("it has " + base::join(change.space->names(), ", ") + "; sweep " +
                         plan.name + " has " + base::join(plan.space.names(), ", "))
          .with_hint("start another sweep with another --name");
    plan.space = *change.space;
  }
  if (change.space)
    if (Result<void> r = check_sweep_bytes(plan.job, bytes_of(plan)); !r)
      return std::move(r).error();
  Result<sweep::Plan> fine = sweep::checked(std::move(plan));
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
  if ((*job)->state == JobState::kPending)
    return Error::invalid("job " + to_string(report.id) + " does not run");
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
