// SPDX-License-Identifier: Apache-2.0
// Why a request waits, as data.
#include "core/place/wait.h"

#include <gtest/gtest.h>

#include "core/place/hold.h"
#include "core/place/place.h"

namespace mete::core {
namespace {

Bytes of_gib(std::uint64_t count) { return Bytes::from_gib(count); }

Pool pool_of_80s(std::uint32_t count) {
  Pool pool;
  for (std::uint32_t i = 0; i < count; ++i) {
    PoolCard& card = pool.cards.emplace_back();
    card.card = {i, "GPU-" + std::to_string(i), "A100", of_gib(80)};
  }
  return pool;
}

Holder held_by(std::uint64_t id, std::uint64_t count) { return {{id}, "alice", "", of_gib(count)}; }

Wait why(const Pool& pool, const Request& request) {
  const Decision decision = place(pool, request, Policy::kFirstFit);
  EXPECT_TRUE(std::holds_alternative<Wait>(decision));
  return std::holds_alternative<Wait>(decision) ? std::get<Wait>(decision) : Wait{};
}

Request asking_for(const char* gpu) {
  Request request;
  request.gpu = *parse_gpu(gpu);
  return request;
}

using Whys = std::vector<InTheWay>;
Whys whys(const Wait& wait) {
  Whys list;
  for (const CardWait& card : wait.room.cards) list.push_back(card.why);
  return list;
}

TEST(Wait, SaysWhatIsNeededAndWhoHoldsWhatOnEachCard) {
  Pool pool = pool_of_80s(1);
  pool.cards[0].holders = {held_by(1, 10), held_by(2, 50)};
  pool.cards[0].holders[1].ends_at = WallTime{5};
  pool.cards[0].foreign = {{"process 412 of bob", of_gib(3), {}, "bob", 412}};
  pool.cards[0].claimed = {{"carol's mete", of_gib(4), {}, "carol"}};
  const Wait wait = why(pool, asking_for("40G"));
  EXPECT_EQ(wait.reason, Reason::kResources);
  EXPECT_EQ(wait.room.needs, (CardNeed{1, *parse_gpu("40G"), of_gib(40), {}, 0}));
  ASSERT_EQ(wait.room.cards.size(), 1u);
  const CardWait& card = wait.room.cards[0];
  EXPECT_EQ(card.why, InTheWay::kTooFull);
  EXPECT_EQ(card.needed, of_gib(40));
  EXPECT_EQ(card.free, of_gib(13));
  EXPECT_EQ(card.holders, (std::vector{pool.cards[0].holders[1], pool.cards[0].holders[0]}));
  EXPECT_EQ(card.outside, (std::vector{pool.cards[0].claimed[0], pool.cards[0].foreign[0]}));
  EXPECT_EQ(card.unlisted, 0u);
}

TEST(Wait, IsBounded) {
  Pool pool = pool_of_80s(10);
  for (PoolCard& card : pool.cards) {
    for (std::uint64_t id = 1; id <= 6; ++id) card.holders.push_back(held_by(id, id));
    card.foreign = {{"a", of_gib(40)}, {"b", of_gib(1)}, {"c", of_gib(2)},
                    {"d", of_gib(3)},  {"e", of_gib(4)}, {"", Bytes()}};
  }
  const Wait wait = why(pool, asking_for("40G"));
  EXPECT_EQ(wait.room.cards.size(), kWaitCards);
  EXPECT_EQ(wait.room.unlisted, 2u);
  EXPECT_EQ(wait.room.cards[0].holders.size(), kWaitShares);
  EXPECT_EQ(wait.room.cards[0].holders[0].job, JobId{6}) << "the largest first";
  EXPECT_EQ(wait.room.cards[0].outside.size(), kWaitShares);
  EXPECT_EQ(wait.room.cards[0].unlisted, 3u) << "2 jobs and 1 process; what holds nothing is none";
}

TEST(Wait, CardsThatAreNotAskedForComeLast) {
  Pool pool = pool_of_80s(5);
  pool.cards[0].card.type = "T4";
  pool.cards[1].unusable = "split into MIG slices";
  pool.cards[2].drained = true;
  pool.cards[3].lost = true;
  pool.cards[4].stale = true;
  Request request = asking_for("40G");
  request.gpu_type = "A100";
  const Wait wait = why(pool, request);
  EXPECT_EQ(whys(wait), (Whys{InTheWay::kDrained, InTheWay::kLost, InTheWay::kStale,
                              InTheWay::kType, InTheWay::kUnusable}));
  EXPECT_EQ(wait.room.cards[1].free, std::nullopt) << "a lost card tells nothing";
  EXPECT_EQ(wait.room.cards[3].detail, "A100");
  EXPECT_EQ(wait.room.cards[3].needed, std::nullopt);
  EXPECT_EQ(wait.room.cards[4].detail, "split into MIG slices");
  Pool two = pool_of_80s(2);
  two.cards[1].holders = {held_by(1, 80)};
  request = asking_for("40G");
  request.devices = {"1"};
  const Wait named = why(two, request);
  EXPECT_EQ(whys(named), (Whys{InTheWay::kTooFull, InTheWay::kExcluded}));
  EXPECT_EQ(named.room.needs->card, 1u);
  two.cards[0].card.capacity = of_gib(8);
  EXPECT_EQ(whys(why(two, asking_for("40G"))), (Whys{InTheWay::kTooFull, InTheWay::kTooSmall}));
}

TEST(Wait, RoomThatIsKeptForAJobAheadIsHeldBack) {
  Pool pool = pool_of_80s(1);
  pool.cards[0].holders = {held_by(1, 60)};
  const Pool held = hold_for(pool, asking_for("40G"), Policy::kFirstFit);
  const Wait wait = why(held, asking_for("10G"));
  EXPECT_EQ(wait.reason, Reason::kPriority);
  EXPECT_EQ(whys(wait), Whys{InTheWay::kHeldBack});
  EXPECT_EQ(wait.room.cards[0].kept, of_gib(40));
  EXPECT_EQ(whys(why(held, asking_for("30G"))), Whys{InTheWay::kTooFull});
  EXPECT_EQ(
      whys(why(hold_for(pool_of_80s(1), asking_for("40G"), Policy::kFirstFit), asking_for("1"))),
      Whys{InTheWay::kHeldBack});
}

TEST(Wait, NamesOfWhatIsInTheWayAreReadBack) {
  for (int i = 0; i <= static_cast<int>(InTheWay::kTooSmall); ++i) {
    const auto why = static_cast<InTheWay>(i);
    EXPECT_EQ(parse_in_the_way(to_string(why)), why);
  }
  EXPECT_EQ(parse_in_the_way("moon"), std::nullopt);
}

}  // namespace
}  // namespace mete::core
