// SPDX-License-Identifier: Apache-2.0
// The recent past of cards and jobs, in memory: series with fixed steps, built from one reading
// after the other (wire/snapshot.h has their lengths). Pure; lost with the daemon. Missing readings
// are gaps. A job that is no longer passed to see() is forgotten.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "engine/engine.h"
#include "serve/machine_reading.h"
#include "wire/snapshot.h"

namespace mete::serve {

class History {
 public:
  static constexpr std::size_t kMostJobs = 1'000;  // those with the lowest numbers

  struct JobFigures {
    std::uint32_t attempt = 1;
    std::optional<unsigned> utilisation_pct;
    std::map<std::string, Bytes> used;   // by card UUID; empty: unknown
    std::map<std::string, Bytes> peaks;  // by its meter; may exceed every reading
  };

  // `at` is when the reading began, `wall` the same moment as wall time. A repeated reading only
  // forgets jobs. Cards that are missing have gaps until they return.
  void see(seam::Nanoseconds at, WallTime wall, const std::map<std::string, CardFigures>& cards,
           const std::map<core::JobId, JobFigures>& jobs);

  // Grows whenever there is something new to show.
  std::uint64_t version() const { return version_; }
  wire::History shown(const std::function<bool(core::JobId)>& may_see) const;
  // The peak of this attempt on this card: by its meter, which sees every byte, or by the readings
  // where they show more or the meter shows nothing.
  std::optional<Bytes> peak(core::JobId job, std::uint32_t attempt, const std::string& uuid) const;

 private:
  static constexpr std::size_t kLengths = std::size(wire::kPastStepS);
  // One series: per length, the readings of the open step and the closed steps.
  struct Track {
    struct Step {
      std::uint64_t sum = 0;
      std::uint32_t most = 0;
      std::uint32_t count = 0;
    };
    Step open[kLengths];
    std::vector<std::optional<std::uint32_t>> closed[kLengths];
    void add(std::uint32_t value);
  };
  struct Pair {
    Track utilisation;
    Track used;
  };
  struct OfJob {
    Pair tracks;
    std::uint32_t attempt = 1;
    std::map<std::string, Bytes> peaks;
  };

  void end_steps(seam::Nanoseconds at, WallTime wall);
  static void end_step(Pair& pair, std::size_t length, std::int64_t missed);
  wire::Past past_of(const Pair& pair) const;

  std::map<std::string, Pair> cards_;
  std::map<core::JobId, OfJob> jobs_;
  std::optional<seam::Nanoseconds> at_;
  std::int64_t step_[kLengths] = {};  // number of the open step, since boot
  WallTime last_at_[kLengths] = {};   // when the step before it ended
  std::uint64_t version_ = 0;
};

}  // namespace mete::serve
