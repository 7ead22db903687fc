// SPDX-License-Identifier: Apache-2.0
#include "simulate/moves.h"

#include <gtest/gtest.h>

#include "core/cluster/chance.h"
#include "simulate/replay.h"

namespace mete::simulate {
namespace {

using namespace core::cluster;

NodeSpec node(const std::string& name, std::uint32_t cards) {
  NodeSpec spec;
  spec.name = name;
  spec.cpu_milli = 32000;
  spec.ram_mib = 65536;
  spec.cards = cards;
  spec.card_type = "T4";
  return spec;
}

class MovesTest : public testing::Test {
 protected:
  void build(std::vector<NodeSpec> nodes) {
    cluster_.emplace(*Cluster::make(std::move(nodes)));
    tenants_.emplace(cluster_->nodes().size());
    policy_ = make_best_fit();
  }
  KindId share(std::int32_t milli) {
    return *cluster_->kind_of({.cpu_milli = 1000, .cards = 1, .share = milli});
  }
  void put(std::uint32_t arrival, KindId kind, std::uint32_t node, std::uint8_t card) {
    Spot spot;
    spot.node = NodeId{node};
    spot.count = 1;
    spot.cards[0] = card;
    cluster_->take(kind, spot);
    tenants_->add({arrival, kind, spot});
  }
  std::optional<Plan> make_room(KindId kind, std::int64_t most) {
    std::optional<Plan> plan = tenants_->make_room(*cluster_, *policy_, kind, 99, {most, 8});
    EXPECT_EQ(cluster_->recount(), "");
    return plan;
  }
  std::optional<Cluster> cluster_;
  std::optional<Tenants> tenants_;
  std::unique_ptr<NodePolicy> policy_;
};

TEST_F(MovesTest, TheSmallestOfThoseInTheWayMoves) {
  build({node("a", 1), node("b", 1), node("c", 1)});
  put(0, share(600), 0, 0);
  put(1, share(300), 1, 0);
  put(2, share(500), 2, 0);
  const std::optional<Plan> plan = make_room(share(1000), 1000);
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->moves.size(), 1u);
  EXPECT_EQ(plan->moves[0].arrival, 1u);
  EXPECT_EQ(plan->moves[0].to.node, NodeId{0});  // where the least is left
  EXPECT_EQ(plan->spot.node, NodeId{1});
  EXPECT_EQ(plan->moved, 300);
  EXPECT_EQ(tenants_->on(NodeId{0}).size(), 2u);
  EXPECT_EQ(tenants_->on(NodeId{1}).size(), 1u);
}

TEST_F(MovesTest, TwoMoveWhereOneIsNotEnough) {
  build({node("a", 1), node("b", 2)});
  put(0, share(200), 0, 0);
  put(1, share(200), 0, 0);
  put(2, share(700), 1, 0);
  put(3, share(700), 1, 1);
  const std::optional<Plan> plan = make_room(share(1000), 1000);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->moves.size(), 2u);
  EXPECT_EQ(plan->moved, 400);
  EXPECT_EQ(plan->spot.node, NodeId{0});
}

TEST_F(MovesTest, AllOfACardMoveWhereTheyFitIntoGaps) {
  build({node("a", 1), node("b", 3)});
  for (std::uint32_t i = 0; i < 3; ++i) put(i, share(150), 0, 0);
  for (std::uint8_t card = 0; card < 3; ++card) put(10u + card, share(810), 1, card);
  const std::optional<Plan> plan = make_room(share(1000), 1000);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->moves.size(), 3u);
  EXPECT_EQ(plan->moved, 450);
  for (const Move& move : plan->moves) EXPECT_EQ(move.to.node, NodeId{1});
}

TEST_F(MovesTest, WithoutAPlanNothingChanges) {
  build({node("a", 1), node("b", 1)});
  put(0, share(600), 0, 0);
  put(1, share(600), 1, 0);
  const std::int64_t idle = cluster_->idle();
  EXPECT_FALSE(make_room(share(1000), 1000));
  EXPECT_EQ(cluster_->idle(), idle);
  EXPECT_EQ(tenants_->on(NodeId{0}).size(), 1u);
}

TEST_F(MovesTest, NoMoreIsMovedThanAllowed) {
  build({node("a", 1), node("b", 1)});
  put(0, share(600), 0, 0);
  put(1, share(300), 1, 0);
  EXPECT_FALSE(make_room(share(1000), 299));
  EXPECT_TRUE(make_room(share(1000), 300));
}

TEST(Moves, OnRandomTracesTheBooksAgree) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Chance chance(seed);
    Trace trace;
    for (int i = 0; i < 6; ++i) trace.nodes.push_back(node("n" + std::to_string(i), 2));
    for (int i = 0; i < 8; ++i) {
      Ask ask;
      ask.cpu_milli = static_cast<std::int32_t>(1000 * chance.below(12));
      ask.cards = static_cast<std::uint32_t>(chance.below(3));
      ask.share = ask.cards == 0   ? 0
                  : ask.cards == 2 ? kWholeCard
                                   : static_cast<std::int32_t>(100 * (1 + chance.below(10)));
      trace.jobs.push_back({"j" + std::to_string(i), ask});
    }
    for (int i = 0; i < 60; ++i)
      trace.arrivals.push_back(static_cast<std::uint32_t>(chance.below(trace.jobs.size())));
    const MoveLimit limit{5, 2000};
    const Replay decided = *replay(trace, *make_mete(), MixFrom::kJobs, {}, limit);
    const Score with = *score(trace, decided);  // asserts that every step fits
    EXPECT_EQ(with.moves, decided.moves.size());
    EXPECT_LE(with.moves, 5u);
    EXPECT_LE(with.moved_gpu, 2.0);
  }
}

}  // namespace
}  // namespace mete::simulate
