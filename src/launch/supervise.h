// SPDX-License-Identifier: Apache-2.0
// Runs a program (or the ranks of one) as a child in our own terminal and process group and behaves
// like it: signals that are sent to us reach it, its stops stop us, its exit code is ours. We are a
// subreaper: whatever it forks and leaves behind becomes our child, and we stay until the last of
// them is gone.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "launch/process_tree.h"

namespace mete::launch {

struct Program {
  std::vector<std::string> argv;         // argv[0] is looked up in the PATH of `environment`
  std::vector<std::string> environment;  // "NAME=VALUE"
  std::string folder;                    // where it starts; "": here
};

struct Ended {
  bool started = false;
  // The program's own code, 128+N after signal N; 126 or 127 when it could not be started, as in
  // sh. Of several programs: that of the first that failed.
  int exit_code = 0;
  int signal = 0;       // the N of 128+N; 0: it ended by itself
  int start_error = 0;  // errno, when not started
  bool timed_out = false;
};

// Told that one of the outsiders' pids has ended and was reaped; returns its successor's pid, or
// -1.
using OutsiderEnded = std::function<pid_t(pid_t)>;

struct Supervision {
  // One, or several that are one job: then the first that fails ends the others.
  std::vector<Program> programs;
  // Descriptors to which each program writes "0" before it begins: doors of control groups.
  std::vector<int> doors;
  Outsiders outsiders;  // processes below us that are no part of the job
  OutsiderEnded outsider_ended = [](pid_t) { return -1; };
  // All of them run now.
  std::function<void(const std::vector<pid_t>&)> started = [](const std::vector<pid_t>&) {};
  // Then the job is ended: TERM to every process, KILL after kGraceSeconds.
  std::optional<std::chrono::milliseconds> time_limit;
  // Called when nothing has happened for tick_ms(). True: end the job, as at the time limit.
  std::function<bool()> tick;
  std::function<int()> tick_ms = [] { return -1; };
  // A further descriptor to listen to, asked for each time (-1: none at the moment), and what to do
  // when it is readable. True: end the job.
  std::function<int()> watch_fd = [] { return -1; };
  std::function<bool()> watched;
};

inline constexpr int kGraceSeconds = 10;

// Must be called from the main and only thread; blocks until the last process of the job is gone.
// Errors are our own failures (fork, no such folder): nothing ran.
//
// Signals INT, TERM, HUP, QUIT, USR1, USR2, WINCH, CONT and TSTP that somebody sent to us alone are
// sent on to the program, or to every process of the job once the program has ended. What is sent
// to the whole process group, by the terminal (Ctrl-C, Ctrl-Z, a resize, a hangup) or by kill,
// reaches the program by itself and is not sent twice. A second Ctrl-C within a second sends TERM
// to every process of the job, a third KILL; pressed slower, each is the program's own business.
//
// The signals stay blocked afterwards: one more Ctrl-C must not end us before we have cleaned up.
Result<Ended> supervise(const Supervision& supervision);

}  // namespace mete::launch
