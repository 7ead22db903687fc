// SPDX-License-Identifier: Apache-2.0
// What must hold after every step, judged without the engine's own helpers: sums are added up anew,
// and a second state follows the committed log event by event.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "tests/sim/world.h"

namespace mete::sim {

class Checker {
 public:
  explicit Checker(std::uint64_t seed) : seed_(seed) {}

  void begin_step() { ++step_; }
  std::uint64_t step() const { return step_; }
  [[noreturn]] void fail(const std::string& what) const;

  // The daemon is about to take a turn, and has taken it (with this answer to each ticket).
  void before_turn(const World& world);
  void after_turn(const World& world, const std::vector<engine::Asked>& inputs,
                  const Result<std::vector<engine::Answer>>& answers);
  // It has recorded a snapshot; is about to die; is back.
  void saved(const World& world);
  void before_death(const World& world);
  void after_recovery(const World& world);
  void after_step(const World& world);

  // What the log says so far.
  const core::State& recorded() const { return follower_; }
  // How often each thing was there to be checked: a simulator in which nothing happens fails.
  const std::map<std::string, std::uint64_t>& counts() const { return counts_; }

 private:
  void follow(const World& world);
  std::set<core::JobId> check_grants(const World& world);  // returns the new ones
  void check_answers(const World& world, const std::vector<engine::Answer>& answers);
  void check_first_in_line(const World& world, const std::set<core::JobId>& fresh);
  void check_launcher(const World& world);
  void check_waits(const World& world) const;

  std::uint64_t seed_;
  std::uint64_t step_ = 0;
  core::State follower_;  // made of what was committed, and nothing else
  std::size_t followed_ = 0;
  std::set<core::JobId> holding_;               // before the turn
  std::set<core::JobId> runner_gone_;           // what this daemon was told
  std::map<std::uint64_t, core::Input> asked_;  // and not answered
  std::uint64_t last_id_ = 0;                   // given to anybody
  std::map<std::string, std::uint64_t> counts_;
};

}  // namespace mete::sim
