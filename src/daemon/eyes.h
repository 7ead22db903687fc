// SPDX-License-Identifier: Apache-2.0
// What the daemon sees of the machine: a helper process reads the cards, other daemons' claims are
// read beside them, and each look says which job every process is of, which jobs are idle and which
// hold memory outside their meter. What follows from it is decided by the engine.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "core/job/input.h"
#include "core/job/state.h"
#include "daemon/claims_keeper.h"
#include "daemon/context_costs.h"
#include "daemon/judge.h"
#include "daemon/movers.h"
#include "node/attribution.h"
#include "node/card_helper.h"
#include "seam/clock.h"
#include "seam/loop.h"
#include "serve/service.h"

namespace mete::daemon {

struct EyesSettings {
  node::CardHelperSettings helper;
  std::vector<std::string> cost_files;  // of ContextCosts
  bool parking = false;                 // there can be movers
  bool may_stop = false;                // a process is never taken for another (namespaces)
  config::Config config;
};

class Eyes {
 public:
  struct Callbacks {
    std::function<void(core::Input)> tell;           // what the engine is to know of a job
    std::function<void(serve::MachineReading)> see;  // after each look
  };

  // The state, the claims and the movers outlive us. The helper is started at once; callbacks come
  // from the loop.
  Eyes(EyesSettings settings, seam::Loop loop, seam::Clock& clock, const core::State& state,
       ClaimsKeeper& claims, Movers& movers, Callbacks callbacks);

  // Four times a second, or once.
  void set_busy(bool busy) { cards_.set_busy(busy); }
  // Called about once a second: what changes without a new reading is its age, and what others
  // claim.
  void tick();
  std::uint64_t restarts() const { return cards_.restarts(); }

 private:
  // A reading this old says nothing about what others took meanwhile.
  static constexpr std::chrono::seconds kStale{5};
  // Processes of a job that has just ended may still be in the last reading.
  static constexpr std::int64_t kJustEndedMs = 3'000;

  bool is_stale() const { return cards_.age() && *cards_.age() > kStale; }
  void look();
  std::vector<node::JobHold> holds() const;
  std::vector<Judge::Subject> subjects() const;
  WallTime wall_of(seam::Nanoseconds moment) const;

  EyesSettings settings_;
  seam::Clock& clock_;
  const core::State& state_;
  ClaimsKeeper& claims_;
  Movers& movers_;
  Callbacks callbacks_;
  Judge judge_;
  ContextCosts contexts_;
  std::map<pid_t, core::JobId> owners_;
  std::map<std::string, Bytes> capacities_;
  node::CardHelper cards_;
};

}  // namespace mete::daemon
