// SPDX-License-Identifier: Apache-2.0
// What the cards and jobs did lately, in memory: series of fixed steps, made of one reading after
// the other (wire/snapshot.h says how long and how fine). Pure; nothing of it survives the daemon.
// What was not read is a gap. A job that is no longer told of is forgotten.
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
  static constexpr std::size_t kMostJobs = 1'000;  // those of the lowest numbers

  struct JobFigures {
    std::uint32_t attempt = 1;
    std::optional<unsigned> utilisation_pct;
    std::map<std::string, Bytes> used;   // by card UUID; empty: not known
    std::map<std::string, Bytes> peaks;  // that its meter tells of; what was never read may be more
  };

  // `at` is when the reading began, `wall` the same moment for people. The same reading once more
  // only forgets jobs. Cards that are not told of have gaps until they are again.
  void see(seam::Nanoseconds at, WallTime wall, const std::map<std::string, CardFigures>& cards,
           const std::map<core::JobId, JobFigures>& jobs);

  // Grows whenever there is something new to show.
  std::uint64_t version() const { return version_; }
  wire::History shown(const std::function<bool(core::JobId)>& may_see) const;
  // The most that this attempt has held of this card: as its meter says, which sees every byte, or
  // as was read, where that is more or all there is.
  std::optional<Bytes> peak(core::JobId job, std::uint32_t attempt, const std::string& uuid) const;

 private:
  static constexpr std::size_t kLengths = std::size(wire::kPastStepS);
  // One figure: what was read in the step that is not over yet, for each length, and what is.
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
  std::int64_t step_[kLengths] = {};  // number of the one that is open, since boot
  WallTime last_at_[kLengths] = {};   // when the one before it ended
  std::uint64_t version_ = 0;
};

}  // namespace mete::serve
