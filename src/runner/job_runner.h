// SPDX-License-Identifier: Apache-2.0
// Runs a job whose cards are decided, for `mete cap` (without a daemon), `mete run` and the keeper
// of a detached job: grant file, environment, sampler, program, and the explanation of a failure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "launch/grant_file.h"
#include "launch/parts.h"
#include "launch/supervise.h"
#include "runner/job_plan.h"
#include "runner/talk.h"

namespace mete::runner {

struct JobEnd {
  launch::ProgramEnd ended;
  std::vector<Bytes> peaks;    // per card
  bool refused = false;        // the cap refused it memory at least once
  bool ram_oom = false;        // the kernel ended a process of the job at the limit of --ram
  std::string escapes;         // memory held outside the cap, as text; "": none
  std::string card_full = {};  // the driver had no memory for the job, and why; "": it had
};

// Callbacks during the run; most are fields of launch::Supervision with the same names.
struct JobHooks {
  // The grant file exists, the program does not yet; nullptr: a job without cards.
  std::function<void(const launch::GrantFile*)> made = [](const launch::GrantFile*) {};
  std::function<void()> ended = [] {};  // the last process is gone, the grant file still exists
  std::function<void(pid_t)> started = [](pid_t) {};
  std::function<int()> watch_fd = [] { return -1; };
  std::function<bool()> watched;
  std::function<int()> tick_ms = [] { return -1; };
  std::function<bool()> tick;
  std::function<bool()> stands_still = [] { return false; };
  // Which jobs and processes hold memory on the job's cards without a grant (ungranted.h), as text;
  // "": unknown.
  std::function<std::string()> who_holds = [] { return std::string(); };
  // Called last, with everything set.
  std::function<void(launch::Supervision&)> prepare = [](launch::Supervision&) {};
};

// Runs the job to its end and prints hints for a failure to stderr. Errors: nothing ran. busy: the
// installation or the machine cannot run it at the moment (no loadable meter, no process
// available), and a retry may succeed.
Result<JobEnd> run_job(const JobPlan& plan, const JobHooks& hooks, const Talk& talk);

// Replaces this process by the program (run --exec); returns only if that fails.
Error exec_job(const JobPlan& plan, const Talk& talk);

// The exit code for an error of run_job: a faulty installation is not a lack of room (75).
int exit_code_of_launch(const Error& error);

// Why a program could not be run.
Error cannot_run(const JobPlan& plan, const launch::ProgramEnd& ended);

// Whether METE_SIM is set. not_found: it is, and the simulated drivers are missing.
Result<bool> is_simulated(const launch::Parts& parts);
// The path to open for libcuda.so.1 or libnvidia-ml.so.1, simulated or not.
std::string driver_library(const launch::Parts& parts, bool simulated, const char* name);

// Refuses a job inside a job: the inner one would escape the outer one's accounting.
Result<void> check_not_nested();

}  // namespace mete::runner
