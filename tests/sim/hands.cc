// SPDX-License-Identifier: Apache-2.0
// See hands.h. Calls of the engine change the lives of processes at once; what follows is collected
// by news(): the start, the end or the record of each detached job's keeper, the end of a runner,
// the last process of a stopped run. Reports are shuffled, and now and then one is repeated.
#include "tests/sim/hands.h"

#include <utility>

#include "tests/sim/planted.h"

namespace mete::sim {

using core::JobId;
using core::JobState;

bool Hands::reserve(JobId job, const std::vector<core::GrantedCard>& cards) {
  if (const auto found = reserved_.find(job); found != reserved_.end())
    for (std::size_t i = 0; i < cards.size(); ++i)
      if (cards[i].bytes < found->second[i].bytes) {
        before_less(job, cards);
        break;
      }
  if (!others_agree(job, cards)) {
    refused_ = true;
    return false;
  }
  reserved_[job] = cards;
  return true;
}

void Hands::start(const core::Job& job) {
  before_act();
  const auto [watched, added] = detached_.try_emplace(job.id);
  if (!added) judge_.fail("job " + to_string(job.id) + " was to be started again");
  watched->second.attempt = job.attempt;
  Life& life = lives_.life(job.id, job.attempt);
  if (life.record || lives_.keeper_of(life) != nullptr) return;  // found again: see news()
  if (job.state != JobState::kStarting && job.state != JobState::kStopping)
    judge_.fail("job " + to_string(job.id) + " runs, and no keeper has ever claimed it");
  if (job.state != JobState::kStarting) return;  // a job that was to be ended is not there
  if (!lives_.quiet && dice_.per_mille(15)) {
    watched->second.failed = "posix_spawn: Resource temporarily unavailable";
    watched->second.later = dice_.percent(70);
  } else if (lives_.quiet || dice_.percent(99)) {
    lives_.spawn(job);
  }
}

void Hands::watch(JobId job, core::ProcessRef runner) {
  before_act();
  runs_[job] = runner;
}

void Hands::wake(JobId job, core::ProcessRef runner) {
  before_act();
  if (runs_.at(job) != runner) judge_.fail("job " + to_string(job) + " has another runner");
}

void Hands::stop(JobId job) {
  before_act();
  stopped_.insert(job);
}

void Hands::forget(JobId job) {
  before_act();
  const auto found = detached_.find(job);
  if (found != detached_.end()) {
    if (planted("exit-of-before"))
      if (const Life* life = lives_.find(job, found->second.attempt); life != nullptr && life->exit)
        before_[job] = *life->exit;
    lives_.forget(job, found->second.attempt);
    detached_.erase(found);
  }
  lives_.drop_kept(job);
  reserved_.erase(job);
  runs_.erase(job);
  stopped_.erase(job);
}

void Hands::discard(const core::Job& job) {
  before_act();
  if (job.state != JobState::kEnded || detached_.contains(job.id) || runs_.contains(job.id))
    judge_.fail("job " + to_string(job.id) + " loses its log, and has not ended");
}

void Hands::die() {
  reserved_.clear();
  detached_.clear();
  runs_.clear();
  stopped_.clear();
  refused_ = false;
}

// ---- news --------------------------------------------------------------------------------------

std::vector<core::Input> Hands::news(bool all) {
  std::vector<core::Input> news;
  for (auto& [id, watched] : detached_)
    if (heard(all)) of_keeper(id, watched, news);
  for (const auto& [id, runner] : runs_)
    if (!runner_lives(runner) && heard(all)) news.emplace_back(core::RunnerGone{id});
  for (const JobId id : stopped_)
    if (!detached_.contains(id) && heard(all)) of_run(id, news);
  // In any order, and now and then repeated.
  for (std::size_t i = news.size(); i > 1; --i) std::swap(news[i - 1], news[dice_.below(i)]);
  if (!news.empty() && dice_.percent(10)) {
    core::Input again = dice_.pick(news);
    news.push_back(std::move(again));
  }
  return news;
}

void Hands::of_keeper(JobId id, Watched& watched, std::vector<core::Input>& news) {
  if (!watched.failed.empty()) {
    news.emplace_back(core::NotLaunched{id, watched.failed, watched.later});
    return;
  }
  if (const auto before = before_.find(id); before != before_.end()) {
    news.emplace_back(core::Ended{id, 0, before->second});
    before_.erase(before);
    return;
  }
  Life& life = lives_.life(id, watched.attempt);
  Keeper* keeper = lives_.keeper_of(life);
  if (keeper != nullptr) {
    if (stopped_.contains(id)) keeper->told_to_end = true;
    if (!life.record || !life.record->program) return;
    if (watched.started_told && !dice_.percent(5)) return;
    watched.started_told = true;
    const auto ago = (clock_.monotonic() - life.record->since) / std::chrono::milliseconds(1);
    news.emplace_back(
        core::Started{id, 0, *life.record->program, static_cast<std::uint64_t>(ago), keeper->self});
  } else if (life.record) {
    of_record(id, life, news);
  } else {
    news.emplace_back(core::NotLaunched{id, ""});
  }
}

// Its keeper is gone, and this is its record.
void Hands::of_record(JobId id, Life& life, std::vector<core::Input>& news) {
  Record& record = *life.record;
  if (record.exit && !planted_every("exit-lost", 3)) {
    core::Ended ended{id, 0, *record.exit};
    if (planted_every("exit-invented", 20)) ended.exit.code = 0;
    if (record.program && dice_.percent(80)) ended.program = record.program;
    news.emplace_back(std::move(ended));
    return;
  }
  if (!record.launched && record.boot == lives_.boot()) {
    life.record.reset();
    news.emplace_back(core::NotLaunched{id, ""});
    return;
  }
  news.emplace_back(core::RunnerGone{id});
  if (!stopped_.contains(id)) return;
  lives_.let_die(life.program);
  if (!life.program.lives() || planted("gone-too-soon")) news.emplace_back(core::JobGone{id});
}

void Hands::of_run(JobId id, std::vector<core::Input>& news) {
  Life& life = lives_.life(id, 1);
  lives_.let_die(life.program);
  const bool gone = !life.program.lives();
  if (gone) end_runner(id);
  if (gone || planted("gone-too-soon")) news.emplace_back(core::JobGone{id});
}

}  // namespace mete::sim
