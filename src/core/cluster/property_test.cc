// SPDX-License-Identifier: Apache-2.0
// What holds for every policy on every cluster: nothing is granted twice, giving back restores, a
// request that fits some node is placed, gangs are whole, and neither the order of nodes nor a
// policy's cache changes a choice.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/cluster/chance.h"
#include "core/cluster/gang.h"
#include "core/cluster/reject.h"

namespace mete::core::cluster {
namespace {

struct Held {
  KindId kind;
  Spot spot;
};

std::vector<NodeSpec> random_nodes(Chance& chance, std::size_t n) {
  std::vector<NodeSpec> nodes;
  for (std::size_t i = 0; i < n; ++i) {
    NodeSpec node;
    node.name = "n" + std::to_string(i);
    node.cpu_milli = static_cast<std::int32_t>(8000 * (1 + chance.below(4)));
    node.ram_mib = static_cast<std::int32_t>(32768 * (1 + chance.below(3)));
    node.cards = static_cast<std::uint32_t>(chance.below(9));
    node.card_type = chance.below(2) == 0 ? "T4" : "A100";
    node.card_mib = node.card_type == "T4" ? 16000 : 80000;
    nodes.push_back(std::move(node));
  }
  return nodes;
}

Ask random_ask(Chance& chance) {
  Ask ask;
  ask.cpu_milli = static_cast<std::int32_t>(1000 * chance.below(12));
  ask.ram_mib = static_cast<std::int32_t>(1024 * chance.below(24));
  switch (chance.below(5)) {
    case 0:
      break;
    case 1:
      ask.cards = static_cast<std::uint32_t>(1 + chance.below(8));
      ask.share = kWholeCard;
      break;
    case 2:
      ask.cards = 1;
      ask.share_mib = static_cast<std::int64_t>(1000 * (1 + chance.below(20)));
      break;
    case 3:
      ask.cards = static_cast<std::uint32_t>(1 + chance.below(3));
      ask.share = static_cast<std::int32_t>(100 * (1 + chance.below(10)));
      break;
    default:
      ask.cards = 1;
      ask.share = static_cast<std::int32_t>(1 + chance.below(1000));
  }
  if (ask.cards > 0 && chance.below(4) == 0) ask.types = {"T4"};
  return ask;
}

struct World {
  World(std::uint64_t seed, std::size_t nodes, std::string_view name) : chance(seed) {
    cluster.emplace(*Cluster::make(random_nodes(chance, nodes)));
    for (int i = 0; i < 12; ++i) kinds.push_back(*cluster->kind_of(random_ask(chance)));
    policy = std::move(*make_policy(name, seed));
    Mix mix;
    for (const KindId kind : kinds) mix.push_back({kind, 1 + chance.below(20)});
    policy->expect(*cluster, mix);
  }
  KindId any_kind() { return kinds[chance.below(kinds.size())]; }
  bool arrive() {
    const KindId kind = any_kind();
    const std::optional<Spot> spot = policy->choose(*cluster, kind);
    const Rejection r = reject(*cluster, kind);
    EXPECT_EQ(std::accumulate(r.nodes.begin(), r.nodes.end(), 0u), cluster->nodes().size());
    EXPECT_EQ(spot.has_value(), r.of(Cause::kHasRoom) > 0);  // work is conserved
    if (!spot) return false;
    cluster->take(kind, *spot);  // asserts that it fits
    held.push_back({kind, *spot});
    return true;
  }
  void leave() {
    const std::size_t at = chance.below(held.size());
    cluster->give_back(held[at].kind, held[at].spot);
    held[at] = held.back();
    held.pop_back();
  }

  Chance chance;
  std::optional<Cluster> cluster;
  std::vector<KindId> kinds;
  std::unique_ptr<NodePolicy> policy;
  std::vector<Held> held;
};

class EveryPolicy : public testing::TestWithParam<std::string_view> {};

TEST_P(EveryPolicy, NeverGrantsTwiceAndGivingBackRestores) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    World world(seed, 12, GetParam());
    for (int step = 0; step < 400; ++step) {
      if (!world.held.empty() && world.chance.below(3) == 0)
        world.leave();
      else
        world.arrive();
      ASSERT_EQ(world.cluster->recount(), "") << "seed " << seed << " step " << step;
    }
    while (!world.held.empty()) world.leave();
    EXPECT_EQ(world.cluster->idle(), world.cluster->capacity());
    EXPECT_EQ(world.cluster->recount(), "");
    for (const Node& node : world.cluster->nodes()) EXPECT_EQ(node.grants, 0u);
  }
}

