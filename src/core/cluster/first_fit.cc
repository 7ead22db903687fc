// SPDX-License-Identifier: Apache-2.0
// The first node that has room, and its first cards with room.
#include "core/cluster/policy.h"
#include "core/cluster/scan.h"

namespace mete::core::cluster {

namespace {

Spot first_cards(const Cluster& cluster, NodeId id, const Kind& kind) {
  const Node& node = cluster.node(id);
  Spot spot;
  spot.node = id;
  for (std::size_t i = 0; i < node.spec.cards && spot.count < kind.ask.cards; ++i)
    if (node.free[i] >= kind.share(node.group))
      spot.cards[spot.count++] = static_cast<std::uint8_t>(i);
  return spot;
}

class FirstFit : public NodePolicy {
 public:
  std::optional<Spot> choose(const Cluster& cluster, KindId id) override {
    const std::optional<Found> found =
        scan_.best(cluster, id, [](const Shape&, const Kind&) { return Way{}; });
    if (!found) return std::nullopt;
    return first_cards(cluster, found->node, cluster.kind(id));
  }

 private:
  Scan scan_;
};

}  // namespace

std::unique_ptr<NodePolicy> make_first_fit() { return std::make_unique<FirstFit>(); }

}  // namespace mete::core::cluster
