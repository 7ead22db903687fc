// SPDX-License-Identifier: Apache-2.0
// Jobs that are yet to come, as far as the past tells: the next hours are taken to be like some
// hours of the last days. A future begins at a moment of the past that is drawn, and whoever came
// after it then comes again, in the same distance; at the end of the past it goes on from its
// beginning. So bursts stay bursts, and quiet hours quiet. Inside of core/explain.
#pragma once

#include <cstdint>
#include <vector>

#include "core/explain/lengths.h"
#include "core/job/state.h"

namespace mete::core {

class Past {
 public:
  static constexpr std::size_t kSubmits = 256;  // the last ones
  static constexpr std::size_t kOfArray = 32;   // of an array no more are taken to come
  // With less there is no telling.
  static constexpr std::int64_t kLeastMs = 600'000;

  Past(const State& state, WallTime now);

  struct Came {
    std::int64_t at_ms = 0;
    Job job = {};
    std::size_t count = 1;  // so many alike at once
  };
  const std::vector<Came>& came() const { return came_; }  // oldest first; may be empty
  std::int64_t span_ms() const { return span_ms_; }        // from the first of them to now

 private:
  std::vector<Came> came_;
  std::int64_t span_ms_ = 0;
};

// One future's arrivals.
class Arrivals {
 public:
  Arrivals(const Past& past, WallTime now, Draw& draw);
  // The next one that has come by then; nullptr: none.
  const Past::Came* next(WallTime by);

 private:
  const Past& past_;
  std::size_t at_ = 0;
  std::int64_t shift_ms_ = 0;  // from then to now
};

}  // namespace mete::core
