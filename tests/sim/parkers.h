// SPDX-License-Identifier: Apache-2.0
// What a `mete run` or a keeper does while its program runs (runner/parker.h, in a few lines):
// looks now and then at the state of its job in the daemon, has the program parked or brought back
// accordingly, lets it grow, and reports. A report is repeated until it is answered, also to the
// next daemon. It looks late, or never again because it was killed; an order that was begun ends by
// itself.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "core/job/input.h"
#include "tests/sim/dice.h"
#include "tests/sim/judge.h"
#include "tests/sim/lives.h"

namespace mete::sim {

class Parkers {
 public:
  Parkers(Dice& dice, Lives& lives, Judge& judge) : dice_(dice), lives_(lives), judge_(judge) {}

  // The job as a reachable daemon shows it; nullptr: there is none, or no such job.
  std::function<const core::Job*(core::JobId)> seen;
  // Hands a report in, and returns its ticket.
  std::function<std::uint64_t(core::Input)> ask;
  // The runner of this program lives.
  std::function<bool(const Life&)> parent_lives;
  // A program begins to take its memory back.
  std::function<void(const Life&)> before_return;

  void some_act();
  void all_act();
  void programs_use_memory();
  void answered(std::uint64_t ticket, bool busy);
  void daemon_died();

 private:
  void act(Life& life);
  void look(Life& life);
  void follow(Life& life, const core::Job& job);
  void report(Life& life, std::string why = "", bool standing = false);
  void send(Life& life);
  void look_at_growth(Life& life);
  void grow(Life& life, const core::Job& job);
  void tell_growth(Life& life, std::vector<Bytes> wanted);

  Dice& dice_;
  Lives& lives_;
  Judge& judge_;
  std::map<std::uint64_t, AttemptKey> tickets_;
};

}  // namespace mete::sim
