// SPDX-License-Identifier: Apache-2.0
// The signals that end a program, as a descriptor, while something must be undone before it ends: a
// wait, submitted jobs, the mode of a terminal. Destroyed or restored, signals act as before; one
// that came meanwhile and was not taken acts at once.
#pragma once

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <initializer_list>
#include <utility>

#include "base/fd.h"

namespace mete::cli {

class WaitSignals {
 public:
  // INT, TERM, HUP and QUIT, and `more`. SIGPIPE is ignored meanwhile: a closed reader is a failed
  // write, not our end.
  explicit WaitSignals(std::initializer_list<int> more = {}) {
    sigset_t set{};
    sigemptyset(&set);
    // A signalfd would also receive ignored signals (nohup, a background job of a shell script).
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
      struct sigaction now {};
      if (sigaction(number, nullptr, &now) == 0 && now.sa_handler != SIG_IGN)
        sigaddset(&set, number);
    }
    for (const int number : more) sigaddset(&set, number);
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    (void)sigaction(SIGPIPE, &ignore, &pipe_before_);
    (void)sigprocmask(SIG_BLOCK, &set, &before_);
    fd_.reset(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  ~WaitSignals() { restore(); }
  WaitSignals(const WaitSignals&) = delete;
  WaitSignals& operator=(const WaitSignals&) = delete;

  void restore() {
    if (std::exchange(restored_, true)) return;
    (void)sigprocmask(SIG_SETMASK, &before_, nullptr);
    (void)sigaction(SIGPIPE, &pipe_before_, nullptr);
  }
  int descriptor() const { return fd_.get(); }
  // The signal that came; 0: none.
  int take() {
    signalfd_siginfo info{};
    if (read(fd_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return 0;
    return static_cast<int>(info.ssi_signo);
  }

 private:
  sigset_t before_{};
  struct sigaction pipe_before_ {};
  Fd fd_;
  bool restored_ = false;
};

}  // namespace mete::cli
