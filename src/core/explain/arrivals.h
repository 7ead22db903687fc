// SPDX-License-Identifier: Apache-2.0
// Jobs that are yet to come, guessed from the past: the next hours are assumed to be like some
// hours of the last days. A future begins at a random time in the past, and the jobs that came
// after that time come again, at the same intervals; at the end of the past it starts over. So
// bursts stay bursts, and quiet hours quiet. Internal to core/explain.
#pragma once

#include <cstdint>
#include <vector>

#include "core/explain/lengths.h"
#include "core/job/state.h"

namespace mete::core {

class Past {
 public:
  static constexpr std::size_t kSubmits = 256;  // the latest
  static constexpr std::size_t kOfArray = 32;  // the most jobs of an array that are assumed to come
  // A shorter past says nothing.
  static constexpr std::int64_t kLeastMs = 600'000;

  Past(const State& state, WallTime now);

  struct Came {
    std::int64_t at_ms = 0;
    Job job = {};
    std::size_t count = 1;  // equal jobs at once
  };
  const std::vector<Came>& came() const { return came_; }  // oldest first; may be empty
  std::int64_t span_ms() const { return span_ms_; }        // from the first submit to now

 private:
  std::vector<Came> came_;
  std::int64_t span_ms_ = 0;
};

class Arrivals {
 public:
  Arrivals(const Past& past, WallTime now, Draw& draw);
  // The next job that has come by `by`; nullptr: none.
  const Past::Came* next(WallTime by);

 private:
  const Past& past_;
  std::size_t at_ = 0;
  std::int64_t shift_ms_ = 0;  // from the past to now
};

}  // namespace mete::core
