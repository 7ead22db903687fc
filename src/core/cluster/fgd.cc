// SPDX-License-Identifier: Apache-2.0
// Fragmentation gradient descent exactly as published (Weng et al., USENIX ATC 2023, and its
// simulator), so that our comparisons with it can be checked: a request goes where fragmentation
// (fragmentation.h) grows least. The growth d goes through a sigmoid, 100 / (1 + e^(d/1000)), and
// is cut to whole percents; the lowest rank wins among equal nodes, the lowest number among equal
// cards.
#include <algorithm>
#include <cmath>

#include "core/cluster/fragmentation.h"
#include "core/cluster/policy.h"
#include "core/cluster/scan.h"

namespace mete::core::cluster {

namespace {

class Fgd : public NodePolicy {
 public:
  void expect(const Cluster& cluster, const Mix& mix) override {
    fragmentation_ = Fragmentation(cluster, mix);
    scan_.forget();
  }

  std::optional<Spot> choose(const Cluster& cluster, KindId id) override {
    const std::optional<Found> found = scan_.best(
        cluster, id, [&](const Shape& shape, const Kind& kind) { return weigh(shape, kind); });
    if (!found) return std::nullopt;
    return spot(cluster, found->node, cluster.kind(id), found->at);
  }

 private:
  Way weigh(const Shape& shape, const Kind& kind) const {
    const double before = fragmentation_.of(shape);
    Way best;
    bool first = true;
    for_each_way(shape, kind, [&](std::size_t at) {
      const std::int64_t score = score_of(shape, kind, at, before);
      if (first || score > -best.cost) best = {-score, static_cast<std::uint8_t>(at)};
      first = false;
    });
    return best;
  }

  std::int64_t score_of(const Shape& shape, const Kind& kind, std::size_t at, double before) const {
    const double less = before - fragmentation_.of(after(shape, kind, at));
    return static_cast<std::int64_t>(1.0 / (1.0 + std::exp(-less / 1000)) * 100.0);
  }

  // The lowest card among the ways with the highest score; a shape has no card numbers.
  Spot spot(const Cluster& cluster, NodeId id, const Kind& kind, std::size_t best) const {
    const Node& node = cluster.node(id);
    const Shape& shape = cluster.shape(node.cls);
    if (kind.ask.cards != 1 || kind.share(shape.group) == kWholeCard)
      return cluster.spot_on(id, kind, best);
    const double before = fragmentation_.of(shape);
    const std::int64_t top = score_of(shape, kind, best, before);
    for (std::size_t card = 0; card < node.spec.cards; ++card) {
      if (node.free[card] < kind.share(shape.group)) continue;
      const auto at = static_cast<std::size_t>(
          std::find(shape.free.begin(), shape.free.end(), node.free[card]) - shape.free.begin());
      if (score_of(shape, kind, at, before) != top) continue;
      Spot found;
      found.node = id;
      found.count = 1;
      found.cards[0] = static_cast<std::uint8_t>(card);
      return found;
    }
    return cluster.spot_on(id, kind, best);
  }

  Fragmentation fragmentation_;
  Scan scan_;
};

}  // namespace

std::unique_ptr<NodePolicy> make_fgd() { return std::make_unique<Fgd>(); }

}  // namespace mete::core::cluster
