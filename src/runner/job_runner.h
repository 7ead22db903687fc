// SPDX-License-Identifier: Apache-2.0
// Running a job whose cards are decided, for `mete cap` (by itself), `mete run` (by the daemon) and
// the keeper of a detached job: grant file, environment, sampler, program, and what is said when it
// has failed.
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
  std::vector<Bytes> peaks;    // for each card
  bool refused = false;        // the cap refused it memory at least once
  bool ram_oom = false;        // the kernel ended a process of it at the limit of --ram
  std::string escapes;         // what it held outside its cap, in words; "": nothing
  std::string card_full = {};  // that the driver had no memory for it, and why; "": it had
};

// What happens meanwhile; the fields of launch::Supervision with the same names.
struct JobHooks {
  // The grant file is there, the program not yet; nullptr: without a card.
  std::function<void(const launch::GrantFile*)> made = [](const launch::GrantFile*) {};
  std::function<void()> ended = [] {};  // the last process is gone, the grant file still there
  std::function<void(pid_t)> started = [](pid_t) {};
  std::function<int()> watch_fd = [] { return -1; };
  std::function<bool()> watched;
  std::function<int()> tick_ms = [] { return -1; };
  std::function<bool()> tick;
  std::function<bool()> stands_still = [] { return false; };
  // Who holds memory of its cards that no grant covers, in words (ungranted.h); "": not known.
  std::function<std::string()> who_holds = [] { return std::string(); };
  // The last word on how it is run.
  std::function<void(launch::Supervision&)> prepare = [](launch::Supervision&) {};
};

// Runs it to its end and says on stderr what helps to understand a failure. Errors: nothing ran.
// busy: the installation or the machine cannot run it at the moment (no meter that would be loaded,
// no process to be had), and another try may succeed.
Result<JobEnd> run_job(const JobPlan& plan, const JobHooks& hooks, const Talk& talk);

// Replaces this process by the program (run --exec); returns only if that fails.
Error exec_job(const JobPlan& plan, const Talk& talk);

// The exit code for an error of run_job: that the installation is at fault is no lack of room (75).
int exit_code_of_launch(const Error& error);

// Why a program could not be run.
Error cannot_run(const JobPlan& plan, const launch::ProgramEnd& ended);

// The simulated drivers' folder when METE_SIM is set. not_found: it is set, and they are missing.
Result<bool> is_simulated(const launch::Parts& parts);
// libcuda.so.1 or libnvidia-ml.so.1, simulated or not: what to open.
std::string driver_library(const launch::Parts& parts, bool simulated, const char* name);

// A job below a job would take the inner one out of the outer one's books.
Result<void> check_not_nested();

}  // namespace mete::runner
