// SPDX-License-Identifier: Apache-2.0
#include "seam/clock.h"

#include <ctime>

namespace mete::seam {
namespace {

struct SystemClock final : Clock {
  Nanoseconds monotonic() override {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return std::chrono::seconds(now.tv_sec) + Nanoseconds(now.tv_nsec);
  }
  Nanoseconds computed() override {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::chrono::seconds(now.tv_sec) + Nanoseconds(now.tv_nsec);
  }
  WallTime wall() override {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return {static_cast<std::int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000};
  }
};

}  // namespace

Clock& system_clock() {
  static SystemClock clock;
  return clock;
}

}  // namespace mete::seam
