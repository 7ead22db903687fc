// SPDX-License-Identifier: Apache-2.0
// What is seen of a simulation while it runs: a bar on a terminal, and that signals end it. Whoever
// is ended leaves no half of a line behind and writes nothing.
#pragma once

#include <signal.h>

#include "cli/simulate_text.h"
#include "cli/status_line.h"
#include "cli/wait_signals.h"
#include "simulate/replay.h"

namespace mete::cli {

class SimulateWatch {
 public:
  // With the clocks of this machine.
  simulate::Hooks hooks();

  // After a simulation that was stopped: dies of the signal that stopped it. Returns where none
  // did.
  void end_if_stopped() {
    line_.clear();
    const int number = signal_;
    signals_.restore();
    if (number != 0) (void)raise(number);
  }

 private:
  StatusLine line_;
  WaitSignals signals_;
  int signal_ = 0;
};

}  // namespace mete::cli
