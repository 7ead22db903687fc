// SPDX-License-Identifier: Apache-2.0
// Counters of the engine since its start, for metrics. No decision depends on them.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <map>

#include "core/job/job.h"
#include "seam/clock.h"

namespace mete::engine {

// Durations, counted by upper bounds.
struct Histogram {
  static constexpr double kBoundS[] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01,
                                       0.025,  0.05,    0.1,    0.25,  0.5,    1,     2.5};
  std::array<std::uint64_t, std::size(kBoundS) + 1> counts{};  // the last: longer than all
  double sum_s = 0;

  void add(seam::Nanoseconds duration) {
    const double seconds = std::chrono::duration<double>(duration).count();
    std::size_t at = 0;
    while (at < std::size(kBoundS) && seconds > kBoundS[at]) ++at;
    ++counts[at];
    sum_s += seconds;
  }
};

struct Health {
  std::uint64_t turns = 0;
  Histogram decisions;  // turns with a waiting client, until their events were on disk
  Histogram commits;
  std::map<core::Outcome, std::uint64_t> ended;  // attempts
};

}  // namespace mete::engine
