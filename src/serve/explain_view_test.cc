// SPDX-License-Identifier: Apache-2.0
#include "serve/explain_view.h"

#include <gtest/gtest.h>

namespace mete::serve {
namespace {

TEST(ExplainView, SaysAllThatIsKnownAndNothingElse) {
  core::Explanation why;
  why.id = {31};
  why.waiting_s = 720;
  core::Wait wait;
  wait.words = "32 GiB on one card";
  why.wait = wait;
  why.place = 3;
  why.in_line = 7;
  why.forecast = core::Forecast{{1'000}, {2'000}, {3'000}};
  core::Explanation::OnCard on;
  on.uuid = "GPU-a";
  on.type = "H200";
  on.state = core::Explanation::CardState::kDrained;
  on.needs = Bytes::from_gib(32);
  on.holders = {{{12}, "alice", Bytes::from_gib(9), false, WallTime{5'000}, true},
                {{14}, "bob", Bytes::from_gib(8), false, WallTime{6'000}, false},
                {{15}, "bob", Bytes::from_gib(7), false, {}, false}};
  on.wait.why = core::InTheWay::kDrained;
  on.reserved = {{"carol", {0}, {9'000}, Bytes::from_gib(1)}};
  why.cards = {on};
  core::Change ends{core::Change::Kind::kJobEnds, "job 14 of bob ended", ""};
  ends.jobs = {{14}};
  why.changes = {{core::Change::Kind::kGpu, "instead of 32G", "--gpu 20G"}, ends};
  core::PoolCard named;
  named.card.uuid = "GPU-a";
  named.card.name = "NVIDIA H200";

  const wire::ExplainDocument document =
      view_of(why, {4'000}, {{named}}, {{{14}, WallTime{2'000}}});
  EXPECT_EQ(document.at, WallTime{4'000});
  EXPECT_EQ(document.reason, core::Reason::kResources);
  EXPECT_EQ(document.wait, why.wait);
  EXPECT_EQ(document.text, "waits for 32 GiB on one card");
  EXPECT_EQ(document.place, 3u);
  EXPECT_EQ(document.forecast, why.forecast);
  ASSERT_EQ(document.cards.size(), 1u);
  const wire::ExplainDocument::Card& card = document.cards.front();
  EXPECT_EQ(card.name, "NVIDIA H200");
  EXPECT_EQ(card.state, "drained");
  EXPECT_EQ(card.why, "drained");
  EXPECT_EQ(card.text, "drained");
  EXPECT_EQ(card.free, std::nullopt);
  ASSERT_EQ(card.holders.size(), 3u);
  EXPECT_EQ(card.holders[0].by, "limit");
  EXPECT_EQ(card.holders[1].by, "estimate");
  EXPECT_EQ(card.holders[2].by, "");
  EXPECT_EQ(card.holders[0].idle_since, std::nullopt);
  EXPECT_EQ(card.holders[1].idle_since, WallTime{2'000});
  EXPECT_EQ(card.reserved.front().user, "carol");
  ASSERT_EQ(document.changes.size(), 2u);
  EXPECT_EQ(document.changes[0].argument, "--gpu 20G");
  EXPECT_EQ(document.changes[1].kind, "job-ends");
  EXPECT_EQ(document.changes[1].job, core::JobId{14});

  // And back again.
  const Result<wire::ExplainDocument> read = wire::decode_explain(wire::encode(document));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->changes, document.changes);
  EXPECT_EQ(read->cards, document.cards);
}

TEST(ExplainView, ACardThatWasNotReadIsNamedByItsType) {
  core::Explanation why;
  why.cards.emplace_back().type = "H200";
  EXPECT_EQ(view_of(why, {0}, {}, {}).cards.front().name, "H200");
}

}  // namespace
}  // namespace mete::serve
