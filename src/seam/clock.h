// SPDX-License-Identifier: Apache-2.0
// Time, as everything but this folder sees it: passed in, so that tests and the simulator control
// it. Monotonic time is for waiting and measuring, and is equal in every process of a machine until
// it reboots.
#pragma once

#include <chrono>

#include "base/time.h"

namespace mete::seam {

using Milliseconds = std::chrono::milliseconds;
using Nanoseconds = std::chrono::nanoseconds;

// Real: system_clock(). Tests: a fake that a test moves.
struct Clock {
  virtual ~Clock() = default;
  // CLOCK_MONOTONIC, since boot.
  virtual Nanoseconds monotonic() = 0;
  // CLOCK_REALTIME: the machine's idea of the time; may jump.
  virtual WallTime wall() = 0;
  // CLOCK_THREAD_CPUTIME_ID: CPU time of this thread, for measurements only.
  virtual Nanoseconds computed() { return monotonic(); }
};

// The machine's clock; never destroyed, any thread may use it.
Clock& system_clock();

}  // namespace mete::seam
