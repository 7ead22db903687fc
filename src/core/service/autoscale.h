// SPDX-License-Identifier: Apache-2.0
// How many replicas of a service are wanted: Cortex's formula over the requests in flight, asked
// every ten seconds. Pure: the caller brings the samples and the seconds since the service began,
// and equal samples give equal answers. Samples and recommendations are values, so that they can
// survive a restart.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "base/result.h"

namespace mete::core::service {

// The keys of `autoscaling:`, with Cortex's names in the file.
struct Autoscaling {
  std::uint32_t min = 1;
  std::uint32_t max = 100;
  std::optional<std::uint32_t> init = {};  // absent: min
  double target_in_flight = 16;            // of one replica
  std::int64_t window_s = 60;
  std::int64_t down_period_s = 300;
  std::int64_t up_period_s = 60;
  double max_down = 0.75;
  double max_up = 1.5;
  double down_tolerance = 0.05;
  double up_tolerance = 0.05;
  bool operator==(const Autoscaling&) const = default;
};

inline constexpr std::uint32_t kMaxReplicas = 10'000;
inline constexpr std::int64_t kTickS = 10;  // between two decisions, from the start on
inline constexpr std::int64_t kMaxPeriodS = 86'400;

// invalid: min above max, a window that is no multiple of ten seconds, a factor below or above 1, …
// The message names the key.
Result<void> check(const Autoscaling& rules);

class Autoscaler {
 public:
  explicit Autoscaler(const Autoscaling& rules);

  // Requests in flight at this second, those in the queue included. Seconds only grow.
  void sample(std::int64_t t_s, double in_flight);

  struct Tick {
    std::int64_t t_s = 0;
    double avg = 0;
    double raw = 0;
    std::uint32_t recommended = 0;  // remembered; before the periods
    std::uint32_t replicas = 0;     // wanted from now on
    bool operator==(const Tick&) const = default;
  };
  // A decision. nullopt: there is no sample in the window, and nothing changes.
  std::optional<Tick> tick(std::int64_t t_s);

  std::uint32_t replicas() const { return parts_.replicas; }

  // For snapshots: these values are the whole state.
  struct Sample {
    std::int64_t t_s = 0;
    double in_flight = 0;
    bool operator==(const Sample&) const = default;
  };
  struct Remembered {
    std::int64_t t_s = 0;
    std::uint32_t replicas = 0;
    bool operator==(const Remembered&) const = default;
  };
  struct Parts {
    std::uint32_t replicas = 0;
    std::optional<std::int64_t> first_tick_s = {};
    std::deque<Sample> samples = {};
    std::deque<Remembered> remembered = {};
    bool operator==(const Parts&) const = default;
  };
  const Parts& parts() const { return parts_; }
  Autoscaler(const Autoscaling& rules, Parts parts);

  // Other rules from now on: what is wanted stays within their bounds, what is remembered is kept.
  void set_rules(const Autoscaling& rules);

 private:
  std::uint32_t recommend(double raw) const;
  std::uint32_t after_periods(std::int64_t t_s, std::uint32_t recommended) const;
  void forget(std::int64_t t_s);

  Autoscaling rules_;
  Parts parts_;
};

}  // namespace mete::core::service
