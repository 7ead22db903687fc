// SPDX-License-Identifier: Apache-2.0
// The node on which the most is left, and its emptiest cards: neighbours are avoided as long as
// there is room.
#include "core/cluster/policy.h"
#include "core/cluster/scan.h"

namespace mete::core::cluster {

namespace {

// Cards first; CPU decides between nodes with as much of them.
Way weigh(const Shape& shape, const Kind& /*kind*/) {
  return {-(static_cast<std::int64_t>(shape.idle) * kMaxCpuMilli + shape.cpu), 0};
}

class Spread : public Policy {
 public:
  std::optional<Spot> choose(const Cluster& cluster, KindId id) override {
    const std::optional<Found> found = scan_.best(cluster, id, weigh);
    if (!found) return std::nullopt;
    return cluster.spot_on(found->node, cluster.kind(id), found->at);
  }

 private:
  Scan scan_;
};

}  // namespace

std::unique_ptr<Policy> make_spread() { return std::make_unique<Spread>(); }

}  // namespace mete::core::cluster
