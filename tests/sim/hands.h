// SPDX-License-Identifier: Apache-2.0
// The engine's hands in the simulator: seam::Launcher on the processes of lives.h, with the
// promises of src/seam/launcher.h and no better ones. Its reports come when it is asked for news:
// in any order, sometimes twice, and never about a forgotten job. It dies with its daemon; the next
// one finds keepers only by their records.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/job/input.h"
#include "seam/launcher.h"
#include "tests/sim/cards.h"
#include "tests/sim/lives.h"

namespace mete::sim {

class Hands final : public seam::Launcher {
 public:
  Hands(Dice& dice, seam::Clock& clock, Lives& lives, Judge& judge)
      : dice_(dice), clock_(clock), lives_(lives), judge_(judge) {}

  bool reserve(core::JobId job, const std::vector<core::GrantedCard>& cards) override;
  void start(const core::Job& job) override;
  void watch(core::JobId job, core::ProcessRef runner) override;
  void wake(core::JobId job, core::ProcessRef runner) override;
  void stop(core::JobId job) override;
  void forget(core::JobId job) override;
  void discard(const core::Job& job) override;

  // The other daemons' answer to a reservation.
  std::function<bool(core::JobId, const std::vector<core::GrantedCard>&)> others_agree;
  // Called by everything that changes the world: what must be on disk is by then. May throw:
  // killed.
  std::function<void()> before_act;
  std::function<bool(core::ProcessRef)> runner_lives;
  // With the last process of a stopped job its `mete run` has ended too.
  std::function<void(core::JobId)> end_runner;
  // The other daemons are about to learn that a job has less of its cards: they may take the rest
  // at once.
  std::function<void(core::JobId, const std::vector<core::GrantedCard>&)> before_less;

  // The daemon died: the next one knows nothing.
  void die();
  // The reports that the daemon gets now.
  std::vector<core::Input> news(bool all);

  struct Watched {
    std::uint32_t attempt = 1;
    bool started_told = false;
    std::string failed;  // why no keeper could be spawned
    bool later = false;  // worth a retry
  };
  const Reserved& reserved() const { return reserved_; }
  const std::map<core::JobId, Watched>& started() const { return detached_; }
  const std::map<core::JobId, core::ProcessRef>& watched() const { return runs_; }
  const std::set<core::JobId>& stopped() const { return stopped_; }
  // Since the last turn another daemon was first.
  bool take_refused() { return std::exchange(refused_, false); }

 private:
  bool heard(bool all) { return all || dice_.percent(60); }
  void of_keeper(core::JobId id, Watched& watched, std::vector<core::Input>& news);
  void of_record(core::JobId id, Life& life, std::vector<core::Input>& news);
  void of_run(core::JobId id, std::vector<core::Input>& news);

  Dice& dice_;
  seam::Clock& clock_;
  Lives& lives_;
  Judge& judge_;
  Reserved reserved_;
  std::map<core::JobId, Watched> detached_;
  std::map<core::JobId, core::ProcessRef> runs_;
  std::set<core::JobId> stopped_;
  std::map<core::JobId, core::Exit> before_;  // for a planted bug: exits of attempts that are over
  bool refused_ = false;
};

}  // namespace mete::sim
