// SPDX-License-Identifier: Apache-2.0
// See decide.h. Submitting, and the inputs of runners, keepers and users. Each on() looks its job
// up, answers an error if the caller or the state does not allow the request, and otherwise returns
// the events that follow. The end of an attempt comes to after_attempt(), which decides between
// JobEnded and JobRequeued.
#include "core/job/decide.h"

#include <algorithm>
#include <functional>
#include <set>

#include "base/assert.h"
#include "base/text.h"
#include "core/order/preempt.h"

namespace mete::core {

namespace {

std::vector<Happened> one(Happened what) {
  std::vector<Happened> list;
  list.push_back(std::move(what));
  return list;
}

Error no_such_job(JobId id) {
  return Error::not_found("there is no job " + to_string(id)).with_hint("mete ps lists your jobs");
}

Error ended_already(const Job& job) {
  return Error::invalid("job " + to_string(job.id) + " has ended")
      .with_evidence("outcome " + std::string(to_string(*job.outcome)) + ", at " +
                     to_string(*job.ended))
      .with_hint("mete requeue " + to_string(job.id) + " runs it again");
}

// Failures that another attempt may avoid.
bool counts_as_failure(Outcome outcome) {
  return outcome == Outcome::kFailed || outcome == Outcome::kSignal ||
         outcome == Outcome::kGpuOom || outcome == Outcome::kRamOom;
}

// Attempts with more memory, where --retries does not set a number.
constexpr std::uint32_t kMaxGrowths = 3;

// `pct` percent of what was asked for on each card, or all of a card where no card has that much.
// nullopt: the job had all there is.
std::optional<GpuRequest> grown(const Request& asked, std::uint32_t pct, const Pool& machine) {
  if (!asked.gpu) return std::nullopt;
  Request more = asked;
  if (auto* fraction = std::get_if<Fraction>(&more.gpu->memory)) {
    if (fraction->milli >= 1000) return std::nullopt;
    const std::uint64_t milli = (std::uint64_t{fraction->milli} * pct + 99) / 100;
    fraction->milli = static_cast<std::uint32_t>(std::min<std::uint64_t>(1000, milli));
    return GpuRequest{more.gpu->cards, more.gpu->memory};
  }
  auto* size = std::get_if<Size>(&more.gpu->memory);
  if (size == nullptr) return std::nullopt;  // a whole card cannot grow
  const Bytes before = size->bytes;
  // Rounded up, so that a small share grows at all.
  const Bytes exact = before.checked_scale(pct, 100).value_or(before);
  const Bytes wanted =
      exact.round_down(kGranule) + (exact == exact.round_down(kGranule) ? Bytes() : kGranule);
  if (machine.cards.empty()) return GpuRequest{asked.gpu->cards, Size{wanted}};  // not seen yet
  std::set<Bytes, std::greater<>> sizes = {wanted};
  for (const PoolCard& card : machine.cards)
    sizes.insert(std::min(wanted, card.card.capacity.round_down(kGranule)));
  for (const Bytes bytes : sizes) {
    size->bytes = bytes;
    if (bytes > before && can_ever(machine, more))
      return GpuRequest{more.gpu->cards, more.gpu->memory};
  }
  return std::nullopt;
}

}  // namespace

Outcome outcome_of(const Exit& exit) {
  if (exit.not_started) return Outcome::kLaunchFailed;
  if (exit.timed_out) return Outcome::kTimeout;
  if (exit.code == 0) return Outcome::kOk;
  if (exit.ram_oom) return Outcome::kRamOom;
  if (exit.gpu_oom) return Outcome::kGpuOom;
  return exit.signal ? Outcome::kSignal : Outcome::kFailed;
}

Decided State::decide(const Input& input, const Moment& moment) const {
  return Decider(*this, moment).decide(input);
}

Decided Decider::decide(const Input& input) const {
  return std::visit([this](const auto& what) -> Decided { return on(what); }, input);
}

// ---- submitting --------------------------------------------------------------------------------

Result<void> Decider::check_after(const JobSpec& spec, bool admin) const {
  if (spec.after.size() > kMaxAfter)
    return Error::invalid("a job can wait for at most " + std::to_string(kMaxAfter) + " others");
  for (const After& after : spec.after) {
    const std::vector<const Job*> targets = state_.find_all(after.id);
    if (targets.empty() || (!admin && targets.front()->spec->uid != spec.uid))
      return Error::not_found("--after " + to_string(after.id) + ": there is no such job")
          .with_hint("mete ps -a lists your jobs");
    const Ends ends = state_.ends_among(after.id);
    const bool one_failed = ends.failed > 0;
    if ((after.when == When::kOk && one_failed) ||
        (after.when == When::kFail && ends.open == 0 && !one_failed))
      return Error::infeasible("--after " + to_string(after.id) + ":" +
                               std::string(to_string(after.when)) + " can never be")
          .with_evidence("job " + to_string(after.id) +
                         (one_failed ? " has failed" : " has ended well"));
  }
  return {};
}

Result<void> Decider::check_quota(const JobSpec& spec) const {
  if (state_.quotas().empty()) return {};
  PassInput input;
  input.quotas = state_.quotas();
  const Quota quota = input.quota_of(spec.user);
  const std::size_t more = spec.array ? count_of(*spec.array) : 1;
  const std::string hint = "mete quota shows what " + spec.user + " may have";
  if (quota.jobs && state_.unfinished_of(spec.user) + more > *quota.jobs)
    return Error::exhausted(spec.user + " may have " + std::to_string(*quota.jobs) +
                            " unfinished jobs")
        .with_evidence("there are " + std::to_string(state_.unfinished_of(spec.user)) +
                       (more > 1 ? ", and these are " + std::to_string(more) + " more" : ""))
        .with_hint(hint);
  if (quota.disk && spec.detached && state_.disk_of(spec.user) >= *quota.disk)
    return Error::exhausted("the logs of " + spec.user + " may take " + to_string(*quota.disk))
        .with_evidence("they take " + to_string(state_.disk_of(spec.user)))
        .with_hint(hint);
  const std::optional<Placement> alone = place_now(moment_.machine, spec.request, moment_.policy);
  if (!alone) return {};
  if (const auto why = never_within(quota, held_of(alone->cards)))
    return Error::infeasible("this is more than " + spec.user + " may have at all")
        .with_evidence(*why)
        .with_hint(hint);
  return {};
}

// More CPUs or memory than the machine has can never be granted.
Result<void> Decider::check_machine(const Request& request) const {
  if (request.cpus && rules_.machine_cpus && *request.cpus > *rules_.machine_cpus) {
    const std::string most = std::to_string(*rules_.machine_cpus);
    return Error::infeasible("--cpus " + std::to_string(*request.cpus) + " can never fit here")
        .with_evidence("this machine has " + most + (most == "1" ? " CPU" : " CPUs"))
        .with_hint("--cpus " + most + " would fit");
  }
  if (request.ram && rules_.machine_ram && *request.ram > *rules_.machine_ram)
    return Error::infeasible("--ram " + base::to_exact_string(*request.ram) + " can never fit here")
        .with_evidence("this machine has " + to_string(*rules_.machine_ram) + " of memory")
        .with_hint("--ram " + base::to_short_size(*rules_.machine_ram) + " would fit");
  return {};
}

Result<void> Decider::check_submit(const Submit& submit) const {
  const JobSpec& spec = submit.spec;
  if (Result<void> r = check_bounds(submit); !r) return r;
  if (spec.priority > kMaxPriority || spec.priority < -kMaxPriority)
    return Error::invalid("a priority is between -" + std::to_string(kMaxPriority) + " and " +
                          std::to_string(kMaxPriority));
  if (spec.priority > 0 && !submit.admin)
    return Error::denied("a priority above 0 is an administrator's to give")
        .with_hint("leave --priority out, or ask for less than 0");
  std::size_t label_bytes = 0;
  for (const auto& [key, value] : spec.labels) label_bytes += key.size() + value.size();
  if (spec.name.size() > kMaxNameBytes || label_bytes > kMaxLabelBytes)
    return Error::invalid("a name has at most " + std::to_string(kMaxNameBytes) +
                          " bytes, and all labels of a job " + std::to_string(kMaxLabelBytes));
  if (!spec.detached && (spec.array || spec.retries > 0 || spec.retry_gpu_pct || spec.requeue))
    return Error::invalid("arrays and other attempts are for jobs of mete submit");
  if (spec.time_s && *spec.time_s > kMaxTimeS)
    return Error::invalid("a time limit is at most ten years")
        .with_hint("leave --time out for none");
  if (spec.deadline && *spec.deadline <= moment_.now)
    return Error::invalid("the deadline " + to_string(*spec.deadline) + " is over");
  const std::int64_t begins = std::max(moment_.now.ms, spec.begin ? spec.begin->ms : 0);
  const std::int64_t takes = static_cast<std::int64_t>(spec.time_s.value_or(0)) * 1000;
  if (spec.deadline && begins + takes > spec.deadline->ms)
    return Error::infeasible("it cannot be over by its deadline")
        .with_evidence("it may begin at " + to_string(WallTime{begins}) + " and run for " +
                       base::duration_in_words(takes / 1000))
        .with_hint("give it less --time, or a later --deadline");
  if (Result<void> r = check_after(spec, submit.admin); !r) return r;
  if (spec.shed && !(spec.request.gpu && std::holds_alternative<Growing>(spec.request.gpu->memory)))
    return Error::invalid("--shed is for shares that grow").with_hint("say --gpu 8G..20G");
  if (Result<void> r = check_machine(spec.request); !r) return r;
  Request request = spec.request;
  request.parkable = is_parkable(spec);
  if (Result<void> r = can_ever(moment_.machine, request); !r) return r;
  return check_quota(spec);
}

Decided Decider::on(const Submit& submit) const {
  if (Result<void> r = check_submit(submit); !r) return std::move(r).error();
  if (!submit.wait && state_.would_wait(submit, moment_)) return no_room_now();
  return one(JobSubmitted{JobId{state_.last_job() + 1}, submit.spec, submit.runner});
}

// The job starts at once only if no job before it in the queue has a better claim.
std::optional<Wait> State::would_wait(const Submit& submit, const Moment& moment) const {
  Job last;
  last.id = JobId{last_job_ + 1};
  last.spec = submit.spec;
  last.submitted = moment.now;
  const Kind kind = kind_of(last);
  const Sight sight = look(moment);
  const bool gated = submit.spec.held || !submit.spec.after.empty() ||
                     (submit.spec.begin && *submit.spec.begin > moment.now);
  if (!gated && !blocked(sight.input, sight.result, kind)) return std::nullopt;
  for (const Pool& pool : {with_grants(moment.machine), sight.result.left}) {
    Decision decision = place(seen_by(sight.input, pool, kind), kind.request, moment.policy);
    if (auto* wait = std::get_if<Wait>(&decision)) return std::move(*wait);
  }
  Wait turn;
  turn.reason = Reason::kPriority;
  return turn;
}

// ---- reports of runners and keepers ------------------------------------------------------------

Result<const Job*> Decider::of_user(JobId id, std::uint32_t uid) const {
  const Job* job = state_.find(id);
  // Another user's job does not exist for a user who is not root.
  if (job == nullptr || (uid != 0 && uid != job->spec->uid)) return no_such_job(id);
  return job;
}

Decided Decider::on(const Started& started) const {
  const Result<const Job*> job = of_user(started.id, started.by_uid);
  if (!job) return job.error();
  if ((*job)->state == JobState::kStarting)
    return one(JobStarted{started.id, started.program, started.ago_ms, started.runner});
  if ((*job)->program == started.program) return std::vector<Happened>{};
  return Error::busy("job " + to_string(started.id) + " is not waiting for its program")
      .with_evidence("it is " + std::string(to_string((*job)->state)));
}

Happened Decider::after_attempt(const Job& job, Outcome outcome, std::optional<Exit> exit) const {
  const JobSpec& spec = *job.spec;
  JobRequeued again{job.id, outcome, exit, job.gpu, std::nullopt};
  if (job.state == JobState::kStopping && job.requeue) return again;
  // Only its caller could start a job of `mete run` again.
  const bool failed =
      spec.detached && job.state != JobState::kStopping && counts_as_failure(outcome);
  const std::uint32_t failures = job.failures + 1;
  if (failed && outcome == Outcome::kGpuOom && spec.retry_gpu_pct &&
      failures <= (spec.retries == 0 ? kMaxGrowths : spec.retries)) {
    if (auto more = grown(request_of(job), *spec.retry_gpu_pct, moment_.machine)) {
      again.gpu = more;
      return again;
    }
  }
  if (failed && failures <= spec.retries) {
    const std::uint64_t pause =
        std::min<std::uint64_t>(rules_.retry_pause_s << std::min(failures - 1, 10u), 600);
    again.not_before = WallTime{moment_.now.ms + static_cast<std::int64_t>(pause * 1000)};
    return again;
  }
  if (outcome == Outcome::kLost && spec.requeue && spec.detached) return again;
  return JobEnded{job.id, outcome, std::move(exit)};
}

Decided Decider::on(const Ended& ended) const {
  const Result<const Job*> job = of_user(ended.id, ended.by_uid);
  if (!job) return job.error();
  switch ((*job)->state) {
    case JobState::kEnded:
      return std::vector<Happened>{};
    case JobState::kPending:
      return Error::busy("job " + to_string(ended.id) + " has not started");
    case JobState::kStopping:
      return one(after_attempt(**job, *(*job)->outcome, ended.exit));
    default:
      break;
  }
  if ((*job)->state == JobState::kStarting && (*job)->spec->detached && ended.exit.not_now)
    return one(put_off(**job, ended.exit.note));
  std::vector<Happened> happened;
  if ((*job)->state == JobState::kStarting && ended.program)
    happened.emplace_back(JobStarted{ended.id, *ended.program, ended.ago_ms, (*job)->runner});
  happened.push_back(after_attempt(**job, outcome_of(ended.exit), ended.exit));
  return happened;
}

std::vector<Happened> Decider::on(const RunnerGone& gone) const {
  const Job* job = state_.find(gone.id);
  if (job == nullptr) return {};
  switch (job->state) {
    case JobState::kEnded:
    case JobState::kStopping:
      return {};
    case JobState::kPending:
      // A keeper that was let go of: its job waits for another one.
      if (job->spec->detached) return {};
      return one(JobEnded{gone.id, Outcome::kCancelled, {}});
    default:
      // No process is left that could report the exit. With `run --exec` there never was one: the
      // runner became the program, and has ended as it should.
      return one(
          JobStopping{gone.id, is_its_own_runner(*job) ? Outcome::kUnknown : Outcome::kLost});
  }
}

std::vector<Happened> Decider::on(const JobGone& gone) const {
  const Job* job = state_.find(gone.id);
  if (job == nullptr || job->state != JobState::kStopping) return {};
  return one(after_attempt(*job, *job->outcome, {}));
}

std::vector<Happened> Decider::on(const NotLaunched& failed) const {
  const Job* job = state_.find(failed.id);
  if (job == nullptr || !job->spec->detached) return {};
  if (job->state == JobState::kStopping) return one(after_attempt(*job, *job->outcome, {}));
  if (job->state != JobState::kStarting) return {};
  if (failed.why.empty()) return one(JobUngranted{failed.id});
  if (failed.later) return one(put_off(*job, failed.why));
  Exit exit;
  exit.not_started = true;
  exit.note = failed.why;
  return one(JobEnded{failed.id, Outcome::kLaunchFailed, std::move(exit)});
}

// Retries after 1, 2, 4, ... 30 seconds. All such jobs together are retried at most about ten times
// a second: each retry is two synced events and perhaps a process. They are retried until they
// start or are cancelled, since no acknowledged job may be lost.
Happened Decider::put_off(const Job& job, std::string why) const {
  constexpr std::int64_t kLongestMs = 30'000;
  constexpr std::int64_t kEachMs = 100;
  constexpr std::int64_t kLongestOfManyMs = 600'000;
  const std::uint32_t times = job.put_off ? job.put_off->times : 0;
  const std::int64_t own = std::min(std::int64_t{1000} << std::min(times, 5u), kLongestMs);
  const std::int64_t others =
      std::min(static_cast<std::int64_t>(state_.put_off().size()) * kEachMs, kLongestOfManyMs);
  return JobUngranted{job.id, std::move(why), WallTime{moment_.now.ms + std::max(own, others)}};
}

std::vector<Happened> Decider::on(const Overdue& overdue) const {
  if (!state_.active().contains(overdue.id) ||
      state_.jobs().at(overdue.id).state == JobState::kStopping)
    return {};
  return one(JobStopping{overdue.id, Outcome::kTimeout});
}

std::vector<Happened> Decider::on(const Foretold& foretold) const {
  const Job* job = state_.find(foretold.id);
  if (job == nullptr || job->state != JobState::kPending || job->forecast) return {};
  return one(JobForecast{foretold.id, foretold.forecast});
}

std::vector<Happened> Decider::on(const Look&) const {
  std::vector<Happened> happened;
  for (const PoolCard& card : moment_.machine.cards) {
    const bool known = state_.lost_cards().contains(card.card.uuid);
    if (card.lost && !known) happened.emplace_back(CardLost{card.card.uuid});
    if (!card.lost && known) happened.emplace_back(CardBack{card.card.uuid});
  }
  return happened;
}

// ---- requests of users -------------------------------------------------------------------------

Result<std::vector<const Job*>> Decider::of_caller(JobId id, const Caller& by) const {
  std::vector<const Job*> jobs = state_.find_all(id);
  if (jobs.empty() || (!by.admin && by.uid != jobs.front()->spec->uid)) return no_such_job(id);
  return jobs;
}

Decided Decider::on(const Cancel& cancel) const {
  const Result<std::vector<const Job*>> jobs = of_caller(cancel.id, cancel.by);
  if (!jobs) return jobs.error();
  std::vector<Happened> happened;
  bool unfinished = false;
  for (const Job* job : *jobs) {
    if (job->state == JobState::kEnded) continue;
    unfinished = true;
    // A job that is being ended and would wait again afterwards.
    const bool would_return =
        job->requeue || (job->outcome == Outcome::kLost && job->spec->requeue);
    if (job->state == JobState::kPending)
      happened.emplace_back(JobEnded{job->id, Outcome::kCancelled, {}});
    else if (job->state != JobState::kStopping || would_return)
      happened.emplace_back(JobStopping{job->id, Outcome::kCancelled, false});
  }
  if (!unfinished) return ended_already(*jobs->back());
  return happened;
}

Decided Decider::on(const Hold& hold) const {
  const Result<std::vector<const Job*>> jobs = of_caller(hold.id, hold.by);
  if (!jobs) return jobs.error();
  std::vector<Happened> happened;
  bool waits = false;
  for (const Job* job : *jobs) {
    if (job->state != JobState::kPending) continue;
    waits = true;
    if (!job->held) happened.emplace_back(JobHeld{job->id});
  }
  if (waits) return happened;
  if (jobs->back()->state == JobState::kEnded) return ended_already(*jobs->back());
  return Error::invalid("job " + to_string(hold.id) + " runs already")
      .with_hint("mete requeue " + to_string(hold.id) + " puts it back in line");
}

Decided Decider::on(const Release& release) const {
  const Result<std::vector<const Job*>> jobs = of_caller(release.id, release.by);
  if (!jobs) return jobs.error();
  std::vector<Happened> happened;
  for (const Job* job : *jobs)
    if (job->state == JobState::kPending && job->held) happened.emplace_back(JobReleased{job->id});
  if (happened.empty() && jobs->back()->state == JobState::kEnded)
    return ended_already(*jobs->back());
  if (happened.empty()) return Error::invalid("job " + to_string(release.id) + " is not held");
  return happened;
}

Decided Decider::on(const Requeue& requeue) const {
  const Result<std::vector<const Job*>> jobs = of_caller(requeue.id, requeue.by);
  if (!jobs) return jobs.error();
  std::vector<Happened> happened;
  bool waits = true;
  const auto over = static_cast<std::uint64_t>(std::count_if(
      jobs->begin(), jobs->end(), [](const Job* job) { return job->state == JobState::kEnded; }));
  if (const Job& first = *jobs->front(); over > 0)
    if (Result<void> r = check_bytes(*first.spec, over, first.id.element ? first.id.number : 0); !r)
      return std::move(r).error();
  for (const Job* job : *jobs) {
    if (!job->spec->detached)
      return Error::invalid("job " + to_string(job->id) + " is somebody's mete run")
          .with_hint("only jobs of mete submit can run again");
    // A trial that has ended never runs again: its sweep has the result.
    if (job->spec->trial && job->state == JobState::kEnded)
      return Error::invalid("job " + to_string(job->id) + " was a trial of a sweep, and is over")
          .with_evidence("trial " + std::to_string(job->spec->trial->n) + " of sweep " +
                         job->spec->trial->name)
          .with_hint("mete sweep best NAME prints a command to run by hand");
    waits = waits && job->state == JobState::kPending;
    if (job->state == JobState::kEnded)
      happened.emplace_back(JobRequeued{job->id, *job->outcome, job->exit, job->gpu, {}});
    else if (job->state == JobState::kStopping && !job->requeue)
      happened.emplace_back(JobStopping{job->id, *job->outcome, true});
    else if (job->state != JobState::kPending && job->state != JobState::kStopping)
      happened.emplace_back(JobStopping{job->id, Outcome::kCancelled, true});
  }
  if (waits)
    return Error::invalid("job " + to_string(requeue.id) + " waits already")
        .with_hint("mete explain " + to_string(requeue.id) + " says for what");
  return happened;
}

Decided Decider::on(const SetPriority& priority) const {
  if (priority.priority > kMaxPriority || priority.priority < -kMaxPriority)
    return Error::invalid("a priority is between -" + std::to_string(kMaxPriority) + " and " +
                          std::to_string(kMaxPriority));
  const Result<std::vector<const Job*>> jobs = of_caller(priority.id, priority.by);
  if (!jobs) return jobs.error();
  if (priority.priority > 0 && !priority.by.admin)
    return Error::denied("a priority above 0 is an administrator's to give")
        .with_hint("0 or less is yours to set");
  std::vector<Happened> happened;
  bool unfinished = false;
  for (const Job* job : *jobs) {
    if (job->state == JobState::kEnded) continue;
    unfinished = true;
    if (job->priority != priority.priority)
      happened.emplace_back(JobPriority{job->id, priority.priority});
  }
  if (!unfinished) return ended_already(*jobs->back());
  return happened;
}

}  // namespace mete::core
