// SPDX-License-Identifier: Apache-2.0
#include "core/place/hold.h"

#include <gtest/gtest.h>

#include "wire/wait_text.h"

namespace mete::core {
namespace {

Bytes gib(std::uint64_t count) { return Bytes::from_gib(count); }

PoolCard card(std::uint32_t index, std::vector<Holder> holders = {}) {
  PoolCard made;
  made.card = {index, "GPU-" + std::to_string(index), "X", gib(100)};
  made.holders = std::move(holders);
  return made;
}

Holder job(std::uint64_t id, std::uint64_t size) { return {{id}, "alice", "train", gib(size)}; }

Request request_of(const char* gpu, std::vector<std::string> devices = {}) {
  Request request;
  request.gpu = *parse_gpu(gpu);
  request.devices = std::move(devices);
  return request;
}

std::vector<std::uint64_t> kept(const Pool& pool, const Request& waiting,
                                Policy policy = Policy::kFirstFit) {
  std::vector<std::uint64_t> list;
  for (const PoolCard& each : hold_for(pool, waiting, policy).cards)
    list.push_back(each.kept.count() / gib(1).count());
  return list;
}

using List = std::vector<std::uint64_t>;

TEST(Hold, KeepsTheShareWhereTheLeastIsMissing) {
  const Pool pool{{card(0, {job(1, 80)}), card(1, {job(2, 60)}), card(2, {job(3, 90)})}};
  EXPECT_EQ(kept(pool, request_of("50G")), (List{0, 50, 0}));
  EXPECT_EQ(kept(pool, request_of("2x50G")), (List{50, 50, 0}));
  EXPECT_EQ(kept(pool, request_of("50G", {"2"})), (List{0, 0, 50}));
}

TEST(Hold, KeepsTheWholeCardWithTheLeastOnIt) {
  const Pool pool{{card(0, {job(1, 80)}), card(1, {job(2, 60)}), card(2, {job(3, 90)})}};
  EXPECT_EQ(kept(pool, request_of("1")), (List{0, 100, 0}));
}

TEST(Hold, TiesBreakByIndex) {
  const Pool pool{{card(0, {job(1, 80)}), card(1, {job(2, 80)})}};
  EXPECT_EQ(kept(pool, request_of("50G")), (List{50, 0}));
}

TEST(Hold, OfCardsWithRoomThePolicyChooses) {
  const Pool pool{{card(0, {job(1, 10)}), card(1), card(2, {job(2, 80)}), card(3, {job(3, 70)})}};
  EXPECT_EQ(kept(pool, request_of("3x50G"), Policy::kFirstFit), (List{50, 50, 0, 50}));
  const Pool one_missing{{card(0, {job(1, 10)}), card(1)}};
  EXPECT_EQ(kept(one_missing, request_of("50G"), Policy::kFirstFit), (List{50, 0}));
  EXPECT_EQ(kept(one_missing, request_of("50G"), Policy::kSpread), (List{0, 50}));
}

TEST(Hold, WhatIsBeyondTheShareStaysForOthers) {
  const Pool pool{{card(0, {job(1, 10)}), card(1, {job(2, 100)})}};
  const Pool held = hold_for(pool, request_of("2x50G"), Policy::kFirstFit);
  EXPECT_EQ(held.cards[0].grantable(), gib(40));
  EXPECT_EQ(held.cards[1].grantable(), Bytes());
  EXPECT_TRUE(std::holds_alternative<Placement>(place(held, request_of("40G"), Policy::kBestFit)));
}

TEST(Hold, ThoseBehindAreToldWhy) {
  const Pool pool{{card(0, {job(1, 60)})}};
  const Pool held = hold_for(pool, request_of("50G"), Policy::kFirstFit);
  const Decision decision = place(held, request_of("10G"), Policy::kFirstFit);
  ASSERT_TRUE(std::holds_alternative<Wait>(decision));
  const Wait& wait = std::get<Wait>(decision);
  EXPECT_EQ(wait.reason, Reason::kPriority);
  EXPECT_EQ(wire::wait_text(wait),
            "10 GiB on one card; card 0: 0 bytes free of the 10 GiB needed, alice's job 1 (train) "
            "holds 60 GiB, 50 GiB is kept for a job ahead in the queue");
  EXPECT_EQ(wait.holders, (std::vector<JobId>{{1}}));
}

TEST(Hold, AWholeCardIsNotGivenAwayBesideAKeptShare) {
  const Pool held = hold_for({{card(0)}}, request_of("50G"), Policy::kFirstFit);
  EXPECT_TRUE(std::holds_alternative<Wait>(place(held, request_of("1"), Policy::kFirstFit)));
}

TEST(Hold, KeepsNothingThatCannotBeSoon) {
  Pool pool{{card(0, {job(1, 60)}), card(1, {job(2, 60)})}};
  pool.cards[1].lost = true;
  EXPECT_EQ(kept(pool, request_of("50G")), (List{50, 0}));
  EXPECT_EQ(kept(pool, request_of("2x50G")), (List{0, 0}));
  EXPECT_EQ(kept(pool, request_of("50G", {"1"})), (List{0, 0}));
  EXPECT_EQ(kept(pool, request_of("0")), (List{0, 0}));
  EXPECT_EQ(kept(pool, request_of("500G")), (List{0, 0}));
}

TEST(Hold, SeveralInLineKeepSeveralShares) {
  const Pool pool{{card(0, {job(1, 60)}), card(1, {job(2, 70)})}};
  const Pool once = hold_for(pool, request_of("50G"), Policy::kFirstFit);
  EXPECT_EQ(kept(once, request_of("40G")), (List{50, 40}));
}

TEST(Hold, KeepsAllOfACardForOneThatAsksHowMuchIsFree) {
  const Pool pool{{card(0, {job(1, 80)}), card(1, {job(2, 60)})}};
  Request request = request_of("10G");
  request.where = *Query::parse("attribute:gpu.free >= 50G");
  EXPECT_EQ(kept(pool, request), (List{0, 100})) << "what others take of it, it waits for";
  request.where = *Query::parse("attribute:gpu.memory >= 50G");
  EXPECT_EQ(kept(pool, request), (List{10, 0}));
}

}  // namespace
}  // namespace mete::core
