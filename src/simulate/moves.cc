// SPDX-License-Identifier: Apache-2.0
// See moves.h.
#include "simulate/moves.h"

#include <algorithm>

namespace mete::simulate {

using namespace core::cluster;

namespace {

// Plans that are tried for one request before it is given up: most fail at once, where there is no
// room for whoever is sent away either.
constexpr std::size_t kMostTries = 32;

// What is left on a node, and what would be without some of those on it.
struct Left {
  explicit Left(const Node& node)
      : group(node.group), cpu(node.cpu), ram(node.ram), cards(node.spec.cards), free(node.free) {}

  void without(const Placed& placed, const Kind& kind) {
    cpu += kind.ask.cpu_milli;
    ram += kind.ask.ram_mib;
    for (std::size_t i = 0; i < placed.spot.count; ++i) {
      std::uint16_t& left = free[placed.spot.cards[i]];
      left = static_cast<std::uint16_t>(left + kind.share(group));
    }
  }
  bool fits(const Kind& kind) const {
    if (cpu < kind.ask.cpu_milli || ram < kind.ask.ram_mib) return false;
    std::uint32_t with = 0;
    for (std::size_t i = 0; i < cards; ++i) with += free[i] >= kind.share(group) ? 1 : 0;
    return with >= kind.ask.cards;
  }

  GroupId group;
  std::int32_t cpu;
  std::int32_t ram;
  std::uint32_t cards;
  std::array<std::uint16_t, kMaxCards> free;
};

std::int64_t size_of(const Cluster& cluster, const Placed& placed) {
  return static_cast<std::int64_t>(placed.spot.count) *
         (placed.spot.count == 0
              ? 0
              : cluster.kind(placed.kind).share(cluster.node(placed.spot.node).group));
}

// The tightest cards of a node that have room.
Spot tightest_spot(const Cluster& cluster, NodeId id, const Kind& kind) {
  std::size_t last = 0;
  for_each_way(cluster.shape(cluster.node(id).cls), kind, [&](std::size_t at) { last = at; });
  return cluster.spot_on(id, kind, last);
}

}  // namespace

std::vector<Tenants::Candidate> Tenants::candidates(const Cluster& cluster, const Kind& request,
                                                    std::int64_t most) const {
  std::vector<Candidate> found;
  for (std::uint32_t n = 0; n < on_.size(); ++n) {
    const Node& node = cluster.node(NodeId{n});
    if (request.share(node.group) == Kind::kNever) continue;
    const std::vector<Placed>& tenants = on_[n];
    for (std::uint32_t a = 0; a < tenants.size(); ++a) {
      const std::int64_t moved = size_of(cluster, tenants[a]);
      if (moved > most) continue;
      Left left(node);
      left.without(tenants[a], cluster.kind(tenants[a].kind));
      if (left.fits(request)) {
        found.push_back({moved, NodeId{n}, {a, 0}, 1});
        continue;
      }
      for (std::uint32_t b = a + 1; b < tenants.size(); ++b) {
        const std::int64_t both = moved + size_of(cluster, tenants[b]);
        if (both > most) continue;
        Left less = left;
        less.without(tenants[b], cluster.kind(tenants[b].kind));
        if (less.fits(request)) found.push_back({both, NodeId{n}, {a, b}, 2});
      }
    }
  }
  const auto before = [&](const Candidate& a, const Candidate& b) {
    if (a.moved != b.moved) return a.moved < b.moved;
    if (a.count != b.count) return a.count < b.count;
    if (a.node != b.node) return cluster.rank(a.node) < cluster.rank(b.node);
    return a.who < b.who;
  };
  const std::size_t tries = std::min(found.size(), kMostTries);
  std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(tries), found.end(),
                    before);
  found.resize(tries);
  return found;
}

std::optional<Plan> Tenants::carry_out(Cluster& cluster, Policy& policy, KindId request,
                                       std::uint32_t arrival, const Candidate& candidate) {
  std::vector<Placed>& tenants = on_[index_of(candidate.node)];
  std::vector<Placed> sent;
  for (std::uint32_t i = 0; i < candidate.count; ++i) sent.push_back(tenants[candidate.who[i]]);
  for (const Placed& placed : sent) cluster.give_back(placed.kind, placed.spot);
  Plan plan;
  plan.spot = tightest_spot(cluster, candidate.node, cluster.kind(request));
  plan.moved = candidate.moved;
  cluster.take(request, plan.spot);
  for (const Placed& placed : sent) {
    const std::optional<Spot> to = policy.choose(cluster, placed.kind);
    // One after another they go, so of two none may wait for room that the other leaves.
    const bool in_turn = to && (sent.size() == 1 || to->node != candidate.node);
    if (!in_turn) {  // as it was
      for (std::size_t i = 0; i < plan.moves.size(); ++i)
        cluster.give_back(sent[i].kind, plan.moves[i].to);
      cluster.give_back(request, plan.spot);
      for (const Placed& back : sent) cluster.take(back.kind, back.spot);
      return std::nullopt;
    }
    cluster.take(placed.kind, *to);
    plan.moves.push_back({placed.arrival, *to});
  }
  for (std::uint32_t i = candidate.count; i-- > 0;)
    tenants.erase(tenants.begin() + candidate.who[i]);
  for (std::size_t i = 0; i < sent.size(); ++i)
    add({sent[i].arrival, sent[i].kind, plan.moves[i].to});
  add({arrival, request, plan.spot});
  return plan;
}

std::optional<Plan> Tenants::make_room(Cluster& cluster, Policy& policy, KindId request,
                                       std::uint32_t arrival, std::int64_t most) {
  for (const Candidate& candidate : candidates(cluster, cluster.kind(request), most))
    if (std::optional<Plan> plan = carry_out(cluster, policy, request, arrival, candidate))
      return plan;
  return std::nullopt;
}

}  // namespace mete::simulate
