// SPDX-License-Identifier: Apache-2.0
// The processes of jobs, as the engine sees them: start, watch, end. The results arrive later, as
// inputs of the engine. Nothing here blocks. Real: Hands of meted (daemon/hands.h). Tests: a fake
// that records the calls.
#pragma once

#include <vector>

#include "core/job/job.h"

namespace mete::seam {

struct Launcher {
  virtual ~Launcher() = default;

  // Publishes for the other daemons of this machine that these bytes are ours, before we act on it.
  // False: one of them was first. forget() takes it back. Repeated for a job that now has more or
  // less of its cards: less is always granted.
  virtual bool reserve(core::JobId job, const std::vector<core::GrantedCard>& cards) = 0;
  // Starts the keeper of a detached job (after a restart: finds it). The keeper takes the exclusive
  // claim of (job, attempt) before anything runs, so a repeated call starts nothing twice. The
  // outcome arrives as core::Started, core::Ended (also for a job that ended while no daemon ran),
  // core::RunnerGone (gone without a report) or core::NotLaunched (nothing ran).
  virtual void start(const core::Job& job) = 0;
  // From now on the runner's end arrives as core::RunnerGone, at once if it is gone already.
  // Repeated for a job: the newer runner replaces the older one.
  virtual void watch(core::JobId job, core::ProcessRef runner) = 0;
  // The runner of a job that is to be ended has a message: if it is stopped (Ctrl-Z), it is
  // continued. Best effort.
  virtual void wake(core::JobId job, core::ProcessRef runner) { (void)job, (void)runner; }
  // Ends every process of a job, its `mete run` too: TERM, then KILL after a grace period. With a
  // living keeper its end arrives as core::Ended, otherwise the end of the last process as
  // core::JobGone. Idempotent.
  virtual void stop(core::JobId job) = 0;
  // A job holds cards and can be parked: prepares what that needs on them. Called with every change
  // of the job; idempotent.
  virtual void make_parkable(const core::Job& job) { (void)job; }
  // The attempt has ended: forget it.
  virtual void forget(core::JobId job) = 0;
  // The job itself is no longer kept: removes what was kept for its user (its log).
  virtual void discard(const core::Job& job) { (void)job; }
};

}  // namespace mete::seam
