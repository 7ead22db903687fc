// SPDX-License-Identifier: Apache-2.0
// Runs a program as a child in our own terminal and process group and behaves like it: signals that
// are sent to us reach it, its stops stop us, its exit code is ours. We are a subreaper: whatever
// it forks and leaves behind becomes our child, and we stay until the last of them is gone.
#pragma once

#include <sys/types.h>

#include <functional>
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
  // sh.
  int exit_code = 0;
  int start_error = 0;  // errno, when not started
};

// Told that one of the outsiders' pids has ended and was reaped; returns its successor's pid, or
// -1.
using OutsiderEnded = std::function<pid_t(pid_t)>;

// Must be called from the main and only thread; blocks until the last process of the job is gone.
// `outsiders` are processes below us that are no part of the job. Errors are our own failures
// (fork, no such folder): nothing ran.
//
// Signals INT, TERM, HUP, QUIT, USR1, USR2, WINCH, CONT and TSTP that somebody sent to us alone are
// sent on to the program, or to every process of the job once the program has ended. What is sent
// to the whole process group, by the terminal (Ctrl-C, Ctrl-Z, a resize, a hangup) or by kill,
// reaches the program by itself and is not sent twice. A second Ctrl-C within a second sends TERM
// to every process of the job, a third KILL; pressed slower, each is the program's own business.
//
// The signals stay blocked afterwards: one more Ctrl-C must not end us before we have cleaned up.
Result<Ended> run_program(const Program& program, const Outsiders& outsiders,
                          const OutsiderEnded& outsider_ended);

}  // namespace mete::launch
