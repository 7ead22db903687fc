// SPDX-License-Identifier: Apache-2.0
// See world.h: the daemon's life and deaths.
#include <utility>

#include "tests/sim/checker.h"
#include "tests/sim/planted.h"
#include "tests/sim/world.h"

namespace mete::sim {

Result<void> Disk::commit() {
  if (queued() == 0) return FaultyStore::commit();
  seam();
  Result<void> done = FaultyStore::commit();
  // Or it only reports success.
  if (done && !planted_every("lost-sync", 3)) synced_ = last_committed();
  if (done) seam();
  return done;
}

void Disk::crash() {
  FaultyStore::crash();
  if (planted("lost-sync")) lose_after(synced_);
}

void World::seam_is_called() {
  if (!kill_in_) return;
  if (*kill_in_ == 0) throw Killed{};
  --*kill_in_;
}

void World::start_daemon() {
  daemon_ = ++daemons_;
  options_.boot_id = "boot " + std::to_string(lives_.boot());
  engine_ = std::make_unique<engine::Engine>(clock_, disk_, hands_, options_);
  try {
    const Result<void> recovered = engine_->recover();
    if (!recovered) {
      if (recovered.error().code != ErrorCode::kIo)
        judge_.fail("recover: " + recovered.error().message);
      daemon_is_killed();
      return;
    }
  } catch (const Killed&) {
    daemon_is_killed();
    return;
  }
  checker_->after_recovery();
  daemon_looks();
}

void World::daemon_looks() {
  if (!engine_) return;
  engine_->see(cards_.now());
  tell(core::Look{});
}

void World::hear(bool all) {
  for (core::Input& news : hands_.news(all)) tell(std::move(news));
}

void World::news_arrive() {
  if (engine_) hear(false);
}

void World::daemon_turns() {
  if (engine_)
    turn();
  else
    start_daemon();
}

void World::turn() {
  std::vector<engine::Asked> inputs = std::exchange(inputs_, {});
  checker_->before_turn(inputs);
  try {
    const Result<std::vector<engine::Answer>> answers = engine_->turn(inputs);
    checker_->after_turn(answers);
    if (!answers) {
      daemon_is_killed();
      return;
    }
    for (const engine::Answer& answer : *answers) answered(answer);
  } catch (const Killed&) {
    judge_.saw("death inside of a turn");
    daemon_is_killed();
    return;
  }
  if (dice_.percent(5)) disk_.let_go(dice_.below(50));
}

void World::answered(const engine::Answer& answer) {
  parkers_.answered(answer.ticket,
                    !answer.result && answer.result.error().code == ErrorCode::kBusy);
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
  kill_in_.reset();
  if (!engine_) return;
  checker_->before_death();
  engine_.reset();
  daemon_ = 0;
  disk_.crash();
  hands_.die();
  inputs_.clear();
  parkers_.daemon_died();
  for (const auto& runner : runners_) {
    if (runner->ticket == 0) continue;
    runner->ticket = 0;  // it asks again
    if (runner->job) continue;
    if (dice_.percent(50)) give_up(*runner);
  }
}

void World::daemon_will_be_killed() {
  if (engine_) kill_in_ = dice_.below(12);
}

void World::daemon_restarts_cleanly() {
  if (!engine_) return;
  kill_in_.reset();
  (void)engine_->save();  // a full disk does not prevent the end
  daemon_is_killed();
  start_daemon();
}

void World::machine_reboots() {
  daemon_is_killed();
  lives_.reboot();
  for (const auto& runner : runners_) give_up(*runner);
  judge_.saw("reboot");
}

}  // namespace mete::sim
