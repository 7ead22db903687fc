// SPDX-License-Identifier: Apache-2.0
// The cost of a context on each card: as measured by the first job that ran there (a file in a
// state folder); before that, the cost on an H200.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "node/card_snapshot.h"
#include "seam/clock.h"

namespace mete::daemon {

class ContextCosts {
 public:
  static constexpr Bytes kAssumed = Bytes::from_mib(518);
  static constexpr seam::Nanoseconds kLookPeriod = std::chrono::seconds(1);

  // `files`: where costs are recorded; the first file that has a card wins.
  explicit ContextCosts(std::vector<std::string> files) : files_(std::move(files)) {}

  // By UUID, including what the meter keeps beside a context. Reads the files once a second at
  // most, and for a card only until its cost is known.
  const std::map<std::string, Bytes>& of(const node::CardSnapshot& snapshot, seam::Nanoseconds now);

 private:
  std::vector<std::string> files_;
  std::map<std::string, Bytes> costs_;
  std::set<std::string> measured_;  // the cards in costs_ whose cost is not assumed
  std::optional<seam::Nanoseconds> looked_at_;
};

}  // namespace mete::daemon
