// SPDX-License-Identifier: Apache-2.0
// The processes of jobs and what they leave on disk, all of which outlives the daemon. A keeper
// follows docs/formats/keeper.md, one stage at a time, and may die between any two: it takes the
// exclusive claim of its attempt, checks whether the daemon that spawned it still lives (if not, it
// takes the claim back), records that it launches, starts the program, waits for it, writes its
// exit, and is gone. A `mete run` starts its program without a record.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/job/input.h"
#include "core/job/job.h"
#include "seam/clock.h"
#include "tests/sim/dice.h"
#include "tests/sim/judge.h"
#include "tests/sim/memory.h"

namespace mete::sim {

struct Program {
  enum class Stage { kNone, kRuns, kDying, kGone };
  Stage stage = Stage::kNone;
  core::ProcessRef ref;
  seam::Nanoseconds since{};
  seam::Nanoseconds ends{};     // by itself
  seam::Nanoseconds dies{};     // after TERM
  seam::Nanoseconds stop_at{};  // by its --time; zero: none
  core::Exit exit;              // as its parent sees it when it is gone
  bool lives() const { return stage == Stage::kRuns || stage == Stage::kDying; }
};

// On disk; only forget() removes it.
struct Record {
  core::ProcessRef keeper;
  std::uint64_t boot = 0;
  bool launched = false;
  std::optional<core::ProcessRef> program;
  seam::Nanoseconds since{};
  std::optional<core::Exit> exit;
};

// What its `mete run` or keeper remembers besides (parkers.h).
struct Parker {
  std::uint64_t ticket = 0;                // of its open request; 0: none
  std::optional<core::ParkReport> unsent;  // or not answered
  std::string obstacle;                    // to parking, as it was reported
};

// One attempt of one job.
struct Life {
  core::JobId job;
  std::uint32_t attempt = 1;
  core::SharedSpec spec;  // once it was started
  Program program;
  Memory memory;
  Parker parker;
  std::vector<core::GrantedCard> cards;  // on which the program was started
  std::optional<Record> record;
  std::optional<core::Exit> exit;  // what its parent has recorded or reported, once and for all
  bool over = false;               // in the log
};

struct Keeper {
  enum class Stage { kSpawned, kClaimed, kLaunches, kWaits, kGone };
  core::ProcessRef self;
  std::uint64_t daemon = 0;  // that spawned it
  core::JobId job;
  std::uint32_t attempt = 1;
  core::SharedSpec spec;
  std::vector<core::GrantedCard> cards;
  Stage stage = Stage::kSpawned;
  bool told_to_end = false;
};

class Lives {
 public:
  Lives(Dice& dice, seam::Clock& clock, Judge& judge) : dice_(dice), clock_(clock), judge_(judge) {}

  // A program is about to start under this attempt.
  std::function<void(const Life&)> before_start;
  // Which daemon lives now; 0: none.
  std::function<std::uint64_t()> daemon;
  bool quiet = false;  // nothing goes wrong by chance

  core::ProcessRef new_process();
  std::uint64_t boot() const { return boot_; }
  seam::Nanoseconds now() const { return clock_.monotonic(); }
  Life& life(core::JobId job, std::uint32_t attempt);
  const Life* find(core::JobId job, std::uint32_t attempt) const;
  // The log says that the attempt has ended.
  void over(core::JobId job, std::uint32_t attempt);
  // The daemon removes the record.
  void forget(core::JobId job, std::uint32_t attempt);
  // Removes records that a killed daemon did not remove.
  void sweep();

  void spawn(const core::Job& job);
  // The keeper that the living daemon can see: its child, or the one that has the claim.
  Keeper* keeper_of(const Life& life);
  std::size_t keepers() const { return keepers_.size(); }
  bool somebody_lives() const;
  // True unless all of them only wait to return.
  bool somebody_acts() const;
  // Lives whose program has not been asked to end.
  std::vector<Life*> running();
  const std::map<AttemptKey, Life>& all() const { return lives_; }
  // What movers stored for a job is not needed any more.
  void drop_kept(core::JobId job);

  // Something happens to one of them, or to all.
  void keepers_act();  // some of them
  void all_keepers_act();
  void a_keeper_dies();
  void a_program_ends();
  void all_programs_end();
  void time_passes();
  void reboot();

  void kill(core::JobId job, std::uint32_t attempt);
  void start_program(Life& life, const core::SharedSpec& spec,
                     std::vector<core::GrantedCard> cards);
  // TERM, and KILL after a grace period; some are in the kernel meanwhile and take longer.
  void let_die(Program& program, bool timed_out = false);

 private:
  void act(Keeper& keeper);
  void claim(Keeper& keeper, Life& life);
  void launch(Keeper& keeper, Life& life);
  void write_exit(Keeper& keeper, Life& life, core::Exit exit);
  void end(Life& life);
  void bury();
  void erase_if_done(core::JobId job, std::uint32_t attempt);

  Dice& dice_;
  seam::Clock& clock_;
  Judge& judge_;
  std::map<AttemptKey, Life> lives_;
  Arena arena_;
  std::vector<std::unique_ptr<Keeper>> keepers_;
  std::uint64_t boot_ = 1;
  std::int32_t last_pid_ = 1000;
};

}  // namespace mete::sim
