// SPDX-License-Identifier: Apache-2.0
// The engine's hands: promises to other daemons, the keepers of detached jobs, the processes of
// runs. What happens to them is reported to the engine as inputs.
#pragma once

#include <functional>
#include <string>

#include "config/config.h"
#include "core/job/input.h"
#include "core/job/state.h"
#include "daemon/claims_keeper.h"
#include "daemon/descriptors.h"
#include "daemon/movers.h"
#include "launch/keepers.h"
#include "launch/parts.h"
#include "launch/process_watcher.h"
#include "seam/launcher.h"
#include "seam/loop.h"
#include "seam/store.h"
#include "serve/service.h"

namespace mete::daemon {

struct HandsSettings {
  std::string state_dir;
  bool system = false;  // runs as root, and jobs run as their users
  config::Config config;
  launch::Parts parts;
  std::string readings;                 // path
  std::string simulated;                // METE_SIM
  std::function<std::string()> socket;  // where the daemon listens now
  Descriptors descriptors;
};

class Hands final : public seam::Launcher {
 public:
  Hands(HandsSettings settings, seam::Loop loop, seam::Clock& clock, ClaimsKeeper& claims,
        seam::Store& store, std::function<void(core::Input)> tell,
        std::function<void(const std::string&)> log);

  // Call first: the jobs, and the machine as last read. Both change over time and must outlive this
  // object.
  void meet(const core::State& state, const serve::MachineReading& machine);
  // Other values of the configuration, for jobs that start or are stopped from now on.
  void set_config(const config::Config& config);
  // Call once the running jobs are known, before the engine acts on them.
  Result<void> begin();

  bool reserve(core::JobId job, const std::vector<core::GrantedCard>& cards) override;
  void start(const core::Job& job) override;
  void watch(core::JobId job, core::ProcessRef runner) override;
  void wake(core::JobId job, core::ProcessRef runner) override;
  void stop(core::JobId job) override;
  void forget(core::JobId job) override;
  void discard(const core::Job& job) override;
  void make_parkable(const core::Job& job) override { movers_.want(job); }

  Movers& movers() { return movers_; }
  const Movers& movers() const { return movers_; }

  // The logs of a detached job; second "": both outputs go to the first.
  std::pair<std::string, std::string> logs_of(const core::Job& job) const;
  // The folder of a job's user: logs, grants, scripts, files of sweeps.
  std::string folder_of(std::uint32_t uid) const;

 private:
  launch::WatcherCallbacks watcher_callbacks();
  launch::KeeperCallbacks keeper_callbacks();
  launch::KeeperSettings keeper_settings() const;
  seam::Milliseconds patience() const;
  MoverSettings mover_settings() const;
  launch::Outsiders outsiders() const;
  Result<void> make_folder_of(const core::Job& job) const;
  Result<void> check_parts(const core::Job& job);
  void give_own_limit(core::Detached& detached) const;
  Result<std::string> plan_for(const core::Job& job);

  HandsSettings settings_;
  ClaimsKeeper& claims_;
  seam::Store& store_;
  std::function<void(core::Input)> tell_;
  std::function<void(const std::string&)> log_;
  const core::State* state_ = nullptr;
  const serve::MachineReading* machine_ = nullptr;
  Movers movers_;
  launch::ProcessWatcher processes_;
  launch::Keepers keepers_;
};

}  // namespace mete::daemon
