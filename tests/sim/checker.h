// SPDX-License-Identifier: Apache-2.0
// What must be true after every step. Books and Line judge the log; here it is compared with the
// answers that clients got, with the calls of the launcher, and with the engine's state: step by
// step for the jobs that a turn has touched, for all of them every thousand steps and whenever the
// daemon has died.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/sim/advice.h"
#include "tests/sim/line.h"
#include "tests/sim/world.h"

namespace mete::sim {

class Checker {
 public:
  Checker(Judge& judge, World& world);

  // The daemon is about to take a turn, and has taken it.
  void before_turn(const std::vector<engine::Asked>& inputs);
  void after_turn(const Result<std::vector<engine::Answer>>& answers);
  // It is about to die; is back.
  void before_death();
  void after_recovery();
  // A program is about to start.
  void before_start(const Life& life) const;
  // A parked one is about to take its memory back.
  void before_return(const Life& life) const;
  void after_step();

 private:
  void follow();
  void forget_the_batch();
  void check_answers(const std::vector<engine::Answer>& answers);
  void check_answer(const core::Input& input, const engine::Answer& answer);
  void check_refusal(const core::Input& input, const Error& error) const;
  void check_submit(const core::Submit& submit, core::JobId id) const;
  void check_change(const core::Input& input, core::JobId id) const;
  bool is_the_only_one_about(const core::Input& input) const;
  void check_given_cards() const;
  void check_memory() const;
  void check_launcher(core::JobId id) const;
  void check_same(core::JobId id) const;
  void check_waits(bool all) const;
  void audit();
  void audit_indexes() const;

  Judge& judge_;
  World& world_;
  Line line_;
  Dice advice_dice_;  // its own: what is checked does not change what happens
  Advice advice_;
  core::State follower_;  // made only of committed events
  std::uint64_t followed_ = 0;
  std::vector<core::JobId> fresh_;     // granted in the events followed last
  std::set<std::string> more_;         // cards on which a job returned or grew, in these events
  std::vector<core::JobId> returned_;  // ordered to return, in these events
  std::set<core::JobId> touched_;      // by these events
  std::set<core::JobId> runner_gone_;  // reported to this daemon
  // When jobs began to be ended under this daemon.
  mutable std::map<core::JobId, seam::Nanoseconds> stopping_since_;
  std::map<std::uint64_t, core::Input> asked_;  // and not answered
  std::vector<core::Input> batch_;              // since everything was on disk
  std::uint64_t known_jobs_ = 0;                // before it
  std::set<std::uint64_t> ends_asked_;          // numbers of jobs, in this batch
  std::set<std::uint64_t> parks_asked_;
  std::set<std::uint64_t> returns_asked_;
  std::set<std::uint64_t> idle_;
  std::set<std::uint64_t> escaped_;
  std::optional<std::uint64_t> hurried_;  // from this number on a request would not wait
  bool old_ = false;                      // part of it was decided in an earlier turn
  bool was_full_ = false;
  std::uint64_t turns_ = 0;
};

}  // namespace mete::sim
