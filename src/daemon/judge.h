// SPDX-License-Identifier: Apache-2.0
// What a reading of the cards says of the jobs on them: which do nothing, and which hold memory
// outside their cap. Values in and out; what follows from it is decided by the engine.
#pragma once

#include <map>
#include <vector>

#include "core/job/input.h"
#include "core/job/job.h"
#include "node/card_snapshot.h"
#include "node/escape.h"
#include "node/idle.h"

namespace mete::daemon {

class Judge {
 public:
  struct Subject {
    core::JobId id;
    std::vector<core::GrantedCard> grant;
    bool running = false;  // not being started, parked or ended
    bool idle = false;     // as the engine was told last
  };
  struct Verdicts {
    std::map<core::JobId, WallTime> idle_since;
    std::vector<core::Input> inputs;  // for the engine
  };

  // `stop`: a job that certainly escaped is to be ended.
  explicit Judge(bool stop) : stop_(stop) {}

  // `owners` says whose a process is and `loads` what it does; a reading that is `stale` changes
  // nothing. `wall` is when the reading began.
  Verdicts see(const node::CardSnapshot& snapshot, WallTime wall,
               const std::map<pid_t, core::JobId>& owners, node::JobLoads loads,
               const std::vector<Subject>& jobs, bool stale);

 private:
  bool stop_;
  node::Idle idle_;
  node::EscapeWatch escapes_;
};

}  // namespace mete::daemon
