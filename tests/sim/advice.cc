// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/advice.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace mete::sim {

using core::Change;
using core::JobId;
using Kind = core::Change::Kind;

namespace {

// The job as if it had been submitted with other options.
void reword(core::Job& job, const Change& change) {
  core::JobSpec spec = *job.spec;
  if (change.kind == Kind::kRelease) job.held = false;
  if (change.kind == Kind::kBegin) {
    spec.begin.reset();
    job.not_before.reset();
  }
  if (change.request) {
    spec.request = *change.request;
    job.gpu.reset();
  }
  if (change.time_s) spec.time_s = change.time_s;
  job.spec = std::move(spec);
}

// The events of a change that is not an option of the job.
std::vector<core::Happened> events_of(const core::Job& job, const Change& change) {
  std::vector<core::Happened> list;
  // Jobs of a higher priority are only parked.
  if (change.kind != Kind::kPriority)
    for (const JobId id : change.jobs)
      list.emplace_back(core::JobEnded{id, core::Outcome::kCancelled, {}});
  if (change.priority) list.emplace_back(core::JobPriority{job.id, *change.priority});
  if (change.quota) list.emplace_back(core::QuotaSet{job.spec->user, *change.quota});
  if (change.reservation) list.emplace_back(core::Unreserved{*change.reservation});
  if (!change.card.empty()) list.emplace_back(core::CardUndrained{change.card});
  return list;
}

// The next smaller change on the grid; nullopt: there is none, or it is not checked here.
std::optional<Change> smaller(const core::Job& job, const Change& change) {
  Change less = change;
  if (change.kind == Kind::kPriority && *change.priority > job.priority + 1) {
    less.priority = *change.priority - 1;
    return less;
  }
  if (change.kind != Kind::kGpu) return std::nullopt;
  const core::Request asked = core::request_of(job);
  auto* share = std::get_if<core::Size>(&less.request->gpu->memory);
  const auto* before = asked.gpu ? std::get_if<core::Size>(&asked.gpu->memory) : nullptr;
  if (share == nullptr || before == nullptr) return std::nullopt;
  share->bytes += core::kShareStep;
  if (share->bytes >= before->bytes) return std::nullopt;
  return less;
}

}  // namespace

// Jobs that depend on a job that is to end would enter the queue too; the advice does not foresee
// that.
bool Advice::frees_others(const Change& change) const {
  if (change.kind == Kind::kPriority) return false;
  return std::any_of(change.jobs.begin(), change.jobs.end(), [&](JobId ended) {
    return std::any_of(books_.pending().begin(), books_.pending().end(), [&](JobId id) {
      const std::vector<core::After>& unmet = books_.find(id)->unmet;
      return std::any_of(unmet.begin(), unmet.end(),
                         [&](const core::After& after) { return after.id.number == ended.number; });
    });
  });
}

bool Advice::starts_with(const core::State& state, const core::Moment& moment, const core::Job& job,
                         const Change& change) const {
  core::State::Parts parts = state.parts();
  for (core::Job& each : parts.jobs)
    if (each.id == job.id) reword(each, change);
  core::State changed = core::State::from_parts(std::move(parts), state.rules());
  for (core::Happened& what : events_of(job, change))
    changed.apply({changed.last_seq() + 1, moment.now, std::move(what)});
  const core::PassResult steps = changed.next_steps(moment);
  // With a higher priority other jobs may be parked for it: it starts when they are gone.
  if (change.kind == Kind::kPriority && steps.waits_for.contains(job.id)) {
    judge_.saw("advice to have others parked");
    return true;
  }
  return std::any_of(steps.start.begin(), steps.start.end(),
                     [&](const core::JobGranted& granted) { return granted.id == job.id; });
}

void Advice::check(const core::State& state, const core::Moment& moment) {
  std::vector<JobId> waiting(books_.pending().begin(), books_.pending().end());
  if (waiting.empty()) return;
  const core::Job& job = *state.find(dice_.pick(waiting));
  const core::Sight sight = state.look(moment);
  const std::vector<Change> changes = core::changes(state, moment, sight, job);
  if (changes.empty()) return;
  const Change& change = dice_.pick(changes);
  if (frees_others(change)) return;
  const std::string what = "job " + to_string(job.id) + ": " + std::string(to_string(change.kind)) +
                           " " + change.argument;
  judge_.saw("advice");
  if (!starts_with(state, moment, job, change))
    judge_.fail(what + " was proposed, and does not start it");
  const std::optional<Change> less = smaller(job, change);
  if (!less) return;
  judge_.saw("advice that could be smaller");
  if (starts_with(state, moment, job, *less))
    judge_.fail(what + " was proposed, and less would have been enough");
}

}  // namespace mete::sim
