// SPDX-License-Identifier: Apache-2.0
// The signals that end us, as a descriptor, for as long as something must be put right before we
// go: a wait taken back, jobs withdrawn, a terminal as it was. Destroyed or restored, signals do
// again what they did before; one that came meanwhile and was not taken does it at once.
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
  // INT, TERM, HUP and QUIT, and `more`. SIGPIPE is ignored meanwhile: a reader who has left is an
  // error of writing, not our end.
  explicit WaitSignals(std::initializer_list<int> more = {}) {
    sigset_t set{};
    sigemptyset(&set);
    // What is ignored (nohup, a background job of a shell script) would still come to a signalfd.
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
