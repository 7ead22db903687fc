// SPDX-License-Identifier: Apache-2.0
// See gang.h.
#include "core/cluster/gang.h"

#include <algorithm>
#include <numeric>

namespace mete::core::cluster {

std::optional<std::vector<Spot>> take_gang(Cluster& cluster, NodePolicy& policy,
                                           std::span<const KindId> kinds) {
  std::vector<std::size_t> order(kinds.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto size = [&](std::size_t i) {
    const Ask& ask = cluster.kind(kinds[i]).ask;
    return std::tuple(ask.cards, ask.share, ask.share_mib, ask.cpu_milli, ask.ram_mib);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return size(a) > size(b); });
  std::vector<Spot> spots(kinds.size());
  for (std::size_t n = 0; n < order.size(); ++n) {
    const std::size_t i = order[n];
    const std::optional<Spot> spot = policy.choose(cluster, kinds[i]);
    if (!spot) {
      while (n-- > 0) cluster.give_back(kinds[order[n]], spots[order[n]]);
      return std::nullopt;
    }
    cluster.take(kinds[i], *spot);
    spots[i] = *spot;
  }
  return spots;
}

}  // namespace mete::core::cluster
