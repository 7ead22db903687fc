// SPDX-License-Identifier: Apache-2.0
// See world.h.
#include "tests/sim/world.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "tests/sim/checker.h"

namespace mete::sim {

using core::JobId;
using core::JobState;
using Program = Runner::Program;

namespace {

constexpr std::uint32_t kFirstUser = 1000;
constexpr std::uint32_t kUsers = 4;

}  // namespace

World::World(std::uint64_t seed, Checker& checker) : dice_(seed), cards_(dice_), checker_(checker) {
  options_.policy = static_cast<core::Policy>(dice_.below(3));
  options_.snapshot_every = dice_.between(1, 300);
  crowd_ = dice_.between(3, 60);
  launcher_.before_act = [this] {
    if (store_.queued() != 0) checker_.fail("acted before the commit");
  };
  launcher_.others_agree = [this](JobId id, const std::vector<core::GrantedCard>& wanted) {
    const core::Job* promised = checker_.recorded().find(id);
    if (promised != nullptr && promised->state != JobState::kPending)
      return true;                                  // it was ours all the time
    if (!quiet_ && dice_.percent(3)) return false;  // and given back before anybody looks
    return cards_.others_agree(launcher_.reserved(), wanted);
  };
  start_daemon();
}

void World::step() {
  checker_.begin_step();
  time_passes();
  struct Chance {
    unsigned weight;
    Action action;
  };
  static constexpr std::array<Chance, 12> kChances = {{
      {170, &World::somebody_submits},
      {250, &World::a_runner_acts},
      {80, &World::a_program_ends},
      {20, &World::a_runner_dies},
      {20, &World::somebody_cancels},
      {40, &World::cards_change},
      {40, &World::daemon_looks},
      {80, &World::news_arrive},
      {8, &World::disk_trouble},
      {282, &World::daemon_turns},
      {7, &World::daemon_is_killed},
      {3, &World::daemon_restarts_cleanly},
  }};
  std::uint64_t roll = dice_.below(1000);
  for (const Chance& chance : kChances) {
    if (roll < chance.weight) {
      (this->*chance.action)();
      break;
    }
    roll -= chance.weight;
  }
  checker_.after_step(*this);
  forget_the_dead();
}

bool World::drains() {
  quiet_ = true;
  cards_.become_quiet();
  disk_is_full_ = false;
  store_.set_room();
  const std::size_t bound = 200 + 20 * (runners_.size() + checker_.recorded().jobs().size());
  for (std::size_t round = 0; round < bound; ++round) {
    checker_.begin_step();
    time_passes();
    daemon_looks();
    news_arrive();
    for (const auto& runner : runners_) {
      if (runner->program_lives() && dice_.percent(50)) {
        runner->program = Program::kGone;
        runner->exit.code = 0;
      }
      if (engine_ && engine_->settled()) act(*runner);
    }
    daemon_turns();
    checker_.after_step(*this);
    forget_the_dead();
    if (!engine_ || !inputs_.empty() || !runners_.empty()) continue;
    const auto& jobs = engine_->state().jobs();
    if (std::all_of(jobs.begin(), jobs.end(),
                    [](const auto& each) { return each.second.state == JobState::kEnded; })) {
      quiet_ = false;
      return true;
    }
  }
  return false;
}

// ---- people and processes ----------------------------------------------------------------------

void World::tell(core::Input input) {
  inputs_.emplace_back();
  inputs_.back().input = std::move(input);
}

std::uint64_t World::ask(core::Input input) {
  tell(std::move(input));
  return inputs_.back().ticket = ++last_ticket_;
}

void World::somebody_submits() {
  if (!engine_ || runners_.size() >= crowd_) return;
  auto runner = std::make_unique<Runner>();
  runner->self = {++last_pid_, dice_.below(1'000'000)};
  core::Submit& wants = runner->wants;
  wants.spec.uid = kFirstUser + static_cast<std::uint32_t>(dice_.below(kUsers));
  wants.spec.user = "user" + std::to_string(wants.spec.uid);
  wants.spec.name = dice_.percent(5) ? "odd \"name\"\n\xc3\xa9" : "train";
  wants.spec.command = {"train", "--seed", std::to_string(last_pid_)};
  wants.spec.folder = "/home/" + wants.spec.user;
  wants.spec.request = cards_.request();
  if (dice_.percent(10)) wants.spec.time_s = dice_.between(1, 1000);
  wants.runner = runner->self;
  wants.wait = !dice_.percent(20);
  runner->ticket = ask(wants);
  runners_.push_back(std::move(runner));
}

void World::a_runner_acts() {
  if (!engine_ || !engine_->settled() || runners_.empty()) return;
  act(*dice_.pick(runners_));
}

void World::act(Runner& runner) {
  if (!runner.alive || !runner.job || runner.ticket != 0) return;
  const core::Job* job = engine_->state().find(*runner.job);
  const std::uint32_t uid = runner.wants.spec.uid;
  if (job == nullptr || job->state == JobState::kEnded) {
    runner.alive = false;
    return;
  }
  if (job->state == JobState::kPending) {
    if (!quiet_ && dice_.percent(2)) give_up(runner);
    return;
  }
  if (job->state == JobState::kStopping && runner.program == Program::kRuns) {
    let_die(runner);
  } else if (job->state == JobState::kStarting && runner.program == Program::kNone) {
    start_program(runner, *job);
  } else if (runner.program == Program::kNone || runner.program == Program::kGone) {
    if (job->state == JobState::kRunning && runner.program == Program::kNone)
      checker_.fail("job " + to_string(job->id) + " runs, and its runner never started it");
    core::Ended ended{job->id, uid, runner.exit};
    if (runner.program_ref.pid != 0) ended.program = runner.program_ref;
    runner.ticket = ask(std::move(ended));
  } else if (dice_.percent(job->state == JobState::kStarting ? 50 : 5)) {
    runner.ticket = ask(core::Started{job->id, uid, runner.program_ref});  // maybe again
  }
}

void World::start_program(Runner& runner, const core::Job& job) {
  const std::uint32_t uid = runner.wants.spec.uid;
  if (dice_.percent(8)) {
    runner.program = Program::kGone;
    runner.exit.not_started = true;
    runner.ticket = ask(core::Ended{job.id, uid, runner.exit});
    return;
  }
  runner.program = Program::kRuns;
  runner.program_ref = {++last_pid_, dice_.below(1'000'000)};
  runner.cards = job.grant;
  // A start is told after a moment, or together with the end.
  if (dice_.percent(50)) runner.ticket = ask(core::Started{job.id, uid, runner.program_ref, 50});
}

void World::a_program_ends() {
  if (runners_.empty()) return;
  Runner& runner = *dice_.pick(runners_);
  if (runner.program != Program::kRuns) return;
  runner.program = Program::kGone;
  if (dice_.percent(80))
    runner.exit.code = static_cast<int>(dice_.below(3));
  else
    runner.exit.signal = 9;
  runner.exit.gpu_oom = dice_.percent(10);
  runner.exit.timed_out = dice_.percent(5);
  for (const core::GrantedCard& card : runner.cards) runner.exit.peaks.push_back(card.bytes);
}

void World::let_die(Runner& runner) {
  if (runner.program != Program::kRuns) return;
  runner.program = Program::kDying;
  runner.stubborn = dice_.percent(70) ? 0 : static_cast<unsigned>(dice_.below(200));
}

void World::time_passes() {
  clock_.advance(seam::Milliseconds(dice_.below(500)));
  for (const auto& runner : runners_) {
    if (runner->program != Program::kDying) continue;
    if (runner->stubborn > 0 && !quiet_) {
      --runner->stubborn;
      continue;
    }
    runner->program = Program::kGone;
    runner->exit.signal = 15;
  }
  if (disk_is_full_ && dice_.percent(3)) {
    disk_is_full_ = false;
    store_.set_room();
  }
}

void World::give_up(Runner& runner) {
  runner.alive = false;
  runner.ticket = 0;
}

void World::a_runner_dies() {
  if (runners_.empty()) return;
  Runner& runner = *dice_.pick(runners_);
  give_up(runner);
  if (runner.program == Program::kRuns && dice_.percent(40)) runner.program = Program::kGone;
}

void World::somebody_cancels() {
  if (!engine_) return;
  const std::uint64_t last =
      checker_.recorded().jobs().empty() ? 1 : checker_.recorded().jobs().rbegin()->first.number;
  const JobId id{dice_.between(last > crowd_ ? last - crowd_ : 1, last + 1)};
  const core::Job* job = checker_.recorded().find(id);
  std::uint32_t uid = dice_.percent(10) ? 0 : kFirstUser + 99;  // root, or nobody
  if (job != nullptr && dice_.percent(70)) uid = job->spec.uid;
  (void)ask(core::Cancel{id, uid});
}

Runner* World::runner_of(JobId job) {
  for (const auto& runner : runners_)
    if (runner->job == job) return runner.get();
  return nullptr;
}

Runner* World::by_process(core::ProcessRef process) {
  for (const auto& runner : runners_)
    if (runner->self == process) return runner.get();
  return nullptr;
}

void World::forget_the_dead() {
  std::erase_if(runners_,
                [](const auto& runner) { return !runner->alive && !runner->program_lives(); });
}

// ---- cards and disk ----------------------------------------------------------------------------

void World::cards_change() {
  Reserved ours = launcher_.reserved();
  for (const auto& [id, job] : checker_.recorded().jobs())
    if (job.state != JobState::kPending && job.state != JobState::kEnded) ours[id] = job.grant;
  cards_.change(ours);
}

void World::daemon_looks() {
  if (!engine_) return;
  engine_->see(cards_.now());
  tell(core::Look{});
}

void World::disk_trouble() {
  switch (dice_.below(4)) {
    case 0:
    case 1:
      disk_is_full_ = true;
      store_.set_full(dice_.below(6));
      break;
    case 2:
      store_.fail_commit(dice_.between(1, 3), Error::exhausted("the disk is full"));
      break;
    default:
      store_.fail_commit(
          dice_.between(1, 3), Error::io("input/output error"),
          dice_.percent(50) ? tests::FaultyStore::Left::kAll : tests::FaultyStore::Left::kNothing);
  }
}

// ---- the daemon --------------------------------------------------------------------------------

// What the launcher sees: runners that are gone, jobs that it was to end and that are.
void World::news_arrive() {
  if (!engine_) return;
  for (const auto& [id, process] : launcher_.watched()) {
    const Runner* runner = by_process(process);
    if ((runner == nullptr || !runner->alive) && dice_.percent(50)) tell(core::RunnerGone{id});
  }
  for (const auto& [id, times] : launcher_.stops()) {
    Runner* runner = runner_of(id);
    if (runner != nullptr) let_die(*runner);
    if ((runner == nullptr || !runner->program_lives()) && dice_.percent(50))
      tell(core::JobGone{id});
  }
}

void World::start_daemon() {
  engine_ = std::make_unique<engine::Engine>(clock_, store_, launcher_, options_);
  const Result<void> recovered = engine_->recover();
  if (!recovered) checker_.fail("recover: " + recovered.error().message);
  checker_.after_recovery(*this);
  daemon_looks();
}

void World::daemon_turns() {
  if (!engine_) {
    start_daemon();
    return;
  }
  checker_.before_turn(*this);
  const std::vector<engine::Asked> inputs = std::exchange(inputs_, {});
  const Result<std::vector<engine::Answer>> answers = engine_->turn(inputs);
  checker_.after_turn(*this, inputs, answers);
  if (!answers) {
    daemon_is_killed();
    return;
  }
  for (const engine::Answer& answer : *answers) answered(answer);
}

void World::answered(const engine::Answer& answer) {
  for (const auto& runner : runners_) {
    if (runner->ticket != answer.ticket) continue;
    runner->ticket = 0;
    if (runner->job) return;
    if (answer.result)
      runner->job = *answer.result;
    else
      runner->alive = false;
    return;
  }
}

void World::daemon_is_killed() {
  if (!engine_) return;
  checker_.before_death(*this);
  engine_.reset();
  store_.crash();
  launcher_.crash();
  inputs_.clear();
  for (const auto& runner : runners_) {
    runner->ticket = 0;  // it asks again
    if (!runner->job) give_up(*runner);
  }
}

void World::daemon_restarts_cleanly() {
  if (!engine_) return;
  (void)engine_->save();  // a full disk is no reason not to end
  checker_.saved(*this);
  daemon_is_killed();
  start_daemon();
}

}  // namespace mete::sim
