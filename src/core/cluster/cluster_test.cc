// SPDX-License-Identifier: Apache-2.0
// The ledger of a small cluster: groups, kinds, classes and their log, refused specifications, and
// gangs. After requests are taken and given back, recount() must agree with the sums.
#include "core/cluster/cluster.h"

#include <gtest/gtest.h>

#include "core/cluster/gang.h"
#include "core/cluster/reject.h"

namespace mete::core::cluster {
namespace {

NodeSpec node(const std::string& name, std::uint32_t cards, const std::string& type = "T4") {
  return {.name = name,
          .cpu_milli = 32000,
          .ram_mib = 65536,
          .cards = cards,
          .card_type = type,
          .card_mib = 16000,
          .places = {},
          .attributes = {}};
}

class ClusterTest : public testing::Test {
 protected:
  void build(std::vector<NodeSpec> nodes) { cluster_.emplace(*Cluster::make(std::move(nodes))); }
  KindId kind(Ask ask) { return *cluster_->kind_of(std::move(ask)); }
  KindId share(std::int32_t milli) { return kind({.cpu_milli = 1000, .cards = 1, .share = milli}); }
  KindId cards(std::uint32_t n) { return kind({.cpu_milli = 1000, .cards = n, .share = 1000}); }
  Spot on(std::uint32_t node, std::vector<std::uint8_t> cards) {
    Spot spot;
    spot.node = NodeId{node};
    for (const std::uint8_t card : cards) spot.cards[spot.count++] = card;
    return spot;
  }
  std::optional<Cluster> cluster_;
};

TEST_F(ClusterTest, NodesOnWhichTheSameIsLeftAreOneClass) {
  build({node("a", 2), node("b", 2), node("c", 2)});
  EXPECT_EQ(cluster_->classes().size(), 1u);
  cluster_->take(share(400), on(0, {0}));
  cluster_->take(share(400), on(1, {1}));  // another card, an equal shape
  EXPECT_EQ(cluster_->classes().size(), 2u);
  EXPECT_EQ(cluster_->count(cluster_->node(NodeId{0}).cls), 2u);
  EXPECT_EQ(cluster_->recount(), "");
}

TEST_F(ClusterTest, GivingBackRestoresTheClassAndTheSum) {
  build({node("a", 2), node("b", 2)});
  const ClassId before = cluster_->node(NodeId{1}).cls;
  const Spot spot = on(0, {0, 1});
  cluster_->take(cards(2), spot);
  EXPECT_EQ(cluster_->idle(), 2000);
  cluster_->give_back(cards(2), spot);
  EXPECT_EQ(cluster_->node(NodeId{0}).cls, before);
  EXPECT_EQ(cluster_->idle(), cluster_->capacity());
  EXPECT_EQ(cluster_->recount(), "");
}

TEST_F(ClusterTest, TheFirstOfAClassIsTheLowestRankThatIsStillInIt) {
  cluster_.emplace(*Cluster::make({node("a", 1), node("b", 1), node("c", 1)}, {2, 0, 1}));
  const ClassId all = cluster_->node(NodeId{0}).cls;
  EXPECT_EQ(cluster_->first(all), NodeId{1});
  cluster_->take(cards(1), on(1, {0}));
  EXPECT_EQ(cluster_->first(all), NodeId{2});
  cluster_->give_back(cards(1), on(1, {0}));
  EXPECT_EQ(cluster_->first(all), NodeId{1});
}

TEST_F(ClusterTest, TheSameRequestIsTheSameKindWhateverTheOrderOfItsTypes) {
  build({node("a", 1)});
  const KindId one = kind({.cards = 1, .share = 500, .types = {"T4", "A10"}});
  EXPECT_EQ(kind({.cards = 1, .share = 500, .types = {"A10", "T4"}}), one);
  EXPECT_NE(kind({.cards = 1, .share = 501, .types = {"A10", "T4"}}), one);
  EXPECT_EQ(kind({.cards = 1, .share = 500, .types = {"t4", "A10"}}), one) << "nodes spell it T4";
  // Without cards, types and shares have no meaning.
  EXPECT_EQ(kind({.cpu_milli = 5, .share = 7, .types = {"T4"}}), kind({.cpu_milli = 5}));
}

TEST_F(ClusterTest, MemoryOfACardIsAnotherShareOnAnotherCard) {
  NodeSpec large = node("b", 1, "A100");
  large.card_mib = 80000;
  build({node("a", 1), large});
  const auto share_on = [&](std::int64_t mib, std::uint32_t node) {
    const Kind& kind = cluster_->kind(*cluster_->kind_of({.cards = 1, .share_mib = mib}));
    return kind.share(cluster_->node(NodeId{node}).group);
  };
  EXPECT_EQ(share_on(20000, 0), Kind::kNever);
  EXPECT_EQ(share_on(20000, 1), 250);
  // Rounded up: never less than requested.
  EXPECT_EQ(share_on(15999, 0), 1000);
  EXPECT_EQ(share_on(15999, 1), 200);
}

TEST_F(ClusterTest, RefusesWhatMakesNoSense) {
  EXPECT_FALSE(Cluster::make({node("a", 1), node("a", 2)}).ok());
  EXPECT_FALSE(Cluster::make({node("a", 17)}).ok());
  EXPECT_FALSE(Cluster::make({node("a", 1), node("b", 1)}, {0, 0}).ok());
  EXPECT_FALSE(Cluster::make({node("a", 1), node("b", 1)}, {0}).ok());
  build({node("a", 1)});
  EXPECT_FALSE(cluster_->kind_of({.cards = 1, .share = 1001}).ok());
  EXPECT_FALSE(cluster_->kind_of({.cards = 1, .share = 0}).ok());
  EXPECT_FALSE(cluster_->kind_of({.cpu_milli = -1}).ok());
  EXPECT_FALSE(cluster_->kind_of({.cards = 17, .share = 1000}).ok());
}

TEST_F(ClusterTest, WholeCardsComeFromOneIslandWhereOneHasEnough) {
  NodeSpec linked = node("a", 4);
  linked.places = {{0, 0}, {1, 0}, {1, 1}, {0, 1}};
  build({linked});
  const KindId two = cards(2);
  const Spot first = cluster_->spot_on(NodeId{0}, cluster_->kind(two), 0);
  EXPECT_EQ(first, on(0, {0, 3}));
  cluster_->take(two, first);
  EXPECT_EQ(cluster_->spot_on(NodeId{0}, cluster_->kind(two), 0), on(0, {1, 2}));
}

TEST_F(ClusterTest, EveryNodeIsCountedUnderOneCause) {
  NodeSpec poor = node("poor", 2);
  poor.cpu_milli = 500;
  build({node("a", 2), node("b", 2), node("other", 2, "A100"), poor, node("none", 0, "")});
  const KindId wanted =
      kind({.cpu_milli = 8000, .ram_mib = 40000, .cards = 2, .share = 600, .types = {"T4"}});
  cluster_->take(share(500), on(0, {1}));
  cluster_->take(kind({.ram_mib = 40000}), on(1, {}));
  const Rejection r = reject(*cluster_, wanted);
  EXPECT_EQ(r.of(Cause::kType), 2u);
  EXPECT_EQ(r.of(Cause::kTooSmall), 1u);
  EXPECT_EQ(r.of(Cause::kRam), 1u);
  EXPECT_EQ(r.of(Cause::kCards), 1u);
  EXPECT_EQ(r.of(Cause::kHasRoom), 0u);
}

TEST_F(ClusterTest, AGangIsPlacedWhollyOrNotAtAll) {
  build({node("a", 4), node("b", 4), node("c", 2)});
  const std::unique_ptr<NodePolicy> policy = make_mete();
  const std::vector<KindId> three(3, cards(4));
  EXPECT_FALSE(take_gang(*cluster_, *policy, three).has_value());
  EXPECT_EQ(cluster_->idle(), cluster_->capacity());
  // A small request that comes first does not block the large ones.
  const std::vector<KindId> mixed{cards(2), cards(4), cards(4)};
  const auto spots = take_gang(*cluster_, *policy, mixed);
  ASSERT_TRUE(spots.has_value());
  EXPECT_EQ((*spots)[0].node, NodeId{2});
  EXPECT_EQ(cluster_->idle(), 0);
  EXPECT_EQ(cluster_->recount(), "");
}

TEST(Shape, SinksCardsThatAreTakenToTheirPlace) {
  Shape shape;
  shape.cards = 4;
  shape.cpu = 1000;
  shape.free = {1000, 900, 500, 100};
  shape.idle = 2500;
  Kind kind;
  kind.ask = {.cpu_milli = 10, .cards = 2, .share = 450};
  kind.share_on = {450};
  std::vector<std::size_t> ways;
  for_each_way(shape, kind, [&](std::size_t at) { ways.push_back(at); });
  EXPECT_EQ(ways, (std::vector<std::size_t>{0, 1}));
  const Shape left = after(shape, kind, 0);
  EXPECT_EQ(left.free, (std::array<std::uint16_t, kMaxCards>{550, 500, 450, 100}));
  EXPECT_EQ(left.idle, 1600);
  EXPECT_EQ(left.cpu, 990);
  EXPECT_EQ(after(shape, kind, 1).free, (std::array<std::uint16_t, kMaxCards>{1000, 450, 100, 50}));
}

}  // namespace
}  // namespace mete::core::cluster
