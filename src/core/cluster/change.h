// SPDX-License-Identifier: Apache-2.0
// What would place a request that has no room: the smallest change of each kind for which some node
// has room now. Every returned change fits; no smaller one of its kind does. Looks at each class of
// nodes once, so it takes as long as counting the causes (reject.h).
//
//   cpu, ram     less of it
//   share        less of each card; a share instead of a whole card
//   cards        fewer of them
//   type         cards of another type
//   several      if none of these is enough alone: the fewest together, with the least loss
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/cluster/cluster.h"

namespace mete::core::cluster {

enum class Aspect : std::uint8_t { kCpu, kRam, kShare, kCards, kType };
std::string_view to_string(Aspect aspect);

struct Change {
  std::vector<Aspect> aspects;  // what is changed: one aspect, or as few as possible
  Ask ask;                      // the changed request
  // How much is given up, in millionths of the request, added up over the aspects. Another type
  // counts as no loss.
  std::int64_t loss = 0;
  bool operator==(const Change&) const = default;
};

// The smallest first: by number of aspects, then by loss. Empty: the request has room already, or
// no part of it has.
std::vector<Change> changes(const Cluster& cluster, KindId kind);

}  // namespace mete::core::cluster
