// SPDX-License-Identifier: Apache-2.0
// What would give a place to a request that has none: of each kind of change the smallest one that
// some node has room for, as things are. Every change that is returned fits; of its kind no smaller
// one does. Looks once at each class of nodes, so it takes as long as counting the causes
// (reject.h).
//
//   cpu, ram     less of it
//   share        less of each card; instead of a whole card a share of it
//   cards        fewer of them
//   type         cards of another type
//   several      where none of these is enough alone: fewest of them, and of those the least
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
  std::vector<Aspect> aspects;  // what is changed: one, or as few as it takes
  Ask ask;                      // the request as it would have a place
  // How much is given up, in millionths of what was asked for, added up over the aspects. Another
  // type is nothing given up.
  std::int64_t loss = 0;
  bool operator==(const Change&) const = default;
};

// The smallest first: by number of aspects, then by loss. Empty: nothing of a request, however
// small, has a place; or it has one already.
std::vector<Change> changes(const Cluster& cluster, KindId kind);

}  // namespace mete::core::cluster
