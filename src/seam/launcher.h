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

  // Tells the other daemons of this machine that these bytes are ours, before we act on it. False:
  // one of them was first. forget() takes it back. Again for a job that has more or less of its
  // cards now: less is always granted.
  virtual bool reserve(core::JobId job, const std::vector<core::GrantedCard>& cards) = 0;
  // Starts the keeper of a detached job (again, after a restart: finds it). The keeper takes the
  // exclusive claim of (job, attempt) before anything runs, so asking twice starts nothing twice.
  // What becomes of it arrives as core::Started, core::Ended (also for what ended while nobody
  // looked), core::RunnerGone (gone without a word) or core::NotLaunched (nothing ran).
  virtual void start(const core::Job& job) = 0;
  // From now on the runner's end arrives as core::RunnerGone, at once if it is gone already.
  // Again for the same job: the newer runner.
  virtual void watch(core::JobId job, core::ProcessRef runner) = 0;
  // The runner of a job that is to be ended has something to hear: if it is stopped (Ctrl-Z), it
  // goes on. No promise is made.
  virtual void wake(core::JobId job, core::ProcessRef runner) { (void)job, (void)runner; }
  // Ends every process of a job, its `mete run` too: TERM, then KILL after a grace. With a keeper
  // that lives its end arrives as core::Ended, otherwise the last process's as core::JobGone.
  // Asking again does no harm.
  virtual void stop(core::JobId job) = 0;
  // A job holds cards that can be parked: what that needs on them shall be there. Asked again with
  // every change of the job; does no harm.
  virtual void make_parkable(const core::Job& job) { (void)job; }
  // The attempt has ended: forget it.
  virtual void forget(core::JobId job) = 0;
  // The job itself is no longer remembered: what was kept for its user (its log) goes.
  virtual void discard(const core::Job& job) { (void)job; }
};

}  // namespace mete::seam
