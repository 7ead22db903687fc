// SPDX-License-Identifier: Apache-2.0
// When each job that waits will start, for lists of jobs. One pass over the queue for all of them
// (core/explain/forecast.h): made on demand when the queue or the time has changed since
// the last one. A short queue is done at once; a long one in slices beside other work, and until
// then what was made before is shown. A forecast whose time has come is not shown any more.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "engine/engine.h"
#include "net/loop.h"

namespace mete::serve {

// A forecast that was made up to a second ago, without a time that has passed meanwhile.
core::Forecast not_past(core::Forecast forecast, WallTime now);

class Forecasts {
 public:
  Forecasts(net::Loop& loop, seam::Clock& clock, engine::Engine& engine)
      : loop_(loop), clock_(clock), engine_(engine) {}

  // Before of(): makes the forecasts again if they are out of date. Takes at most some 10 ms.
  void look();
  // nullopt: nothing can be said of it, or not yet.
  std::optional<core::Forecast> of(core::JobId id) const;

 private:
  void go_on(std::size_t work);

  net::Loop& loop_;
  seam::Clock& clock_;
  engine::Engine& engine_;
  std::map<core::JobId, core::Forecast> told_;
  std::uint64_t told_version_ = 0;        // of the engine
  seam::Nanoseconds told_at_{};           // when that pass began
  std::optional<core::Forecaster> pass_;  // that is being made
  std::uint64_t pass_version_ = 0;        // of the engine, for this pass
  seam::Nanoseconds pass_at_{};           // when this pass began
  seam::Nanoseconds busy_{};              // how long it took so far
  seam::Nanoseconds next_at_{};           // no other pass before
  net::Timer timer_;
};

}  // namespace mete::serve
