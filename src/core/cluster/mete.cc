// SPDX-License-Identifier: Apache-2.0
// Our own policy, the default: a request goes where the potential (potential.h) grows least, with a
// price for nodes that others need more, and a small preference for nodes that are fuller already.
// One more rule: a share of at most half a card opens a new card rather early. Similar shares fill
// half-open cards later; whole cards that are used up sooner are not spent on large shares, which
// leave the most behind. When little is left, requests for fewer cards stay out of blocks of four
// free cards while there is another place.
//
// Exact: costs are integers, and ties are broken by what is left on a node, never by its place in
// the list.
#include <algorithm>

#include "core/cluster/policy.h"
#include "core/cluster/potential.h"
#include "core/cluster/ranking.h"

namespace mete::core::cluster {

namespace {

constexpr std::int64_t fixed(double value) {
  return static_cast<std::int64_t>(value * static_cast<double>(Potential::kOne));
}

constexpr std::int64_t kOpen = fixed(-280);            // a new card for a small share
constexpr std::int64_t kFullerNode = fixed(0.0442);    // per thousandth idle on the node
constexpr std::int64_t kFullerCard = fixed(0.00442);   // per thousandth left on the card
constexpr std::int64_t kLessCpu = fixed(0.000136);     // per thousandth of a core left
constexpr std::int64_t kCpuOnlyIdle = fixed(0.00357);  // CPU-only, per thousandth idle
constexpr std::uint32_t kBlock = 4;                    // cards that are often requested together
constexpr std::int64_t kBreak = fixed(1000);           // for breaking a block when nothing is left
constexpr std::int64_t kLittle = 10;                   // little: less than a tenth is idle

class Mete : public NodePolicy {
 public:
  void expect(const Cluster& cluster, const Mix& mix) override {
    potential_ = Potential(cluster, mix);
    ranking_.forget();
    before_.clear();
    prices_.clear();
  }

  std::optional<Spot> choose(const Cluster& cluster, KindId id) override {
    const Kind& kind = cluster.kind(id);
    if (prices_.empty() || priced_ != cluster.version()) {
      potential_.price(cluster, prices_);
      set_break_price(cluster);
      priced_ = cluster.version();
    }
    const std::optional<Found> found = ranking_.best(
        cluster, id,
        [&](ClassRef ref, const Shape& shape, const Kind&) { return weigh(ref, shape, kind); },
        [&](GroupId group, bool breaks) {
          if (kind.ask.cards == 0) return std::int64_t{0};
          return prices_[index_of(group)] * kind.ask.cards * kind.share(group) / kWholeCard +
                 (breaks ? break_price_ : 0);
        });
    if (!found) return std::nullopt;
    return cluster.spot_on(found->node, kind, found->at);
  }

 private:
  struct Known {
    std::uint32_t generation = 0;  // of the class, plus one
    std::int64_t potential = 0;
  };

  // Zero while much is idle, then more with every card that is taken.
  void set_break_price(const Cluster& cluster) {
    constexpr std::int64_t kRatio = 1024;
    const std::int64_t little = cluster.capacity() / kLittle + 1;
    const std::int64_t missing = std::max<std::int64_t>(0, little - cluster.idle());
    break_price_ = kBreak / kRatio * (missing * kRatio / little);
  }

  static bool breaks_block(const Shape& shape, const Kind& kind, std::size_t at) {
    if (kind.ask.cards >= kBlock || shape.free[at] != kWholeCard) return false;
    const std::uint32_t whole = shape.with(kWholeCard);
    return whole / kBlock != (whole - kind.ask.cards) / kBlock;
  }

  std::int64_t before(ClassRef ref, const Shape& shape) {
    if (before_.size() <= index_of(ref.id)) before_.resize(index_of(ref.id) + 1);
    Known& known = before_[index_of(ref.id)];
    if (known.generation != ref.generation + 1) known = {ref.generation + 1, potential_.of(shape)};
    return known.potential;
  }

  Way weigh(ClassRef ref, const Shape& shape, const Kind& kind) {
    const Ask& ask = kind.ask;
    const std::int32_t share = kind.share(shape.group);
    const std::int64_t asked = static_cast<std::int64_t>(ask.cards) * share;
    std::int64_t cost = kFullerNode * (shape.idle - asked) +
                        kLessCpu * (shape.cpu - ask.cpu_milli) - before(ref, shape);
    if (ask.cards == 0) cost += kCpuOnlyIdle * shape.idle;
    const bool small = ask.cards > 0 && share <= kWholeCard / 2;
    Way best;
    bool first = true;
    for_each_way(shape, kind, [&](std::size_t at) {
      std::int64_t with = cost + potential_.of(after(shape, kind, at));
      if (ask.cards > 0 && share < kWholeCard) with += kFullerCard * shape.free[at];
      if (small && shape.free[at] == kWholeCard) with += kOpen;
      if (first || with < best.cost)
        best = {with, static_cast<std::uint8_t>(at),
                ask.cards > 0 && breaks_block(shape, kind, at)};
      first = false;
    });
    return best;
  }

  Potential potential_;
  Ranking ranking_;
  std::vector<Known> before_;         // by class
  std::vector<std::int64_t> prices_;  // by group, for this version of the cluster
  std::int64_t break_price_ = 0;      // for this version too
  std::uint64_t priced_ = 0;
};

}  // namespace

std::unique_ptr<NodePolicy> make_mete() { return std::make_unique<Mete>(); }

}  // namespace mete::core::cluster
