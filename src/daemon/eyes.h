// SPDX-License-Identifier: Apache-2.0
// The daemon's view of the machine: a helper process reads the cards, and each look also reads
// other daemons' claims and finds the job of every process, idle jobs, and jobs that hold memory
// outside their meter. The engine decides what follows.
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
  std::vector<std::string> cost_files;  // for ContextCosts
  bool parking = false;                 // movers are possible
  bool may_stop = false;                // pids cannot be mistaken (namespaces)
  config::Config config;
};

class Eyes {
 public:
  struct Callbacks {
    std::function<void(core::Input)> tell;           // inputs for the engine about jobs
    std::function<void(serve::MachineReading)> see;  // after each look
  };

  // The state, the claims and the movers must outlive this object. The helper starts at once;
  // callbacks come from the loop.
  Eyes(EyesSettings settings, seam::Loop loop, seam::Clock& clock, const core::State& state,
       ClaimsKeeper& claims, Movers& movers, Callbacks callbacks);

  // Other values of the configuration, from the next reading on.
  void set_config(const config::Config& config);
  // Readings per second: four if busy, else one.
  void set_busy(bool busy) { cards_.set_busy(busy); }
  // Call about once a second: without a new reading its age still changes, and so do other daemons'
  // claims.
  void tick();
  std::uint64_t restarts() const { return cards_.restarts(); }

 private:
  // A reading this old does not show what other processes took meanwhile.
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
