// SPDX-License-Identifier: Apache-2.0
// Any node that has room, all equally likely, and any of its cards with room; equal seeds give
// equal choices.
#include <algorithm>

#include "core/cluster/chance.h"
#include "core/cluster/policy.h"

namespace mete::core::cluster {

namespace {

class Random : public NodePolicy {
 public:
  explicit Random(std::uint64_t seed) : chance_(seed) {}

  std::optional<Spot> choose(const Cluster& cluster, KindId id) override {
    const Kind& kind = cluster.kind(id);
    fits_.clear();
    for (std::uint32_t i = 0; i < cluster.nodes().size(); ++i)
      if (kind.fits(cluster.shape(cluster.nodes()[i].cls))) fits_.push_back(NodeId{i});
    if (fits_.empty()) return std::nullopt;
    // In the order of ranks: a node's row in a file does not matter.
    std::sort(fits_.begin(), fits_.end(),
              [&](NodeId a, NodeId b) { return cluster.rank(a) < cluster.rank(b); });
    return cards_of(cluster, fits_[chance_.below(fits_.size())], kind);
  }

 private:
  Spot cards_of(const Cluster& cluster, NodeId id, const Kind& kind) {
    const Node& node = cluster.node(id);
    Spot spot;
    spot.node = id;
    std::array<std::uint8_t, kMaxCards> with;
    std::size_t n = 0;
    for (std::size_t i = 0; i < node.spec.cards; ++i)
      if (node.free[i] >= kind.share(node.group)) with[n++] = static_cast<std::uint8_t>(i);
    for (; spot.count < kind.ask.cards; ++spot.count) {
      const std::size_t pick = chance_.below(n);
      spot.cards[spot.count] = with[pick];
      with[pick] = with[--n];
    }
    std::sort(spot.cards.begin(), spot.cards.begin() + spot.count);
    return spot;
  }

  Chance chance_;
  std::vector<NodeId> fits_;
};

}  // namespace

std::unique_ptr<NodePolicy> make_random(std::uint64_t seed) {
  return std::make_unique<Random>(seed);
}

}  // namespace mete::core::cluster
