// SPDX-License-Identifier: Apache-2.0
// Several cards that are near each other: cards of one NVLink island, else of one NUMA node, else
// anywhere on the node. Among equal nodes the one with the least left, then the lowest rank. A
// single card goes where it breaks no whole island, if possible.
#include <algorithm>

#include "core/cluster/policy.h"

namespace mete::core::cluster {

namespace {

struct Near {
  std::int64_t cost = 0;  // 0: one island; 1: one NUMA node; 2: one node
  Spot spot;
};

// Cards with room, the tightest first, so that large holes stay.
std::vector<std::uint8_t> with_room(const Node& node, std::int32_t share) {
  std::vector<std::uint8_t> cards;
  for (std::size_t i = 0; i < node.spec.cards; ++i)
    if (node.free[i] >= share) cards.push_back(static_cast<std::uint8_t>(i));
  std::stable_sort(cards.begin(), cards.end(),
                   [&](std::uint8_t a, std::uint8_t b) { return node.free[a] < node.free[b]; });
  return cards;
}

// The smallest set of cards with one value of `by` that is large enough; empty: none.
template <typename By>
std::vector<std::uint8_t> together(const std::vector<std::uint8_t>& cards, std::size_t wanted,
                                   By by) {
  std::map<std::int16_t, std::vector<std::uint8_t>> sets;
  for (const std::uint8_t card : cards)
    if (by(card) >= 0) sets[by(card)].push_back(card);
  const std::vector<std::uint8_t>* best = nullptr;
  for (const auto& [value, set] : sets)
    if (set.size() >= wanted && (best == nullptr || set.size() < best->size())) best = &set;
  return best == nullptr ? std::vector<std::uint8_t>{} : *best;
}

Near nearest_cards(const Cluster& cluster, NodeId id, const Kind& kind) {
  const Node& node = cluster.node(id);
  Near near;
  near.spot.node = id;
  near.spot.count = static_cast<std::uint8_t>(kind.ask.cards);
  const std::vector<std::uint8_t> all = with_room(node, kind.share(node.group));
  std::vector<std::uint8_t> chosen;
  if (!node.spec.places.empty()) {
    const auto& places = node.spec.places;
    chosen = together(all, kind.ask.cards, [&](std::uint8_t c) { return places[c].island; });
    if (chosen.empty()) {
      near.cost = 1;
      chosen = together(all, kind.ask.cards, [&](std::uint8_t c) { return places[c].numa; });
    }
  }
  if (chosen.empty()) {
    near.cost = kind.ask.cards > 1 ? 2 : 0;
    chosen = all;
  }
  std::copy_n(chosen.begin(), kind.ask.cards, near.spot.cards.begin());
  std::sort(near.spot.cards.begin(), near.spot.cards.begin() + near.spot.count);
  return near;
}

class Topology : public NodePolicy {
 public:
  std::optional<Spot> choose(const Cluster& cluster, KindId id) override {
    const Kind& kind = cluster.kind(id);
    std::optional<Near> best;
    std::array<std::int64_t, 4> best_key{};
    for (std::uint32_t i = 0; i < cluster.nodes().size(); ++i) {
      const Node& node = cluster.nodes()[i];
      const Shape& shape = cluster.shape(node.cls);
      if (!kind.fits(shape)) continue;
      const Near near = nearest_cards(cluster, NodeId{i}, kind);
      const std::array<std::int64_t, 4> key{near.cost, shape.idle, shape.cpu,
                                            cluster.rank(NodeId{i})};
      if (best && key >= best_key) continue;
      best = near;
      best_key = key;
    }
    if (!best) return std::nullopt;
    return best->spot;
  }
};

}  // namespace

std::unique_ptr<NodePolicy> make_topology() { return std::make_unique<Topology>(); }

}  // namespace mete::core::cluster
