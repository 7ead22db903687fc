// SPDX-License-Identifier: Apache-2.0
// Time that only a test moves.
#pragma once

#include "seam/clock.h"

namespace mete::tests {

class FakeClock final : public seam::Clock {
 public:
  seam::Nanoseconds monotonic() override { return since_start_; }
  WallTime wall() override { return {kStartMs + (since_start_ + set_by_) / seam::Milliseconds(1)}; }
  void advance(seam::Milliseconds by) { since_start_ += by; }
  // Sets the wall clock, forward or back. Monotonic time is not affected.
  void set_wall(seam::Milliseconds by) { set_by_ += by; }

 private:
  static constexpr std::int64_t kStartMs = 1'800'000'000'000;
  seam::Nanoseconds since_start_{0};
  seam::Nanoseconds set_by_{0};
};

}  // namespace mete::tests
