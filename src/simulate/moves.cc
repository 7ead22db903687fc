// SPDX-License-Identifier: Apache-2.0
// See moves.h. candidates() lists sets of jobs whose removal makes room for the request, cheapest
// first: single jobs, and for each node the cheapest sets on its cards. carry_out() removes such a
// set, places the request, and asks the policy for a place for each removed job; if one finds none,
// everything is put back and the next candidate is tried.
#include "simulate/moves.h"

#include <algorithm>

namespace mete::simulate {

using namespace core::cluster;

namespace {

// Plans that are tried for one request before it is given up: most fail at once, because there is
// no room for the moved jobs either.
constexpr std::size_t kMostTries = 32;
// Jobs on a card of which all sets are looked at.
constexpr std::size_t kMostOnCard = 8;

// What is left on a node, and what would be left without some of its jobs.
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

namespace {

// The jobs on one card that hold the least of what is missing there, as positions among those of
// the node; nullopt: no set of them is enough.
struct OnCard {
  std::int64_t moved = 0;
  std::vector<std::uint32_t> who;
};
std::optional<OnCard> cheapest_on_card(const Cluster& cluster, const std::vector<Placed>& tenants,
                                       const std::vector<bool>& movable, std::uint8_t card,
                                       std::int32_t missing) {
  if (missing <= 0) return OnCard{};
  std::vector<std::uint32_t> here;
  for (std::uint32_t i = 0; i < tenants.size() && here.size() < kMostOnCard; ++i) {
    const Spot& spot = tenants[i].spot;
    if (movable[index_of(tenants[i].kind)] &&
        std::find(spot.cards.begin(), spot.cards.begin() + spot.count, card) !=
            spot.cards.begin() + spot.count)
      here.push_back(i);
  }
  std::optional<OnCard> best;
  for (std::uint32_t set = 1; set < 1u << here.size(); ++set) {
    std::int64_t on_card = 0;
    OnCard chosen;
    for (std::size_t i = 0; i < here.size(); ++i) {
      if ((set >> i & 1) == 0) continue;
      const Placed& placed = tenants[here[i]];
      on_card += cluster.kind(placed.kind).share(cluster.node(placed.spot.node).group);
      chosen.moved += size_of(cluster, placed);
      chosen.who.push_back(here[i]);
    }
    if (on_card < missing) continue;
    if (!best ||
        std::pair(chosen.moved, chosen.who.size()) < std::pair(best->moved, best->who.size()))
      best = std::move(chosen);
  }
  return best;
}

}  // namespace

// As many cards as are asked for, the cheapest ones; and one more job if CPU or memory are then
// still missing.
std::optional<Tenants::Candidate> Tenants::cheapest_cards(const Cluster& cluster,
                                                          const Kind& request,
                                                          const std::vector<bool>& movable,
                                                          NodeId id) const {
  const Node& node = cluster.node(id);
  const std::vector<Placed>& tenants = on_[index_of(id)];
  std::vector<OnCard> cards;
  for (std::uint8_t card = 0; card < node.spec.cards && request.ask.cards > 0; ++card)
    if (std::optional<OnCard> on = cheapest_on_card(cluster, tenants, movable, card,
                                                    request.share(node.group) - node.free[card]))
      cards.push_back(*std::move(on));
  if (cards.size() < request.ask.cards) return std::nullopt;
  std::stable_sort(cards.begin(), cards.end(),
                   [](const OnCard& a, const OnCard& b) { return a.moved < b.moved; });
  Candidate candidate{0, id, {}};
  for (std::size_t i = 0; i < request.ask.cards; ++i)
    candidate.who.insert(candidate.who.end(), cards[i].who.begin(), cards[i].who.end());
  std::sort(candidate.who.begin(), candidate.who.end());
  candidate.who.erase(std::unique(candidate.who.begin(), candidate.who.end()), candidate.who.end());
  Left left(node);
  for (const std::uint32_t who : candidate.who) {
    left.without(tenants[who], cluster.kind(tenants[who].kind));
    candidate.moved += size_of(cluster, tenants[who]);
  }
  if (left.fits(request)) return candidate;
  std::optional<std::uint32_t> one_more;
  for (std::uint32_t i = 0; i < tenants.size(); ++i) {
    if (!movable[index_of(tenants[i].kind)] ||
        std::binary_search(candidate.who.begin(), candidate.who.end(), i))
      continue;
    Left less = left;
    less.without(tenants[i], cluster.kind(tenants[i].kind));
    if (less.fits(request) &&
        (!one_more || size_of(cluster, tenants[i]) < size_of(cluster, tenants[*one_more])))
      one_more = i;
  }
  if (!one_more) return std::nullopt;
  candidate.moved += size_of(cluster, tenants[*one_more]);
  candidate.who.insert(std::upper_bound(candidate.who.begin(), candidate.who.end(), *one_more),
                       *one_more);
  return candidate;
}

std::vector<Tenants::Candidate> Tenants::candidates(const Cluster& cluster, const Kind& request,
                                                    const std::vector<bool>& movable,
                                                    Most most) const {
  std::vector<Candidate> found;
  const auto keep = [&](Candidate candidate) {
    if (!candidate.who.empty() && candidate.moved <= most.share &&
        candidate.who.size() <= most.jobs)
      found.push_back(std::move(candidate));
  };
  for (std::uint32_t n = 0; n < on_.size(); ++n) {
    const Node& node = cluster.node(NodeId{n});
    if (request.share(node.group) == Kind::kNever) continue;
    const std::vector<Placed>& tenants = on_[n];
    for (std::uint32_t a = 0; a < tenants.size(); ++a) {
      if (!movable[index_of(tenants[a].kind)]) continue;
      Left left(node);
      left.without(tenants[a], cluster.kind(tenants[a].kind));
      if (left.fits(request)) keep({size_of(cluster, tenants[a]), NodeId{n}, {a}});
    }
    if (std::optional<Candidate> cards = cheapest_cards(cluster, request, movable, NodeId{n});
        cards && cards->who.size() > 1)
      keep(*std::move(cards));
  }
  const auto before = [&](const Candidate& a, const Candidate& b) {
    if (a.moved != b.moved) return a.moved < b.moved;
    if (a.who.size() != b.who.size()) return a.who.size() < b.who.size();
    if (a.node != b.node) return cluster.rank(a.node) < cluster.rank(b.node);
    return a.who < b.who;
  };
  const std::size_t tries = std::min(found.size(), kMostTries);
  std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(tries), found.end(),
                    before);
  found.resize(tries);
  return found;
}

std::optional<Plan> Tenants::carry_out(Cluster& cluster, NodePolicy& policy, KindId request,
                                       std::uint32_t arrival, const Candidate& candidate) {
  std::vector<Placed>& tenants = on_[index_of(candidate.node)];
  std::vector<Placed> sent;
  for (const std::uint32_t who : candidate.who) sent.push_back(tenants[who]);
  // Large jobs find a place more easily before the small ones have theirs.
  std::stable_sort(sent.begin(), sent.end(), [&](const Placed& a, const Placed& b) {
    return size_of(cluster, a) > size_of(cluster, b);
  });
  for (const Placed& placed : sent) cluster.give_back(placed.kind, placed.spot);
  Plan plan;
  plan.spot = tightest_spot(cluster, candidate.node, cluster.kind(request));
  plan.moved = candidate.moved;
  cluster.take(request, plan.spot);
  for (const Placed& placed : sent) {
    const std::optional<Spot> to = policy.choose(cluster, placed.kind);
    // They move one after another, so none may wait for room that another leaves.
    const bool in_turn = to && (sent.size() == 1 || to->node != candidate.node);
    if (!in_turn) {  // undo
      for (std::size_t i = 0; i < plan.moves.size(); ++i)
        cluster.give_back(sent[i].kind, plan.moves[i].to);
      cluster.give_back(request, plan.spot);
      for (const Placed& back : sent) cluster.take(back.kind, back.spot);
      return std::nullopt;
    }
    cluster.take(placed.kind, *to);
    plan.moves.push_back({placed.arrival, *to});
  }
  for (std::size_t i = candidate.who.size(); i-- > 0;)
    tenants.erase(tenants.begin() + candidate.who[i]);
  for (std::size_t i = 0; i < sent.size(); ++i)
    add({sent[i].arrival, sent[i].kind, plan.moves[i].to});
  add({arrival, request, plan.spot});
  return plan;
}

std::optional<Plan> Tenants::make_room(Cluster& cluster, NodePolicy& policy, KindId request,
                                       std::uint32_t arrival, Most most) {
  // A job that has no room elsewhere is not moved: most plans would fail on that.
  std::vector<bool> movable(cluster.kinds());
  for (std::uint32_t i = 0; i < cluster.kinds(); ++i)
    movable[i] = policy.choose(cluster, KindId{i}).has_value();
  for (const Candidate& candidate : candidates(cluster, cluster.kind(request), movable, most))
    if (std::optional<Plan> plan = carry_out(cluster, policy, request, arrival, candidate))
      return plan;
  return std::nullopt;
}

}  // namespace mete::simulate
