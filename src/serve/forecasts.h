// SPDX-License-Identifier: Apache-2.0
// When each waiting job will start, for lists of jobs. One pass over the queue for all jobs
// (core/explain/forecast.h), made on demand when the queue or the time has changed. A short queue
// is done at once; a long one in slices beside other work, and until then the previous forecasts
// are shown. A forecast whose time has come is not shown any more.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "engine/engine.h"
#include "net/loop.h"

namespace mete::serve {

// The forecast, up to a second old, without times that have passed.
core::Forecast not_past(core::Forecast forecast, WallTime now);

class Forecasts {
 public:
  Forecasts(net::Loop& loop, seam::Clock& clock, engine::Engine& engine)
      : loop_(loop), clock_(clock), engine_(engine) {}

  // Call before of(): renews the forecasts if they are out of date. Takes about 10 ms at most.
  void look();
  // nullopt: there is no forecast, or not yet.
  std::optional<core::Forecast> of(core::JobId id) const;

 private:
  void go_on(std::size_t work);

  net::Loop& loop_;
  seam::Clock& clock_;
  engine::Engine& engine_;
  std::map<core::JobId, core::Forecast> told_;
  std::uint64_t told_version_ = 0;        // of the engine
  seam::Nanoseconds told_at_{};           // when that pass began
  std::optional<core::Forecaster> pass_;  // the pass under way
  std::uint64_t pass_version_ = 0;        // of the engine, for this pass
  seam::Nanoseconds pass_at_{};           // when this pass began
  seam::Nanoseconds busy_{};              // time spent on it so far
  seam::Nanoseconds next_at_{};           // no new pass before
  net::Timer timer_;
};

}  // namespace mete::serve
