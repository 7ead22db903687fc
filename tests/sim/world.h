// SPDX-License-Identifier: Apache-2.0
// A machine with people, processes, cards and a disk, and one daemon on it: the real engine on the
// fakes of its seams. One step is one thing that happens, chosen by dice: somebody submits, a
// runner starts its program, a program ends or will not die, a runner is killed, a card falls off
// the bus, another daemon takes bytes, the disk fills up, the daemon takes a turn, or is killed.
// After every step the Checker looks at it all.
//
// What outlives the daemon: processes, cards, what was committed. What does not: its inputs, its
// launcher's knowledge, its answers under way.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/engine.h"
#include "tests/sim/cards.h"
#include "tests/sim/dice.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_launcher.h"
#include "tests/support/mem_store.h"

namespace mete::sim {

// A `mete run`, and the program it starts.
struct Runner {
  enum class Program { kNone, kRuns, kDying, kGone };

  core::ProcessRef self;
  core::Submit wants;
  bool alive = true;
  std::optional<core::JobId> job;  // once it was answered
  std::uint64_t ticket = 0;        // of what it waits for; 0: nothing
  Program program = Program::kNone;
  core::ProcessRef program_ref;
  std::vector<core::GrantedCard> cards;  // on which it was started
  unsigned stubborn = 0;                 // steps until it gives in
  core::Exit exit;
  bool program_lives() const { return program == Program::kRuns || program == Program::kDying; }
};

class Checker;

class World {
 public:
  World(std::uint64_t seed, Checker& checker);

  void step();
  // No new arrivals, all cards are well, all programs end. True: the queue drained within a bound.
  bool drains();

 private:
  friend class Checker;
  using Action = void (World::*)();

  void somebody_submits();
  void a_runner_acts();
  void a_program_ends();
  void a_runner_dies();
  void somebody_cancels();
  void cards_change();
  void daemon_looks();
  void news_arrive();
  void disk_trouble();
  void daemon_turns();
  void daemon_is_killed();
  void daemon_restarts_cleanly();

  void start_daemon();
  void act(Runner& runner);
  void start_program(Runner& runner, const core::Job& job);
  void let_die(Runner& runner);
  void time_passes();
  void give_up(Runner& runner);
  void tell(core::Input input);
  std::uint64_t ask(core::Input input);  // and waits for the answer to this ticket
  void answered(const engine::Answer& answer);
  Runner* runner_of(core::JobId job);
  Runner* by_process(core::ProcessRef process);
  void forget_the_dead();

  Dice dice_;
  Cards cards_;
  tests::FakeClock clock_;
  tests::FaultyStore store_;
  tests::FakeLauncher launcher_;
  engine::Options options_;
  Checker& checker_;
  std::unique_ptr<engine::Engine> engine_;  // empty: the daemon is down
  std::vector<engine::Asked> inputs_;
  std::vector<std::unique_ptr<Runner>> runners_;
  std::uint64_t last_ticket_ = 0;
  std::int32_t last_pid_ = 1000;
  std::size_t crowd_ = 0;  // so many unfinished jobs at most
  bool quiet_ = false;
  bool disk_is_full_ = false;
};

}  // namespace mete::sim
