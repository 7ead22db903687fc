// SPDX-License-Identifier: Apache-2.0
// The fast way to choose. For every kind of request and group of nodes there are two heaps of the
// classes that have room, one for classes where the request would break something and one for the
// others, the cheapest on top. A decision looks only at classes that are new since this kind was
// last asked for (the cluster's log) and at the tops of the heaps: its cost does not grow with the
// number of nodes. Classes that are gone stay in a heap until they come to its top, or until they
// are the majority.
//
// Among equal costs the shape decides (by its hash), not the order of nodes: equal nodes in another
// order are filled in the same way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/cluster/scan.h"

namespace mete::core::cluster {

class Ranking {
 public:
  void forget() { kinds_.clear(); }

  // weigh(ref, shape, kind) → Way with |cost| < 2^46; price(group, breaks) is added to it, and may
  // change between calls.
  template <typename Weigh, typename Price>
  std::optional<Found> best(const Cluster& cluster, KindId id, Weigh&& weigh, Price&& price) {
    if (kinds_.size() <= index_of(id)) kinds_.resize(index_of(id) + 1);
    PerKind& of = kinds_[index_of(id)];
    catch_up(cluster, cluster.kind(id), of, weigh);
    const Entry* best = nullptr;
    std::uint64_t best_key = 0;
    for (std::uint32_t g = 0; g < of.heaps.size(); ++g) {
      std::vector<Entry>& heap = of.heaps[g];
      while (!heap.empty() && !cluster.alive(heap.front().ref)) {
        std::pop_heap(heap.begin(), heap.end(), later);
        heap.pop_back();
        --of.entries;
      }
      if (heap.empty()) continue;
      // Costs are the upper bits of a key.
      const std::uint64_t key =
          heap.front().key +
          (static_cast<std::uint64_t>(price(GroupId{g / 2}, g % 2 != 0)) << kHashBits);
      if (best != nullptr && key >= best_key) continue;
      best = &heap.front();
      best_key = key;
    }
    if (best == nullptr) return std::nullopt;
    return Found{cluster.first(best->ref.id), best->at};
  }

 private:
  struct Entry {
    std::uint64_t key = 0;
    ClassRef ref;
    std::uint8_t at = 0;
  };
  struct PerKind {
    std::uint64_t seen = 0;  // position in the cluster's log
    std::size_t entries = 0;
    std::vector<std::vector<Entry>> heaps;  // two per group, the second for breaks
  };
  static constexpr std::int64_t kCostLimit = std::int64_t{1} << 46;
  static constexpr int kHashBits = 16;

  static bool later(const Entry& a, const Entry& b) {
    return a.key != b.key ? a.key > b.key : a.ref.id > b.ref.id;
  }

  template <typename Weigh>
  static void add(const Cluster& cluster, ClassRef ref, const Kind& kind, PerKind& of,
                  Weigh&& weigh) {
    const Way way = weigh(ref, cluster.shape(ref.id), kind);
    METE_ASSERT(way.cost > -kCostLimit && way.cost < kCostLimit);
    const auto cost = static_cast<std::uint64_t>(way.cost + kCostLimit);
    const std::uint64_t hash = cluster.shape_hash(ref.id) & ((1u << kHashBits) - 1);
    std::vector<Entry>& heap =
        of.heaps[2 * index_of(cluster.shape(ref.id).group) + (way.breaks ? 1 : 0)];
    heap.push_back({cost << kHashBits | hash, ref, way.at});
    std::push_heap(heap.begin(), heap.end(), later);
    ++of.entries;
  }

  template <typename Weigh>
  static void catch_up(const Cluster& cluster, const Kind& kind, PerKind& of, Weigh&& weigh) {
    const std::size_t live = cluster.classes().size();
    of.heaps.resize(2 * cluster.groups().size());
    const auto look_at = [&](ClassRef ref) {
      if (kind.fits(cluster.shape(ref.id))) add(cluster, ref, kind, of, weigh);
    };
    if (of.seen < cluster.log_begin() || cluster.log_end() - of.seen > 2 * live) {
      for (const ClassId id : cluster.classes())
        if (cluster.born(id) >= of.seen) look_at(cluster.ref(id));
    } else {
      for (std::uint64_t at = of.seen; at < cluster.log_end(); ++at)
        if (const ClassRef ref = cluster.logged(at); cluster.alive(ref)) look_at(ref);
    }
    of.seen = cluster.log_end();
    if (of.entries > 2 * live + 64) drop_dead(cluster, of);
  }

  static void drop_dead(const Cluster& cluster, PerKind& of) {
    of.entries = 0;
    for (auto& heap : of.heaps) {
      std::erase_if(heap, [&](const Entry& e) { return !cluster.alive(e.ref); });
      std::make_heap(heap.begin(), heap.end(), later);
      of.entries += heap.size();
    }
  }

  std::vector<PerKind> kinds_;
};

}  // namespace mete::core::cluster
