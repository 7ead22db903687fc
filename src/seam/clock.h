// SPDX-License-Identifier: Apache-2.0
// Time, as everything but this folder sees it: handed in, so that tests and the simulator own it.
// Monotonic time is for waiting and measuring, and is the same number in every process of a machine
// until it reboots.
#pragma once

#include <chrono>

#include "base/time.h"

namespace mete::seam {

using Milliseconds = std::chrono::milliseconds;
using Nanoseconds = std::chrono::nanoseconds;

// Real: system_clock(). Tests: a fake that moves when told to.
struct Clock {
  virtual ~Clock() = default;
  // CLOCK_MONOTONIC, since boot.
  virtual Nanoseconds monotonic() = 0;
  // CLOCK_REALTIME: what the machine believes the time is; may jump.
  virtual WallTime wall() = 0;
  // CLOCK_THREAD_CPUTIME_ID: what this thread has computed, for measuring alone.
  virtual Nanoseconds computed() { return monotonic(); }
};

// The machine's clock; lives for ever, any thread may use it.
Clock& system_clock();

}  // namespace mete::seam
