// SPDX-License-Identifier: Apache-2.0
// The fast way to choose. For every kind of request there is a heap of the classes that have room
// for it, the cheapest on top. A decision looks only at classes that came into being since this
// kind was last asked for (the cluster's log) and at the top of the heap: its cost does not grow
// with the number of nodes. Classes that are gone stay in the heap until they come to the top, or
// until there are more of them than of the others.
//
// Among equal costs the shape decides (by its hash), not the order of nodes: the same nodes in
// another order are filled in the same way.
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

  // weigh(class, shape, kind) → Way with |cost| < 2^46.
  template <typename Weigh>
  std::optional<Found> best(const Cluster& cluster, KindId id, Weigh&& weigh) {
    if (kinds_.size() <= index_of(id)) kinds_.resize(index_of(id) + 1);
    PerKind& of = kinds_[index_of(id)];
    const Kind& kind = cluster.kind(id);
    catch_up(cluster, kind, of, weigh);
    while (!of.heap.empty() && !cluster.alive(of.heap.front().ref)) pop(of.heap);
    if (of.heap.empty()) return std::nullopt;
    const Entry& top = of.heap.front();
    return Found{cluster.first(top.ref.id), top.at};
  }

 private:
  struct Entry {
    std::uint64_t key = 0;
    ClassRef ref;
    std::uint8_t at = 0;
  };
  struct PerKind {
    bool known = false;
    std::uint64_t seen = 0;  // of the cluster's log
    std::vector<Entry> heap;
  };
  static constexpr std::int64_t kCostLimit = std::int64_t{1} << 46;

  static bool later(const Entry& a, const Entry& b) {
    return a.key != b.key ? a.key > b.key : a.ref.id > b.ref.id;
  }
  static void pop(std::vector<Entry>& heap) {
    std::pop_heap(heap.begin(), heap.end(), later);
    heap.pop_back();
  }

  template <typename Weigh>
  static Entry entry(const Cluster& cluster, ClassRef ref, const Kind& kind, Weigh&& weigh) {
    const Way way = weigh(ref, cluster.shape(ref.id), kind);
    METE_ASSERT(way.cost > -kCostLimit && way.cost < kCostLimit);
    const auto cost = static_cast<std::uint64_t>(way.cost + kCostLimit);
    return {cost << 16 | (cluster.shape_hash(ref.id) & 0xffff), ref, way.at};
  }

  template <typename Weigh>
  static void catch_up(const Cluster& cluster, const Kind& kind, PerKind& of, Weigh&& weigh) {
    const std::size_t live = cluster.classes().size();
    const bool missed = !of.known || of.seen < cluster.log_begin();
    if (missed || cluster.log_end() - of.seen > 2 * live) {
      of.heap.clear();
      for (const ClassId id : cluster.classes())
        if (kind.fits(cluster.shape(id)))
          of.heap.push_back(entry(cluster, cluster.ref(id), kind, weigh));
      std::make_heap(of.heap.begin(), of.heap.end(), later);
    } else {
      for (; of.seen < cluster.log_end(); ++of.seen) {
        const ClassRef ref = cluster.logged(of.seen);
        if (!cluster.alive(ref) || !kind.fits(cluster.shape(ref.id))) continue;
        of.heap.push_back(entry(cluster, ref, kind, weigh));
        std::push_heap(of.heap.begin(), of.heap.end(), later);
      }
      if (of.heap.size() > 2 * live + 64) {
        std::erase_if(of.heap, [&](const Entry& e) { return !cluster.alive(e.ref); });
        std::make_heap(of.heap.begin(), of.heap.end(), later);
      }
    }
    of.known = true;
    of.seen = cluster.log_end();
  }

  std::vector<PerKind> kinds_;
};

}  // namespace mete::core::cluster
