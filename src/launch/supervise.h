// SPDX-License-Identifier: Apache-2.0
// Runs a program (or the ranks of one) as a child and stays until its last process is gone: we are
// a subreaper, so every process that it forks and leaves behind becomes our child.
//
// In the foreground (`mete run`) it is in our own terminal and process group, and we behave like
// it: signals that are sent to us reach it, its stops stop us, its exit code is ours. Detached (a
// keeper) it has a session of its own, with the input and output that its maker gives it.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "launch/process_tree.h"
#include "seam/launcher.h"

namespace mete::launch {

struct Program {
  std::vector<std::string> argv;         // argv[0] is looked up in the PATH of `environment`
  std::vector<std::string> environment;  // "NAME=VALUE"
  std::string folder;                    // where it starts; "": here
};

// The step that failed for a program that was not started.
enum class StartStep { kEnter, kJoin, kPrepare, kRun };

// How the supervised programs ended.
struct ProgramEnd {
  bool started = false;
  // The program's own code, 128+N after signal N; 126 or 127 when it could not be started, as in
  // sh. Of several programs: the code of the first that failed.
  int exit_code = 0;
  int signal = 0;       // the N of 128+N; 0: it ended by itself
  int start_error = 0;  // errno, when not started
  StartStep start_step = StartStep::kRun;
  bool timed_out = false;
};

// Called when an outsider with this pid has ended and was reaped; returns its successor's pid, or
// -1.
using OutsiderEnded = std::function<pid_t(pid_t)>;

// A job without a terminal of ours: its programs are in a session of their own. SIGTERM and SIGINT
// end it (TERM to every process, KILL after the grace); other signals do not reach it.
struct OwnSession {
  // The programs' standard input, output and error.
  int input = -1;
  int output = -1;
  int error = -1;
  bool terminal = false;  // the three are a terminal, and it is the first program's controlling
                          // terminal
  mode_t umask = 022;
  std::vector<core::ResourceLimit> limits;  // as far as we may set them
  std::chrono::milliseconds grace{};
  // Further descriptors to listen to: appended to the list each time, and then checked, in that
  // order. Called at least whenever one of them is ready.
  std::function<void(std::vector<pollfd>&)> listen = [](std::vector<pollfd>&) {};
  std::function<void(std::span<const pollfd>)> heard = [](std::span<const pollfd>) {};
  // Where the kernel has a better way to reach all of them than one by one.
  std::function<void()> kill_all = [] {};
};

struct Supervision {
  // One, or several that are one job: then the first that fails ends the others.
  std::vector<Program> programs;
  // Descriptors to which each program writes "0" before it begins: doors of control groups.
  std::vector<int> doors;
  // Called right before each program is started; an error prevents the start.
  std::function<Result<void>()> before_start = [] { return Result<void>(); };
  Outsiders outsiders;  // processes below us that are no part of the job
  OutsiderEnded outsider_ended = [](pid_t) { return -1; };
  // All of them run now.
  std::function<void(const std::vector<pid_t>&)> started = [](const std::vector<pid_t>&) {};
  // After this time the job is ended: TERM to every process, KILL after kGraceSeconds.
  std::optional<std::chrono::milliseconds> time_limit;
  // Called about every tick_ms(). True: end the job, as at the time limit.
  std::function<bool()> tick;
  std::function<int()> tick_ms = [] { return -1; };
  // While this is true its processes stand still: its time does not pass, and a job that is to be
  // ended is killed a moment after TERM, since its processes cannot handle it.
  std::function<bool()> stands_still = [] { return false; };
  // A further descriptor to listen to, asked for each time (-1: none at the moment), and what to do
  // when it is readable. True: end the job.
  std::function<int()> watch_fd = [] { return -1; };
  std::function<bool()> watched;
  // Absent: in our own terminal and process group.
  std::optional<OwnSession> session;
};

inline constexpr int kGraceSeconds = 10;

// Must be called from the main and only thread; blocks until the last process of the job is gone.
// Errors are our own failures (fork, no such folder): nothing ran. busy: worth a retry.
//
// Signals INT, TERM, HUP, QUIT, USR1, USR2, WINCH, CONT and TSTP that are sent to us only are sent
// on to the program, or to every process of the job once the program has ended. A signal to the
// whole process group, by the terminal (Ctrl-C, Ctrl-Z, a resize, a hangup) or by kill, reaches the
// program directly and is not sent twice. A second Ctrl-C within a second sends TERM to every
// process of the job, a third KILL; a slower sequence is left to the program.
//
// The signals stay blocked afterwards: one more Ctrl-C must not end us before we have cleaned up.
Result<ProgramEnd> supervise(const Supervision& supervision);

}  // namespace mete::launch
