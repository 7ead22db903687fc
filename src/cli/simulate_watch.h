// SPDX-License-Identifier: Apache-2.0
// A running simulation on a terminal: a progress bar, and signals that end it. A simulation that is
// ended leaves no half line behind and writes no file.
#pragma once

#include <signal.h>

#include "cli/simulate_text.h"
#include "cli/status_line.h"
#include "cli/wait_signals.h"
#include "simulate/replay.h"

namespace mete::cli {

class SimulateWatch {
 public:
  // With this machine's clocks.
  simulate::Hooks hooks();

  // After a simulation: dies of the signal that stopped it, or returns if none did.
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