TEST_P(EveryPolicy, GangsAreNeverPlacedInPart) {
  World world(5, 10, GetParam());
  int placed = 0;
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<KindId> gang;
    for (std::uint64_t n = 1 + world.chance.below(8); n > 0; --n) gang.push_back(world.any_kind());
    const std::int64_t before = world.cluster->idle();
    std::int64_t grants = 0;
    for (const Node& node : world.cluster->nodes()) grants += node.grants;
    const auto spots = take_gang(*world.cluster, *world.policy, gang);
    std::int64_t now = 0;
    for (const Node& node : world.cluster->nodes()) now += node.grants;
    ASSERT_EQ(now, grants + (spots ? static_cast<std::int64_t>(gang.size()) : 0));
    ASSERT_EQ(world.cluster->recount(), "");
    if (!spots) {
      ASSERT_EQ(world.cluster->idle(), before);
      while (!world.held.empty()) world.leave();
      continue;
    }
    ++placed;
    for (std::size_t i = 0; i < gang.size(); ++i) world.held.push_back({gang[i], (*spots)[i]});
  }
  EXPECT_GT(placed, 50);
}

INSTANTIATE_TEST_SUITE_P(All, EveryPolicy, testing::ValuesIn(policy_names()),
                         [](const auto& which) {
                           std::string name;
                           for (const char c : which.param)
                             name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

TEST(Mete, OfAHundredThousandGangsNoneIsPlacedInPart) {
  World world(9, 24, "mete");
  std::uint64_t grants = 0;
  int placed = 0;
  for (int trial = 0; trial < 100'000; ++trial) {
    std::vector<KindId> gang;
    for (std::uint64_t n = 2 + world.chance.below(7); n > 0; --n) gang.push_back(world.any_kind());
    const auto spots = take_gang(*world.cluster, *world.policy, gang);
    if (spots) {
      ++placed;
      for (std::size_t i = 0; i < gang.size(); ++i) world.held.push_back({gang[i], (*spots)[i]});
      grants += gang.size();
    }
    std::uint64_t now = 0;
    for (const Node& node : world.cluster->nodes()) now += node.grants;
    ASSERT_EQ(now, grants);
    for (std::uint64_t n = world.chance.below(10); n > 0 && !world.held.empty(); --n, --grants)
      world.leave();
  }
  EXPECT_GT(placed, 10'000);
  EXPECT_EQ(world.cluster->recount(), "");
}

TEST(Mete, ChoosesTheSameWhateverTheOrderOfNodesIs) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Chance chance(seed);
    std::vector<NodeSpec> nodes = random_nodes(chance, 16);
    for (std::size_t i = 8; i < 16; ++i) {  // equal nodes, so that there are ties
      const std::string name = nodes[i].name;
      nodes[i] = nodes[i - 8];
      nodes[i].name = name;
    }
    std::vector<Ask> asks;
    for (int i = 0; i < 12; ++i) asks.push_back(random_ask(chance));
    std::vector<std::size_t> arrivals;
    for (int i = 0; i < 150; ++i) arrivals.push_back(chance.below(asks.size()));
    const auto run = [&] {
      Cluster cluster = *Cluster::make(nodes);
      const std::unique_ptr<NodePolicy> policy = make_mete();
      Mix mix;
      for (const Ask& ask : asks) mix.push_back({*cluster.kind_of(ask), 1});
      policy->expect(cluster, mix);
      std::vector<std::string> shapes;  // after each arrival, without names
      for (const std::size_t i : arrivals) {
        const KindId kind = *cluster.kind_of(asks[i]);
        const std::optional<Spot> spot = policy->choose(cluster, kind);
        if (spot) cluster.take(kind, *spot);
        const NodeSpec* spec = spot ? &cluster.node(spot->node).spec : nullptr;
        shapes.push_back(spec == nullptr ? "-"
                                         : std::to_string(spec->cpu_milli) + spec->card_type +
                                               std::to_string(spec->ram_mib) + "/" +
                                               std::to_string(cluster.idle()));
      }
      return shapes;
    };
    const std::vector<std::string> first = run();
    for (std::size_t i = nodes.size(); i > 1; --i) std::swap(nodes[i - 1], nodes[chance.below(i)]);
    EXPECT_EQ(run(), first) << seed;
  }
}

TEST(Mete, WhatItRemembersDoesNotDecide) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    World world(seed, 20, "mete");
    Mix mix;
    for (const KindId kind : world.kinds) mix.push_back({kind, 3});
    world.policy->expect(*world.cluster, mix);
    for (int step = 0; step < 600; ++step) {
      const KindId kind = world.any_kind();
      const std::unique_ptr<NodePolicy> fresh = make_mete();
      fresh->expect(*world.cluster, mix);
      ASSERT_EQ(fresh->choose(*world.cluster, kind), world.policy->choose(*world.cluster, kind));
      if (!world.held.empty() && world.chance.below(3) == 0)
        world.leave();
      else
        world.arrive();
    }
  }
}

}  // namespace
}  // namespace mete::core::cluster
