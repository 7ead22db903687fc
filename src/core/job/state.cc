// SPDX-License-Identifier: Apache-2.0
// See state.h. The line is first come, first served: the first job that must wait has the cards it
// waits for held for it (place/hold.h), and whoever comes later may use the rest.
#include "core/job/state.h"

#include <algorithm>

#include "base/assert.h"
#include "core/place/hold.h"

namespace mete::core {

namespace {

std::vector<Happened> one(Happened what) {
  std::vector<Happened> list;
  list.push_back(std::move(what));
  return list;
}

Holder holder_of(const Job& job) { return {job.id, job.spec.user, "", {}, false}; }

// A later job that would fit, were it not for the first in line.
Wait behind(const Job& first, const Wait& why) {
  Wait wait;
  wait.reason = Reason::kPriority;
  wait.text = "its turn, behind job " + to_string(first.id) + " of " + first.spec.user +
              ", which waits for " + why.text;
  wait.holders = why.holders;
  return wait;
}

// One that could start this moment: another daemon was quicker, or the disk is full.
Wait its_turn() { return {Reason::kResources, "its turn, which is next", {}}; }

struct ByValue {
  bool operator()(const Request* a, const Request* b) const { return *a < *b; }
};

}  // namespace

Error no_room_now(const Wait& wait) {
  return Error::exhausted("there is no room now")
      .with_evidence("waits for " + wait.text)
      .with_hint("leave --no-wait out to wait in line");
}

Outcome outcome_of(const Exit& exit) {
  if (exit.not_started) return Outcome::kLaunchFailed;
  if (exit.timed_out) return Outcome::kTimeout;
  if (exit.code == 0) return Outcome::kOk;
  if (exit.ram_oom) return Outcome::kRamOom;
  if (exit.gpu_oom) return Outcome::kGpuOom;
  return exit.signal ? Outcome::kSignal : Outcome::kFailed;
}

const Job* State::find(JobId id) const {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : &found->second;
}

const Job* State::find_by_runner(const ProcessRef& runner) const {
  for (const std::set<JobId>* list : {&pending_, &active_})
    for (const JobId id : *list)
      if (const Job& job = jobs_.at(id); job.runner == runner) return &job;
  return nullptr;
}

Pool State::with_grants(Pool machine) const {
  for (const JobId id : active_) {
    const Job& job = jobs_.at(id);
    add_grant(machine, holder_of(job), job.grant);
  }
  return machine;
}

// ---- deciding ----------------------------------------------------------------------------------

Result<std::vector<Happened>> State::decide(const Input& input, const Pool& machine,
                                            Policy policy) const {
  if (const auto* submit = std::get_if<Submit>(&input))
    return decide_submit(*submit, machine, policy);
  if (const auto* started = std::get_if<Started>(&input)) return decide_started(*started);
  if (const auto* ended = std::get_if<Ended>(&input)) return decide_ended(*ended);
  if (const auto* cancel = std::get_if<Cancel>(&input)) return decide_cancel(*cancel);
  if (const auto* gone = std::get_if<RunnerGone>(&input)) return decide_runner_gone(gone->id);
  if (const auto* gone = std::get_if<JobGone>(&input)) {
    const Job* job = find(gone->id);
    if (job == nullptr || job->state != JobState::kStopping) return std::vector<Happened>{};
    return one(JobEnded{job->id, *job->outcome, {}});
  }
  return decide_look(machine);
}

Result<std::vector<Happened>> State::decide_submit(const Submit& submit, const Pool& machine,
                                                   Policy policy) const {
  if (pending_.size() + active_.size() >= kMaxUnfinished)
    return Error::exhausted("there are " + std::to_string(kMaxUnfinished) + " unfinished jobs")
        .with_hint("try again when some have ended; mete ps lists them");
  const Decision alone = place(with_grants(machine), submit.spec.request, policy);
  if (const auto* never = std::get_if<Error>(&alone)) return *never;
  if (!submit.wait) {
    // It starts at once only if nobody before it has a better right.
    const Line line = walk(machine, policy);
    const Decision last = place(line.left, submit.spec.request, policy);
    if (!std::holds_alternative<Placement>(last)) {
      const auto* wait = std::get_if<Wait>(&alone);
      if (wait == nullptr) wait = std::get_if<Wait>(&last);
      METE_ASSERT(wait != nullptr);  // those ahead take room; they do not make it impossible
      return no_room_now(*wait);
    }
  }
  return one(JobSubmitted{JobId{last_job_ + 1}, submit.spec, submit.runner});
}

Result<const Job*> State::of_user(JobId id, std::uint32_t uid) const {
  const Job* job = find(id);
  // Another user's job does not exist for somebody who is not root.
  if (job == nullptr || (uid != 0 && uid != job->spec.uid))
    return Error::not_found("there is no job " + to_string(id))
        .with_hint("mete ps lists your jobs");
  return job;
}

Result<std::vector<Happened>> State::decide_started(const Started& started) const {
  const Result<const Job*> job = of_user(started.id, started.by_uid);
  if (!job) return job.error();
  if ((*job)->state == JobState::kStarting)
    return one(JobStarted{started.id, started.program, started.ago_ms});
  if ((*job)->state == JobState::kRunning && (*job)->program == started.program)
    return std::vector<Happened>{};
  return Error::busy("job " + to_string(started.id) + " is not waiting for its program")
      .with_evidence("it is " + std::string(to_string((*job)->state)));
}

Result<std::vector<Happened>> State::decide_ended(const Ended& ended) const {
  const Result<const Job*> job = of_user(ended.id, ended.by_uid);
  if (!job) return job.error();
  switch ((*job)->state) {
    case JobState::kEnded:
      return std::vector<Happened>{};
    case JobState::kPending:
      return Error::busy("job " + to_string(ended.id) + " has not started");
    case JobState::kStopping:
      return one(JobEnded{ended.id, *(*job)->outcome, ended.exit});
    default:
      break;
  }
  std::vector<Happened> happened;
  if ((*job)->state == JobState::kStarting && ended.program)
    happened.emplace_back(JobStarted{ended.id, *ended.program, ended.ago_ms});
  happened.emplace_back(JobEnded{ended.id, outcome_of(ended.exit), ended.exit});
  return happened;
}

Result<std::vector<Happened>> State::decide_cancel(const Cancel& cancel) const {
  const Result<const Job*> job = of_user(cancel.id, cancel.by_uid);
  if (!job) return job.error();
  switch ((*job)->state) {
    case JobState::kEnded:
    case JobState::kStopping:
      return std::vector<Happened>{};
    case JobState::kPending:
      return one(JobEnded{cancel.id, Outcome::kCancelled, {}});
    default:
      return one(JobStopping{cancel.id, Outcome::kCancelled});
  }
}

std::vector<Happened> State::decide_runner_gone(JobId id) const {
  const Job* job = find(id);
  if (job == nullptr) return {};
  switch (job->state) {
    case JobState::kEnded:
    case JobState::kStopping:
      return {};
    case JobState::kPending:
      return one(JobEnded{id, Outcome::kCancelled, {}});
    default:
      // Nobody is left to wait for it, and nobody would learn how it ended.
      return one(JobStopping{id, Outcome::kLost});
  }
}

std::vector<Happened> State::decide_look(const Pool& machine) const {
  std::vector<Happened> happened;
  for (const PoolCard& card : machine.cards) {
    const bool known = lost_.contains(card.card.uuid);
    if (card.lost && !known) happened.emplace_back(CardLost{card.card.uuid});
    if (!card.lost && known) happened.emplace_back(CardBack{card.card.uuid});
  }
  return happened;
}

// Within a walk there is only ever less room: what did not fit once does not fit again, and equal
// requests share that answer.
State::Line State::walk(const Pool& machine, Policy policy) const {
  Line line;
  line.left = with_grants(machine);
  std::set<const Request*, ByValue> refused;
  for (const JobId id : pending_) {
    const Job& job = jobs_.at(id);
    const Request& request = job.spec.request;
    if (refused.contains(&request)) continue;
    if (const std::optional<Placement> placement = place_now(line.left, request, policy)) {
      line.start.push_back({id, placement->cards});
      add_grant(line.left, holder_of(job), placement->cards);
      continue;
    }
    refused.insert(&request);
    if (line.held_for) continue;
    // Nothing is held for a job whose cards are lost or gone; then the next one has that right.
    Pool held = hold_for(line.left, request, policy);
    if (held == line.left) continue;
    line.left = std::move(held);
    line.held_for = id;
  }
  return line;
}

std::vector<JobGranted> State::grants(const Pool& machine, Policy policy) const {
  if (pending_.empty()) return {};
  return walk(machine, policy).start;
}

std::vector<State::Waiting> State::waiting(const Pool& machine, Policy policy) const {
  std::vector<Waiting> list;
  if (pending_.empty()) return list;
  const Line line = walk(machine, policy);
  const Pool open = with_grants(machine);
  const auto first = [&]() -> Wait {
    if (!line.held_for) return its_turn();
    const Job& job = jobs_.at(*line.held_for);
    const Decision decision = place(open, job.spec.request, policy);
    const auto* wait = std::get_if<Wait>(&decision);
    return behind(job, wait == nullptr ? its_turn() : *wait);
  }();
  std::map<const Request*, Wait, ByValue> known;  // equal requests wait for the same
  auto starts = line.start.begin();
  for (const JobId id : pending_) {
    const Request& request = jobs_.at(id).spec.request;
    auto found = known.find(&request);
    if (found == known.end()) {
      const Decision decision = place(open, request, policy);
      Wait why = first;  // it would fit, were it not for those ahead
      if (const auto* wait = std::get_if<Wait>(&decision)) {
        why = *wait;
      } else if (const auto* never = std::get_if<Error>(&decision)) {
        // It could be once: cards have gone since.
        why = {};
        why.text = never->message + (never->evidence.empty() ? "" : ": " + never->evidence);
      }
      found = known.emplace(&request, std::move(why)).first;
    }
    const bool may_start = starts != line.start.end() && starts->id == id;
    if (may_start) ++starts;
    list.push_back({id, may_start ? its_turn() : found->second});
  }
  return list;
}

// ---- applying ----------------------------------------------------------------------------------

Job& State::step(JobId id, JobState to) {
  const auto found = jobs_.find(id);
  METE_ASSERT(found != jobs_.end());
  METE_ASSERT(may_follow(found->second.state, to));
  found->second.state = to;
  return found->second;
}

void State::apply(const Event& event) {
  METE_ASSERT(event.seq == last_seq_ + 1);
  last_seq_ = event.seq;
  if (const auto* submitted = std::get_if<JobSubmitted>(&event.what)) {
    METE_ASSERT(submitted->id.number == last_job_ + 1);
    last_job_ = submitted->id.number;
    Job job;
    job.id = submitted->id;
    job.spec = submitted->spec;
    job.runner = submitted->runner;
    job.submitted = event.at;
    jobs_.emplace(job.id, std::move(job));
    pending_.insert(submitted->id);
  } else if (const auto* granted = std::get_if<JobGranted>(&event.what)) {
    step(granted->id, JobState::kStarting).grant = granted->cards;
    pending_.erase(granted->id);
    active_.insert(granted->id);
  } else if (const auto* started = std::get_if<JobStarted>(&event.what)) {
    Job& job = step(started->id, JobState::kRunning);
    job.program = started->program;
    job.started = WallTime{event.at.ms - static_cast<std::int64_t>(started->ago_ms)};
  } else if (const auto* stopping = std::get_if<JobStopping>(&event.what)) {
    step(stopping->id, JobState::kStopping).outcome = stopping->why;
  } else if (const auto* ended = std::get_if<JobEnded>(&event.what)) {
    Job& job = step(ended->id, JobState::kEnded);
    job.outcome = ended->outcome;
    job.exit = ended->exit;
    job.ended = event.at;
    pending_.erase(ended->id);
    active_.erase(ended->id);
    ended_.push_back(ended->id);
    forget_old();
  } else if (const auto* lost = std::get_if<CardLost>(&event.what)) {
    lost_.insert(lost->uuid);
  } else if (const auto* back = std::get_if<CardBack>(&event.what)) {
    lost_.erase(back->uuid);
  }
}

void State::forget_old() {
  // In batches: the list is a vector.
  if (ended_.size() < 2 * kEndedKept) return;
  const auto keep = static_cast<std::ptrdiff_t>(ended_.size() - kEndedKept);
  for (auto id = ended_.begin(); id != ended_.begin() + keep; ++id) jobs_.erase(*id);
  ended_.erase(ended_.begin(), ended_.begin() + keep);
}

State::Parts State::parts() const {
  Parts parts{last_seq_, last_job_, {}, {lost_.begin(), lost_.end()}};
  // Ended ones in the order in which they ended, so that the oldest are forgotten first again.
  for (const JobId id : ended_) parts.jobs.push_back(jobs_.at(id));
  for (const JobId id : active_) parts.jobs.push_back(jobs_.at(id));
  for (const JobId id : pending_) parts.jobs.push_back(jobs_.at(id));
  return parts;
}

State State::from_parts(Parts parts) {
  State state;
  state.last_seq_ = parts.last_seq;
  state.last_job_ = parts.last_job;
  state.lost_.insert(parts.lost.begin(), parts.lost.end());
  for (Job& job : parts.jobs) {
    if (job.state == JobState::kEnded)
      state.ended_.push_back(job.id);
    else if (job.state == JobState::kPending)
      state.pending_.insert(job.id);
    else
      state.active_.insert(job.id);
    const JobId id = job.id;
    state.jobs_.emplace(id, std::move(job));
  }
  return state;
}

}  // namespace mete::core
