// SPDX-License-Identifier: Apache-2.0
// A child process for work that may block or leave things behind in a process (the driver's library
// opens devices and may hang), so that the launcher itself stays clean. It dies with the launcher:
// by a signal, and by a pipe that closes. It has no terminal, no descriptor but its pipes, and
// every signal blocked, so that Ctrl-C does not reach it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace mete::launch {

class HelperProcess {
 public:
  struct Pipes {
    int alive;  // from the launcher: at its end once the launcher is gone
    int reply;  // to the launcher
  };
  static constexpr char kEndOfReply = '\0';
  // Forks and runs `body` in the child, then leaves it by _exit: no destructor of ours runs there.
  // `name` is what ps shows (15 characters).
  static Result<HelperProcess> start(const char* name, const std::function<void(Pipes)>& body);

  HelperProcess(HelperProcess&& other) noexcept;
  HelperProcess& operator=(HelperProcess&&) = delete;
  HelperProcess(const HelperProcess&) = delete;
  // Ends the child and reaps it.
  ~HelperProcess();

  // -1 once it was reaped.
  pid_t pid() const { return pid_; }
  // A wait for all children has reaped this one: its pid may belong to another process by now.
  void was_reaped() { pid_ = -1; }

  // Sends one byte and waits for one. False when the child is gone.
  bool ask();

  // What the child wrote before its first zero byte. busy when it is silent for limit_ms, io when
  // it closed its end before, or wrote more than 1 MiB. (Not "until it closes": a process that the
  // child starts may hold the pipe open.)
  Result<std::string> collect(int limit_ms);

 private:
  HelperProcess() = default;

  pid_t pid_ = -1;
  Fd alive_;
  Fd reply_;
};

}  // namespace mete::launch
