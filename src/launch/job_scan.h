// SPDX-License-Identifier: Apache-2.0
// Every process of a job whose runner is gone or does not end it, found by looking through /proc:
// they are marked by their environment, whichever process adopted them. A process that hangs in the
// driver can block whoever reads its environment, so this runs in a child process
// (process_watcher.h).
//
// In a daemon of root's the environment is somebody else's word: only processes of the job's user
// are ever looked at, and only those signalled.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
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
  // A living process of the job, at once: one that forks and exits may live for a millisecond.
  std::function<void(const core::ProcessRef&)> found;
};

// The runner if it lives, those marked in their environment (METE_JOB_ID with METE_JOB_TOKEN) or
// with the job's grant file mapped, and all that descends from these. Looks at what was forked
// meanwhile until a pass over /proc shows no process that it has not looked at, and the kernel has
// made none during that pass: then none was missed. On a machine that forks all the time it is
// content with kMaxPasses that agree. False: there was no descriptor or memory to look with, and
// what was found says nothing about what was not.
bool scan_job(const JobScan& scan, const ScanReport& report);

// How many processes the kernel has ever made; nullopt where it does not say.
std::optional<std::uint64_t> processes_made();

// Is this very process there, and not only its remains?
bool is_living(const core::ProcessRef& process);

// Sends a signal to this very process if it is of this user; false: it is gone or another's, or
// there is no descriptor for that now.
bool signal_process(const core::ProcessRef& process, std::uint32_t uid, int signal_number);

}  // namespace mete::launch
