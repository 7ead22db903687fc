// SPDX-License-Identifier: Apache-2.0
// What a reading of the cards says about the jobs on them: which are idle, and which hold memory
// outside their cap. Values in and out; the engine decides what follows.
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
    bool idle = false;     // as last reported to the engine
    // A job that asked to be parked when idle is idle also while none of its processes uses a card.
    bool unused_is_idle = false;
  };
  struct Verdicts {
    std::map<core::JobId, WallTime> idle_since;
    std::vector<core::Input> inputs;  // for the engine
  };

  // `stop`: end a job that has certainly escaped.
  explicit Judge(bool stop) : stop_(stop) {}
  void set_stop(bool stop) { stop_ = stop; }

  // `owners` maps processes to jobs, `loads` holds the utilisation of the jobs' processes (empty:
  // the job has none on its cards); a `stale` reading changes nothing. `wall` is the time when the
  // reading began.
  Verdicts see(const node::CardSnapshot& snapshot, WallTime wall,
               const std::map<pid_t, core::JobId>& owners, node::JobLoads loads,
               const std::vector<Subject>& jobs, bool stale);

 private:
  bool stop_;
  node::Idle idle_;
  node::EscapeWatch escapes_;
};

}  // namespace mete::daemon
