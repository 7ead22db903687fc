// SPDX-License-Identifier: Apache-2.0
// Every process of a job whose runner is gone, found by looking through /proc: its own are marked
// by their environment, whoever adopted them. A process that hangs in the driver can block whoever
// reads its environment, so this runs in a child process (process_watcher.h).
//
// In a daemon of root's the environment is somebody else's word: only processes of the job's user
// are ever looked at, and only those signalled.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "launch/process_tree.h"
#include "seam/launcher.h"

namespace mete::launch {

struct JobMark {
  core::JobId id;
  std::uint32_t uid = 0;
  core::ProcessRef runner;
};

struct JobScan {
  JobMark job;
  Outsiders outsiders;    // not of the job, though they carry its mark: the simulated cards' server
  std::set<pid_t> later;  // looked at last: the look at these did not come back before
};

struct ScanReport {
  // Called before anything that may block on this process.
  std::function<void(pid_t)> looking;
  // A living process of the job.
  std::function<void(const core::ProcessRef&)> found;
};

// Marked in their environment (METE_JOB_ID with METE_JOB_TOKEN), or with the job's grant file
// mapped, or descendants of these. May miss what is forked while it looks: look again until two
// looks in a row find nothing.
void scan_job(const JobScan& scan, const ScanReport& report);

// Is this very process there, and not only its remains?
bool is_living(const core::ProcessRef& process);

// Sends a signal to this very process if it is of this user; false: it is gone or another's.
bool signal_process(const core::ProcessRef& process, std::uint32_t uid, int signal_number);

}  // namespace mete::launch
