// SPDX-License-Identifier: Apache-2.0
// Requests that must start together, on one node or on several: all of them are placed, or none and
// nothing changes.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/cluster/policy.h"

namespace mete::core::cluster {

// The spots in the order of the requests, already taken; nullopt: no room for all of them. Large
// requests are placed first, whatever their order.
std::optional<std::vector<Spot>> take_gang(Cluster& cluster, NodePolicy& policy,
                                           std::span<const KindId> kinds);

}  // namespace mete::core::cluster
