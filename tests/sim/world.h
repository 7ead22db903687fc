// SPDX-License-Identifier: Apache-2.0
// A machine with users, processes, cards, clocks and a disk, and one daemon on it: the real engine
// on the fakes of its seams. One step is one thing that happens, chosen by dice: a user submits or
// changes a job, a keeper goes one stage further or is killed, a program ends or will not, a card
// falls off the bus, another daemon takes bytes, the disk fills up, a clock is set, the daemon
// takes a turn or is killed, between two turns or inside of one, the machine reboots. After every
// step the Checker checks everything.
//
// What outlives the daemon: processes, records, cards, committed events. What does not: its inputs,
// its launcher's knowledge, its answers under way.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "tests/sim/books.h"
#include "tests/sim/cards.h"
#include "tests/sim/dice.h"
#include "tests/sim/hands.h"
#include "tests/sim/lives.h"
#include "tests/sim/parkers.h"
#include "tests/sim/people.h"
#include "tests/support/fake_clock.h"
#include "tests/support/mem_store.h"

namespace mete::sim {

// Thrown by a seam: the daemon was killed in the middle of a turn.
struct Killed {};

// The disk, on which the daemon can be killed before and after a commit.
class Disk final : public tests::FaultyStore {
 public:
  std::function<void()> seam;
  Result<void> commit() override;
  // Its daemon or the machine died.
  void crash();

 private:
  std::uint64_t synced_ = 0;  // for a planted bug: what is really on the disk
};

// A `mete run`.
struct Runner {
  core::ProcessRef self;
  core::Submit wants;
  bool alive = true;
  bool deaf = false;               // does not end its job on request
  std::optional<core::JobId> job;  // once it was answered
  std::uint64_t ticket = 0;        // of its open request; 0: none
};

class Checker;

class World {
 public:
  explicit World(Judge& judge);
  ~World();

  void step();
  // No new arrivals, all cards work, all programs end. True: the queue drained within a bound.
  bool drains();
  // The jobs that are left after that, as text.
  std::string left() const;

 private:
  friend class Checker;
  using Action = void (World::*)();

  // people.cc decides on the inputs; here they are passed on.
  void somebody_runs();
  void somebody_submits();
  void somebody_changes();
  void an_admin_orders();
  void a_runner_acts();
  void a_runner_dies();
  void keepers_act() { lives_.keepers_act(); }
  void a_keeper_dies() { lives_.a_keeper_dies(); }
  void a_program_ends() { lives_.a_program_ends(); }
  void programs_use_memory() { parkers_.programs_use_memory(); }
  void somebody_parks();
  void cards_change();
  void a_clock_is_set();
  void disk_trouble();
  void daemon_looks();
  void news_arrive();
  void daemon_turns();
  void daemon_is_killed();
  void daemon_will_be_killed();
  void daemon_restarts_cleanly();
  void machine_reboots();

  void start_daemon();
  void turn();
  void time_passes();
  void quiet_round(std::size_t round);
  void hear(bool all);
  void act(Runner& runner);
  void start_program(Runner& runner, const core::Job& job);
  void give_up(Runner& runner);
  engine::Asked& tell(core::Input input);
  std::uint64_t ask(core::Input input);  // and waits for the answer to this ticket
  void answered(const engine::Answer& answer);
  void seam_is_called();
  bool crowded() const;
  bool runner_lives(core::ProcessRef process) const;
  bool parent_lives(const Entry& entry);
  bool others_agree(core::JobId id, const std::vector<core::GrantedCard>& wanted);
  Reserved known_to_others() const;
  void forget_the_dead();

  Judge& judge_;
  Dice dice_;
  tests::FakeClock clock_;
  Cards cards_;
  Lives lives_;
  Parkers parkers_;
  Hands hands_;
  Disk disk_;
  engine::Options options_;
  Books books_;
  People people_;
  std::unique_ptr<Checker> checker_;
  std::unique_ptr<engine::Engine> engine_;  // empty: the daemon is down
  std::uint64_t daemon_ = 0;                // the number of the living one; 0: none
  std::uint64_t daemons_ = 0;
  std::vector<engine::Asked> inputs_;
  std::vector<std::unique_ptr<Runner>> runners_;
  std::uint64_t last_ticket_ = 0;
  std::size_t crowd_ = 0;                 // upper bound of unfinished jobs
  std::optional<std::uint64_t> kill_in_;  // calls of a seam
  bool quiet_ = false;
  bool disk_is_full_ = false;
};

}  // namespace mete::sim
