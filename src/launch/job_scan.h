// SPDX-License-Identifier: Apache-2.0
// Finds every process of a job whose runner is gone or does not end it, by reading /proc: the
// processes are marked by their environment, whichever process adopted them. A process that hangs
// in the driver can block a reader of its environment, so this runs in a child process
// (process_watcher.h).
//
// For root's daemon the environment is not trustworthy, since its user sets it: only processes of
// the job's user are ever looked at or signalled.
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
  Outsiders outsiders;    // carry the job's mark without belonging to it: the server of the
                          // simulated cards
  std::set<pid_t> later;  // looked at last: an earlier look at them did not return
};

struct ScanReport {
  // Called before a read that may block on this process.
  std::function<void(pid_t)> looking;
  // A living process of the job, reported at once: one that forks and exits may live for a
  // millisecond.
  std::function<void(const core::ProcessRef&)> found;
};

// Finds the runner if it lives, processes that are marked in their environment (METE_JOB_ID with
// METE_JOB_TOKEN) or have the job's grant file mapped, and all their descendants. Repeats until a
// pass over /proc shows no process that it has not looked at, and the kernel has created none
// during that pass: then none was missed. On a machine that forks all the time it stops after
// kMaxPasses passes. False: there was no descriptor or memory to look with, so the result may be
// incomplete.
bool scan_job(const JobScan& scan, const ScanReport& report);

// How many processes the kernel has ever created; nullopt if it does not say.
std::optional<std::uint64_t> processes_made();

// Whether this very process is there, and not only its remains.
bool is_living(const core::ProcessRef& process);

// Sends a signal to this very process if it belongs to this user; false: it is gone, belongs to
// another user, or no descriptor was available.
bool signal_process(const core::ProcessRef& process, std::uint32_t uid, int signal_number);

}  // namespace mete::launch
