// SPDX-License-Identifier: Apache-2.0
// A launcher without processes: it records its calls and its current knowledge. The test decides
// what becomes of the processes, by inputs of the engine.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "seam/launcher.h"

namespace mete::tests {

class FakeLauncher final : public seam::Launcher {
 public:
  bool reserve(core::JobId job, const std::vector<core::GrantedCard>& cards) override;
  void start(const core::Job& job) override;
  void watch(core::JobId job, core::ProcessRef runner) override;
  void wake(core::JobId job, core::ProcessRef runner) override;
  void stop(core::JobId job) override;
  void forget(core::JobId job) override;

  // The other daemons' answer to reserve(). Called each time; unset: they agree.
  std::function<bool(core::JobId, const std::vector<core::GrantedCard>&)> others_agree;
  // Called by start, watch, stop and forget, which change the world: everything must be on disk by
  // then.
  std::function<void()> before_act;

  // The daemon died: a new one knows nothing. The calls stay recorded.
  void crash();

  const std::map<core::JobId, std::vector<core::GrantedCard>>& reserved() const {
    return reserved_;
  }
  const std::map<core::JobId, core::ProcessRef>& watched() const { return watched_; }
  // Jobs with a keeper: as they were when it was to be started or found, and in which attempt.
  const std::map<core::JobId, core::Job>& kept() const { return kept_; }
  // How often each job was to be stopped, since the last crash and until it was forgotten.
  const std::map<core::JobId, int>& stops() const { return stops_; }
  // "reserve 1", "start 1", "watch 1", "wake 1", "stop 1", "forget 1", since the last call.
  std::vector<std::string> take_calls();

 private:
  void call(const char* what, core::JobId job);

  std::map<core::JobId, std::vector<core::GrantedCard>> reserved_;
  std::map<core::JobId, core::ProcessRef> watched_;
  std::map<core::JobId, core::Job> kept_;
  std::map<core::JobId, int> stops_;
  std::vector<std::string> calls_;
};

}  // namespace mete::tests
