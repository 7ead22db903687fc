// SPDX-License-Identifier: Apache-2.0
// Each policy on a cluster of a few nodes: requests are placed one after another, and the node and
// cards that follow from the policy's rule are compared as "name:cards". Fragmentation is compared
// with figures computed by hand.
#include "core/cluster/policy.h"

#include <gtest/gtest.h>

#include "core/cluster/chance.h"
#include "core/cluster/fragmentation.h"

namespace mete::core::cluster {
namespace {

NodeSpec node(const std::string& name, std::uint32_t cards, std::int32_t cores = 32,
              const std::string& type = "T4") {
  return {.name = name,
          .cpu_milli = cores * 1000,
          .ram_mib = 65536,
          .cards = cards,
          .card_type = type,
          .card_mib = 16000,
          .places = {},
          .attributes = {}};
}

class PolicyTest : public testing::Test {
 protected:
  void build(std::vector<NodeSpec> nodes) { cluster_.emplace(*Cluster::make(std::move(nodes))); }
  void use(std::string_view name, const std::vector<std::pair<Ask, std::uint64_t>>& mix = {}) {
    policy_ = std::move(*make_policy(name, 7));
    Mix expected;
    for (const auto& [ask, count] : mix) expected.push_back({*cluster_->kind_of(ask), count});
    policy_->expect(*cluster_, expected);
  }
  // Takes the place, and returns "name:cards"; "" if there is no room.
  std::string put(const Ask& ask) {
    const KindId kind = *cluster_->kind_of(ask);
    const std::optional<Spot> spot = policy_->choose(*cluster_, kind);
    if (!spot) return "";
    cluster_->take(kind, *spot);
    std::string text = cluster_->node(spot->node).spec.name + ":";
    for (std::size_t i = 0; i < spot->count; ++i) text += std::to_string(spot->cards[i]);
    return text;
  }
  std::optional<Cluster> cluster_;
  std::unique_ptr<NodePolicy> policy_;
};

const Ask kHalf{.cpu_milli = 1000, .cards = 1, .share = 500};
const Ask kCard{.cpu_milli = 1000, .cards = 1, .share = 1000};
const Ask kPair{.cpu_milli = 1000, .cards = 2, .share = 1000};

TEST_F(PolicyTest, AnUnknownNameIsRefusedWithTheNearest) {
  const auto policy = make_policy("best-fti");
  ASSERT_FALSE(policy.ok());
  EXPECT_EQ(policy.error().hint, "did you mean best-fit?");
  for (const std::string_view name : policy_names()) EXPECT_TRUE(make_policy(name).ok()) << name;
  EXPECT_FALSE(make_policy("binpack:disk").ok());
  EXPECT_FALSE(make_policy("spread:attribute:").ok());
}

TEST_F(PolicyTest, FirstFitTakesTheFirstNodeAndCardWithRoom) {
  build({node("a", 1), node("b", 2)});
  use("first-fit");
  EXPECT_EQ(put(kPair), "b:01");
  EXPECT_EQ(put(kHalf), "a:0");
  EXPECT_EQ(put(kHalf), "a:0");
  EXPECT_EQ(put(kHalf), "");
}

TEST_F(PolicyTest, BestFitTakesTheNodeWithTheLeastLeft) {
  build({node("a", 4), node("b", 2)});
  use("best-fit");
  EXPECT_EQ(put(kCard), "b:0");
  EXPECT_EQ(put(kHalf), "b:1");
  EXPECT_EQ(put({.cpu_milli = 1000, .cards = 1, .share = 200}), "b:1");
  EXPECT_EQ(put(kHalf), "a:0");
}

TEST_F(PolicyTest, SpreadTakesTheEmptiestNodeAndCard) {
  build({node("a", 2), node("b", 4)});
  use("spread");
  EXPECT_EQ(put(kHalf), "b:0");
  EXPECT_EQ(put(kHalf), "b:1");
  EXPECT_EQ(put(kCard), "b:2");
  EXPECT_EQ(put(kHalf), "a:0");  // as much is left, and more CPU
}

TEST_F(PolicyTest, RandomIsTheSameForTheSameSeedAndReachesEveryNode) {
  std::set<std::string> reached;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    build({node("a", 2), node("b", 2), node("c", 2)});
    policy_ = make_random(seed);
    const std::string first = put(kHalf);
    reached.insert(first);
    build({node("a", 2), node("b", 2), node("c", 2)});
    policy_ = make_random(seed);
    EXPECT_EQ(put(kHalf), first);
  }
  EXPECT_EQ(reached.size(), 6u);
}

TEST_F(PolicyTest, TopologyPrefersOneIsland) {
  NodeSpec split = node("split", 4);
  split.places = {{0, 0}, {1, 0}, {2, 1}, {3, 1}};
  NodeSpec joined = node("joined", 4);
  joined.places = {{0, 0}, {1, 0}, {0, 1}, {1, 1}};
  build({node("unknown", 2), split, joined});
  use("topology");
  EXPECT_EQ(put(kPair), "joined:02");
  EXPECT_EQ(put(kPair), "joined:13");
  EXPECT_EQ(put(kPair), "split:01");  // one NUMA node
  EXPECT_EQ(put(kCard), "split:2");   // less CPU is left there
}

TEST_F(PolicyTest, EcsStrategiesNarrowDownOneAfterAnother) {
  NodeSpec a = node("a", 2, 16);
  NodeSpec b = node("b", 2, 8);
  NodeSpec c = node("c", 2, 32);
  a.attributes["rack"] = "1";
  b.attributes["rack"] = "1";
  c.attributes["rack"] = "2";
  build({a, b, c});
  use("spread:attribute:rack,binpack:cpu");
  EXPECT_EQ(put(kHalf), "b:0");
  EXPECT_EQ(put(kHalf), "c:0");
  EXPECT_EQ(put(kHalf), "b:0");
  use("spread:instanceId");
  EXPECT_EQ(put(kHalf), "a:0");
  use("binpack:gpu");
  EXPECT_EQ(put(kCard), "b:1");
}

TEST_F(PolicyTest, BinpackOnGpuMemoryKnowsLargeCards) {
  NodeSpec large = node("large", 1);
  large.card_mib = 80000;
  build({large, node("small", 2)});
  use("binpack:gpuMemory");
  EXPECT_EQ(put(kHalf), "small:0");
  use("binpack:gpu");
  EXPECT_EQ(put(kHalf), "large:0");
}

TEST_F(PolicyTest, FragmentationIsWhatTheMixCannotUse) {
  build({node("a", 2, 4)});
  const Mix mix{{*cluster_->kind_of({.cpu_milli = 4000, .cards = 1, .share = 600}), 1},
                {*cluster_->kind_of({.cpu_milli = 8000, .cards = 1, .share = 600}), 1},
                {*cluster_->kind_of({.cpu_milli = 1}), 2}};
  const Fragmentation fragmentation(*cluster_, mix);
  Shape shape = cluster_->shape(cluster_->node(NodeId{0}).cls);
  // One kind fits both cards; the other lacks CPU; CPU-only requests use no card.
  EXPECT_DOUBLE_EQ(fragmentation.of(shape), 0.75 * 2000);
  shape.free = {1000, 500};
  shape.idle = 1500;
  EXPECT_DOUBLE_EQ(fragmentation.of(shape), 0.25 * 500 + 0.75 * 1500);
}

TEST_F(PolicyTest, FgdKeepsCardsWholeForThoseWhoNeedThem) {
  build({node("a", 2), node("b", 2)});
  use("fgd", {{kCard, 5}, {kHalf, 5}});
  EXPECT_EQ(put(kHalf), "a:0");
  EXPECT_EQ(put(kHalf), "a:0");
  EXPECT_EQ(put(kCard), "a:1");
}

TEST_F(PolicyTest, MeteLeavesTypesToThoseWhoNameThem) {
  build({node("scarce", 2, 32, "T4"), node("b", 2, 32, "G2"), node("c", 2, 32, "G2")});
  Ask named = kCard;
  named.types = {"T4"};
  use("mete", {{kCard, 4}, {named, 2}});
  EXPECT_EQ(put(kCard), "b:0");
  EXPECT_EQ(put(kCard), "b:1");
  EXPECT_EQ(put(kCard), "c:0");
  EXPECT_EQ(put(kCard), "c:1");
  EXPECT_EQ(put(named), "scarce:0");
  EXPECT_EQ(put(named), "scarce:1");
}

TEST_F(PolicyTest, MeteKeepsMachinesWithMuchCpuForThoseWhoNeedIt) {
  build({node("large", 2, 64), node("small", 2, 16)});
  use("mete", {{kCard, 5}, {{.cpu_milli = 30000, .cards = 1, .share = 1000}, 5}});
  EXPECT_EQ(put(kCard), "small:0");
  EXPECT_EQ(put(kCard), "small:1");
}

TEST_F(PolicyTest, SixteenHalvesOnEightCardsAreTwoOnEach) {
  for (int trial = 0; trial < 10000; ++trial) {
    build({node("a", 8)});
    Chance chance(static_cast<std::uint64_t>(trial));
    use("mete", {{kHalf, 1 + chance.below(9)}, {kCard, chance.below(9)}, {kPair, chance.below(9)}});
    for (int i = 0; i < 16; ++i) ASSERT_NE(put(kHalf), "") << trial;
    ASSERT_EQ(cluster_->idle(), 0);
  }
}

}  // namespace
}  // namespace mete::core::cluster
