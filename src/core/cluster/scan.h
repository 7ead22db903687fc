// SPDX-License-Identifier: Apache-2.0
// The plain way to choose: look at every class that has room, take the one with the lowest cost,
// and among equals the node with the lowest rank, as published schedulers do. The cost of a class
// is computed once and cached. `mete` uses ranking.h instead.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/cluster/cluster.h"
#include "core/cluster/policy.h"

namespace mete::core::cluster {

// A place on a class of nodes: its cost (the lowest is best) and the cards (for_each_way).
struct Way {
  std::int64_t cost = 0;
  std::uint8_t at = 0;
  bool breaks = false;  // it breaks what others may need whole (ranking.h)
};

struct Found {
  NodeId node{};
  std::uint8_t at = 0;
};

class Scan {
 public:
  void forget() { known_.clear(); }

  // weigh(shape, kind) → Way; called once for each class with room.
  template <typename Weigh>
  std::optional<Found> best(const Cluster& cluster, KindId id, Weigh&& weigh) {
    if (known_.size() <= index_of(id)) known_.resize(index_of(id) + 1);
    std::vector<Known>& known = known_[index_of(id)];
    const Kind& kind = cluster.kind(id);
    std::optional<Found> found;
    std::int64_t cost = 0;
    std::uint32_t rank = 0;
    for (const ClassId cls : cluster.classes()) {
      const Shape& shape = cluster.shape(cls);
      if (!kind.fits(shape)) continue;
      if (known.size() <= index_of(cls)) known.resize(index_of(cls) + 1);
      Known& k = known[index_of(cls)];
      const std::uint32_t generation = cluster.ref(cls).generation + 1;
      if (k.generation != generation) k = {generation, weigh(shape, kind)};
      if (found && k.way.cost > cost) continue;
      const NodeId node = cluster.first(cls);
      if (found && k.way.cost == cost && cluster.rank(node) >= rank) continue;
      found = Found{node, k.way.at};
      cost = k.way.cost;
      rank = cluster.rank(node);
    }
    return found;
  }

 private:
  struct Known {
    std::uint32_t generation = 0;  // of the class, plus one
    Way way;
  };
  std::vector<std::vector<Known>> known_;  // by kind and class
};

// The tightest cards with room: the last position in the descending order.
inline std::size_t tightest(const Shape& shape, const Kind& kind) {
  std::size_t last = 0;
  for_each_way(shape, kind, [&](std::size_t at) { last = at; });
  return last;
}

// A policy that takes the node with the lowest cost by kWeigh.
template <auto kWeigh>
class Weighing : public NodePolicy {
 public:
  std::optional<Spot> choose(const Cluster& cluster, KindId id) override {
    const std::optional<Found> found = scan_.best(cluster, id, kWeigh);
    if (!found) return std::nullopt;
    return cluster.spot_on(found->node, cluster.kind(id), found->at);
  }

 private:
  Scan scan_;
};

}  // namespace mete::core::cluster
