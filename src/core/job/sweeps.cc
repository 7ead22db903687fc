// SPDX-License-Identifier: Apache-2.0
#include "core/job/sweeps.h"

#include "base/assert.h"

namespace mete::core {

const sweep::Sweep* Sweeps::find(std::uint64_t number) const {
  const auto found = sweeps_.find(number);
  return found == sweeps_.end() ? nullptr : &found->second;
}

const sweep::Sweep* Sweeps::find(std::uint32_t uid, const std::string& name) const {
  const auto found = by_name_.find({uid, name});
  return found == by_name_.end() ? nullptr : find(found->second);
}

std::size_t Sweeps::count_of(std::uint32_t uid) const {
  const auto first = by_name_.lower_bound({uid, ""});
  std::size_t count = 0;
  for (auto at = first; at != by_name_.end() && at->first.first == uid; ++at) ++count;
  return count;
}

std::uint64_t Sweeps::trials() const {
  std::uint64_t trials = 0;
  for (const auto& [number, sweep] : sweeps_) trials += sweep.trials().size();
  return trials;
}

std::uint64_t Sweeps::bytes_of(std::uint32_t uid) const {
  std::uint64_t bytes = 0;
  for (auto at = by_name_.lower_bound({uid, ""}); at != by_name_.end() && at->first.first == uid;
       ++at)
    bytes += sweeps_.at(at->second).bytes();
  return bytes;
}

sweep::Sweep& Sweeps::of(std::uint64_t number) {
  const auto found = sweeps_.find(number);
  METE_ASSERT(found != sweeps_.end());
  return found->second;
}

void Sweeps::enter(sweep::Sweep sweep) {
  const std::uint64_t number = sweep.number();
  METE_ASSERT(by_name_.emplace(std::pair(sweep.plan().job.uid, sweep.plan().name), number).second);
  sweeps_.emplace(number, std::move(sweep));
}

void Sweeps::apply(const SweepStarted& started, WallTime at) {
  METE_ASSERT(started.sweep == last_ + 1);
  last_ = started.sweep;
  enter(sweep::Sweep(started.sweep, started.plan, at));
}

void Sweeps::apply(const SweepChanged& changed) {
  sweep::Sweep& sweep = of(changed.sweep);
  if (changed.plan)
    sweep.extend(changed.plan);
  else
    sweep.set_state(changed.state);
}

void Sweeps::apply(const SweepRemoved& removed) {
  const sweep::Sweep& sweep = of(removed.sweep);
  METE_ASSERT(sweep.active().empty());
  by_name_.erase({sweep.plan().job.uid, sweep.plan().name});
  sweeps_.erase(removed.sweep);
}

void Sweeps::job_started(const Job& job, WallTime at) {
  if (!job.spec->trial || !sweeps_.contains(job.spec->trial->sweep)) return;
  std::vector<std::uint32_t> cards;
  for (const GrantedCard& card : job.grant) cards.push_back(card.index);
  of(job.spec->trial->sweep).job_runs(job.spec->trial->n, job.id, at, std::move(cards));
}

void Sweeps::job_waits(const Job& job) {
  if (!job.spec->trial || !sweeps_.contains(job.spec->trial->sweep)) return;
  of(job.spec->trial->sweep).job_waits(job.spec->trial->n, job.id);
}

void Sweeps::job_ended(const Job& job, WallTime at) {
  if (!job.spec->trial || !sweeps_.contains(job.spec->trial->sweep)) return;
  // A daemon that was away learns of the end later.
  if (job.started && job.exit && job.exit->ran_ms) {
    const WallTime ran{job.started->ms + static_cast<std::int64_t>(*job.exit->ran_ms)};
    at = std::min(at, ran);
  }
  of(job.spec->trial->sweep)
      .job_ended({job.spec->trial->n, job.id, *job.outcome, job.exit, job.stopped}, at);
}

void Sweeps::restore(std::vector<sweep::Sweep::Parts> sweeps, std::uint64_t last) {
  last_ = last;
  for (sweep::Sweep::Parts& parts : sweeps) enter(sweep::Sweep(std::move(parts)));
}

}  // namespace mete::core
