// SPDX-License-Identifier: Apache-2.0
// Why a request has no room: each node is counted under the first thing that it lacks, so that the
// counts add up to all nodes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/cluster/cluster.h"

namespace mete::core::cluster {

enum class Cause {
  kType,      // its cards are of another type, or it has none
  kTooSmall,  // even when empty: too few cards, too little CPU or memory
  kCpu,       // too little left
  kRam,
  kCards,    // too few cards with that share left
  kHasRoom,  // the node could hold the request
};
inline constexpr std::size_t kCauses = 6;
std::string_view to_string(Cause cause);

struct Rejection {
  std::array<std::uint32_t, kCauses> nodes{};  // by cause
  std::uint32_t of(Cause cause) const { return nodes[static_cast<std::size_t>(cause)]; }
};

Cause cause_on(const Group& group, const Shape& shape, const Kind& kind);
Rejection reject(const Cluster& cluster, KindId kind);

}  // namespace mete::core::cluster
