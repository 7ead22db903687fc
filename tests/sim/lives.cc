// SPDX-License-Identifier: Apache-2.0
// See lives.h. Keepers are small state machines: each step of the world advances some of them by
// one stage, and chance kills some. A program has a time at which it ends and one at which it dies
// after TERM; its memory is memory.h. A record stays until a daemon forgets it, and a reboot kills
// every process and may lose unsynced parts of records.
#include "tests/sim/lives.h"

#include <algorithm>

#include "tests/sim/planted.h"

namespace mete::sim {

using core::JobId;
using Stage = Keeper::Stage;
using std::chrono::milliseconds;
using std::chrono::seconds;

// After a reboot numbers are used again.
core::ProcessRef Lives::new_process() {
  ++last_pid_;
  return {last_pid_, static_cast<std::uint64_t>(last_pid_) * 10};
}

Life& Lives::life(JobId job, std::uint32_t attempt) {
  Life& life = lives_[{job, attempt}];
  life.job = job;
  life.attempt = attempt;
  return life;
}

const Life* Lives::find(JobId job, std::uint32_t attempt) const {
  const auto found = lives_.find({job, attempt});
  return found == lives_.end() ? nullptr : &found->second;
}

void Lives::over(JobId job, std::uint32_t attempt) {
  life(job, attempt).over = true;
  erase_if_done(job, attempt);
}

void Lives::forget(JobId job, std::uint32_t attempt) {
  const auto found = lives_.find({job, attempt});
  if (found != lives_.end()) found->second.record.reset();
  erase_if_done(job, attempt);
}

void Lives::sweep() {
  std::erase_if(lives_,
                [](const auto& each) { return each.second.over && !each.second.program.lives(); });
}

// A program that was started is kept until the log has its end.
void Lives::erase_if_done(JobId job, std::uint32_t attempt) {
  const auto found = lives_.find({job, attempt});
  if (found == lives_.end()) return;
  const Life& life = found->second;
  const bool nothing = life.program.stage == Program::Stage::kNone;
  if (!life.record && !life.program.lives() && (life.over || nothing)) lives_.erase(found);
}

bool Lives::somebody_lives() const {
  return !keepers_.empty() || std::any_of(lives_.begin(), lives_.end(), [](const auto& each) {
    return each.second.program.lives();
  });
}

bool Lives::somebody_acts() const {
  const auto acts = [](const auto& each) {
    const Life& life = each.second;
    return life.program.stage == Program::Stage::kDying ||
           (life.program.stage == Program::Stage::kRuns &&
            life.memory.stage() != Memory::Stage::kAway);
  };
  return std::any_of(keepers_.begin(), keepers_.end(),
                     [](const auto& keeper) { return keeper->stage != Stage::kWaits; }) ||
         std::any_of(lives_.begin(), lives_.end(), acts);
}

std::vector<Life*> Lives::running() {
  std::vector<Life*> running;
  for (auto& [key, life] : lives_)
    if (life.program.stage == Program::Stage::kRuns) running.push_back(&life);
  return running;
}

void Lives::drop_kept(JobId job) {
  std::erase_if(arena_, [job](const auto& each) { return each.first.first == job; });
}

// ---- programs ----------------------------------------------------------------------------------

void Lives::start_program(Life& life, const core::SharedSpec& shared,
                          std::vector<core::GrantedCard> cards) {
  const core::JobSpec& spec = *shared;
  life.spec = shared;
  life.cards = std::move(cards);
  before_start(life);
  Program& program = life.program;
  if (program.stage != Program::Stage::kNone)
    judge_.fail("attempt " + std::to_string(life.attempt) + " of job " + to_string(life.job) +
                " was started twice");
  program.stage = Program::Stage::kRuns;
  program.ref = new_process();
  program.since = clock_.monotonic();
  // Jobs of one name mostly take about equal time.
  const std::uint64_t usual = spec.name == "eval"    ? 3'000
                              : spec.name == "train" ? 16'000
                              : spec.name == "long"  ? 60'000
                                                     : 8'000;
  const std::uint64_t takes =
      dice_.percent(85) ? dice_.between(usual / 2, usual) : dice_.between(1, 20 * usual);
  program.ends = program.since + milliseconds(takes);
  if (spec.time_s) program.stop_at = program.since + seconds(*spec.time_s);
  core::Exit& exit = program.exit;
  if (dice_.percent(65))
    exit.code = 0;
  else if (dice_.percent(70))
    exit.code = static_cast<int>(dice_.between(1, 3));
  else
    exit.signal = 9;
  exit.gpu_oom = exit.code != 0 && !life.cards.empty() && dice_.percent(25);
  exit.ram_oom = exit.code != 0 && !exit.gpu_oom && dice_.percent(5);
  for (const core::GrantedCard& card : life.cards)
    exit.peaks.push_back(Bytes::from_bytes(dice_.below(card.bytes.count() + 1)));
  if (spec.detached) exit.log_bytes = Bytes::from_bytes(dice_.below(1 << 20));
  life.memory.begin({life.job, life.attempt}, life.cards, dice_);
}

void Lives::end(Life& life) {
  Program& program = life.program;
  if (life.memory.stage() != Memory::Stage::kHere) judge_.saw("an end while it was not there");
  life.memory.end();
  arena_.erase({life.job, life.attempt});
  program.stage = Program::Stage::kGone;
  program.exit.ran_ms =
      static_cast<std::uint64_t>((clock_.monotonic() - program.since) / milliseconds(1));
}

void Lives::kill(JobId job, std::uint32_t attempt) {
  Life& its = life(job, attempt);
  if (its.program.lives()) end(its);
}

void Lives::let_die(Program& program, bool timed_out) {
  if (program.stage != Program::Stage::kRuns) return;
  program.stage = Program::Stage::kDying;
  const std::uint64_t takes = dice_.percent(95) ? dice_.below(10'000) : dice_.below(200'000);
  program.dies = clock_.monotonic() + milliseconds(takes);
  program.exit.timed_out = timed_out;
  program.exit.code.reset();
  program.exit.signal = 15;
}

void Lives::time_passes() {
  const seam::Nanoseconds now = clock_.monotonic();
  for (auto& [key, life] : lives_) {
    Program& program = life.program;
    const bool limited = program.stop_at != seam::Nanoseconds{0};
    if (program.lives())
      if (const auto stood = life.memory.time_passes(now, quiet, dice_, arena_, judge_)) {
        program.ends += *stood;
        if (limited) program.stop_at += *stood;
      }
    if (program.stage == Program::Stage::kRuns && life.memory.runs()) {
      if (program.ends <= now && (!limited || program.ends <= program.stop_at))
        end(life);
      else if (limited && program.stop_at <= now)
        let_die(program, true);
    } else if (program.stage == Program::Stage::kDying && (program.dies <= now || quiet)) {
      end(life);
    }
  }
  bury();
}

void Lives::a_program_ends() {
  std::vector<Life*> running = this->running();
  if (!running.empty()) end(*dice_.pick(running));
}

// Parked programs still have work to do.
void Lives::all_programs_end() {
  for (auto& [key, life] : lives_)
    if (life.program.stage == Program::Stage::kDying ||
        (life.program.stage == Program::Stage::kRuns && life.memory.runs()))
      end(life);
}

// ---- keepers -----------------------------------------------------------------------------------

void Lives::spawn(const core::Job& job) {
  auto keeper = std::make_unique<Keeper>();
  keeper->self = new_process();
  keeper->daemon = daemon();
  keeper->job = job.id;
  keeper->attempt = job.attempt;
  keeper->spec = job.spec;
  keeper->cards = job.grant;
  keepers_.push_back(std::move(keeper));
}

Keeper* Lives::keeper_of(const Life& life) {
  for (const auto& keeper : keepers_) {
    if (keeper->job != life.job || keeper->attempt != life.attempt) continue;
    const bool has_claim =
        life.record && life.record->boot == boot_ && life.record->keeper == keeper->self;
    if (keeper->daemon == daemon() || has_claim) return keeper.get();
  }
  return nullptr;
}

void Lives::claim(Keeper& keeper, Life& life) {
  if (life.record && !planted("claim-not-exclusive")) {
    keeper.stage = Stage::kGone;  // another keeper has this attempt
    return;
  }
  life.record = Record{keeper.self, boot_, false, {}, {}, {}};
  keeper.stage = Stage::kClaimed;
}

void Lives::launch(Keeper& keeper, Life& life) {
  life.record->launched = true;
  if (!quiet && dice_.percent(4)) {
    core::Exit exit;
    exit.not_started = true;
    exit.note = "execve: No such file or directory";
    write_exit(keeper, life, exit);
    return;
  }
  start_program(life, keeper.spec, keeper.cards);
  life.record->program = life.program.ref;
  life.record->since = life.program.since;
  keeper.stage = Stage::kWaits;
}

void Lives::write_exit(Keeper& keeper, Life& life, core::Exit exit) {
  life.record->exit = exit;
  life.exit = std::move(exit);
  keeper.stage = Stage::kGone;
}

void Lives::act(Keeper& keeper) {
  Life& its = life(keeper.job, keeper.attempt);
  switch (keeper.stage) {
    case Stage::kSpawned:
      if (keeper.told_to_end)
        keeper.stage = Stage::kGone;
      else
        claim(keeper, its);
      break;
    case Stage::kClaimed:
      if (keeper.told_to_end || (keeper.daemon != daemon() && !planted("late-keeper-runs"))) {
        if (its.record && its.record->keeper == keeper.self) its.record.reset();
        keeper.stage = Stage::kGone;
      } else {
        keeper.stage = Stage::kLaunches;
      }
      break;
    case Stage::kLaunches:
      launch(keeper, its);
      break;
    case Stage::kWaits:
      if (its.program.stage == Program::Stage::kGone)
        write_exit(keeper, its, its.program.exit);
      else if (keeper.told_to_end)
        let_die(its.program);
      break;
    case Stage::kGone:
      break;
  }
}

void Lives::keepers_act() {
  for (std::uint64_t i = dice_.between(1, 4); i > 0 && !keepers_.empty(); --i) {
    act(*dice_.pick(keepers_));
    bury();
  }
}

void Lives::all_keepers_act() {
  for (const auto& keeper : keepers_) act(*keeper);
  bury();
}

// The keeper is killed; its program goes on, or is killed with it.
void Lives::a_keeper_dies() {
  if (keepers_.empty()) return;
  Keeper& keeper = *dice_.pick(keepers_);
  Life& its = life(keeper.job, keeper.attempt);
  if (keeper.stage == Stage::kWaits && its.program.lives() && dice_.percent(40)) end(its);
  keeper.stage = Stage::kGone;
  bury();
}

void Lives::reboot() {
  keepers_.clear();
  for (auto& [key, life] : lives_) {
    if (life.program.lives()) end(life);
    // Unsynced parts may be lost; claim and exit are synced.
    if (life.record && !life.record->exit && dice_.percent(50)) {
      life.record->launched = false;
      life.record->program.reset();
    }
  }
  ++boot_;
  last_pid_ = 1000;
}

void Lives::bury() {
  std::erase_if(keepers_, [this](const auto& keeper) {
    if (keeper->stage != Stage::kGone) return false;
    erase_if_done(keeper->job, keeper->attempt);
    return true;
  });
}

}  // namespace mete::sim
