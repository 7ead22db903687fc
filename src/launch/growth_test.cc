// SPDX-License-Identifier: Apache-2.0
// The runner's side of growth. The job is words of a grant file in memory: a test writes wishes and
// counts asks as a process would, and reads the answers. Checked are the order of asks and answers,
// the bounds of a limit, and that lowering it returns the most that can be used.
#include "launch/growth.h"

#include <gtest/gtest.h>

#include <memory>

#include "abi/account.h"
#include "abi/process.h"

namespace mete::launch {
namespace {

constexpr std::uint32_t kProcess = 500;  // its slot

class GrowthTest : public testing::Test {
 protected:
  GrowthTest() {
    abi::GrantCard cards[2] = {};
    abi::GrantSpec spec;
    spec.cards = cards;
    spec.card_count = 2;
    spec.growing = true;
    for (int card : {0, 1}) {
      cards[card].guarantee_bytes = 8ull << 30;
      cards[card].ceiling_bytes = 20ull << 30;
    }
    EXPECT_TRUE(abi::init_grant(grant_.get(), spec));
    growth_ = std::make_unique<Growth>(*grant_);
  }

  bool take(std::uint32_t card, std::uint64_t gib) {
    return abi::try_take({*grant_, kProcess}, {0, card}, abi::units_for(gib << 30));
  }
  void give_back(std::uint32_t card, std::uint64_t gib) {
    abi::give_back({*grant_, kProcess}, {0, card}, abi::units_for(gib << 30));
  }
  // Asks as a process does. Returns the number of the ask.
  std::uint64_t ask(std::uint32_t card, std::uint64_t gib) {
    abi::raise_to(grant_->header.cards[card].wanted_bytes, gib << 30);
    return grant_->header.cards[card].asks.fetch_add(1) + 1;
  }
  std::uint64_t answered(std::uint32_t card) const {
    return grant_->header.cards[card].answers.load();
  }
  static Growth::Ask wish(std::uint32_t card, std::uint64_t gib) {
    return {card, Bytes::from_gib(gib)};
  }

  std::unique_ptr<abi::Grant> grant_ = std::make_unique<abi::Grant>();
  std::unique_ptr<Growth> growth_;
};

TEST_F(GrowthTest, BeginsAtTheGuaranteeWithNothingAsked) {
  EXPECT_EQ(growth_->allowed(0), Bytes::from_gib(8));
  EXPECT_EQ(growth_->used(0), Bytes());
  EXPECT_FALSE(growth_->asked());
  EXPECT_TRUE(take(0, 8));
  EXPECT_FALSE(take(0, 1));
}

TEST_F(GrowthTest, AnAskIsToldOnceAndAnsweredByMoreRoom) {
  const std::uint64_t number = ask(1, 12);
  EXPECT_EQ(growth_->asked(), wish(1, 12));
  EXPECT_FALSE(growth_->asked());
  EXPECT_LT(answered(1), number);
  EXPECT_EQ(growth_->allow(1, Bytes::from_gib(12)), Bytes::from_gib(12));
  EXPECT_EQ(answered(1), number);
  EXPECT_TRUE(take(1, 12));
  EXPECT_EQ(growth_->used(1), Bytes::from_gib(12));
  EXPECT_EQ(growth_->used(0), Bytes());
}

TEST_F(GrowthTest, ARefusalAnswersAndLeavesTheLimit) {
  const std::uint64_t number = ask(0, 12);
  ASSERT_TRUE(growth_->asked());
  growth_->answer(0);
  EXPECT_EQ(answered(0), number);
  EXPECT_EQ(grant_->header.cards[0].answered_bytes.load(), 12ull << 30);
  EXPECT_EQ(growth_->allowed(0), Bytes::from_gib(8));
}

TEST_F(GrowthTest, OfSeveralAsksTheLargestIsToldAndAllAreAnswered) {
  ask(0, 10);
  ask(0, 14);
  const std::uint64_t last = ask(0, 9);
  EXPECT_EQ(growth_->asked(), wish(0, 14));
  growth_->answer(0);
  EXPECT_EQ(answered(0), last);
  EXPECT_FALSE(growth_->asked());
}

TEST_F(GrowthTest, AnAskThatComesMeanwhileIsToldAfterTheAnswer) {
  const std::uint64_t first = ask(0, 10);
  ASSERT_TRUE(growth_->asked());
  const std::uint64_t second = ask(0, 12);
  EXPECT_FALSE(growth_->asked());
  growth_->allow(0, Bytes::from_gib(10));
  EXPECT_EQ(answered(0), first);
  EXPECT_EQ(growth_->asked(), wish(0, 12));
  growth_->answer(0);
  EXPECT_EQ(answered(0), second);
}

// A process writes its wish, the runner takes it with an earlier ask, and only then the process
// counts its own: it must not wait for an answer that was given already.
TEST_F(GrowthTest, AWishThatWentWithAnAskBeforeIsAnsweredAtOnce) {
  ask(0, 10);
  abi::raise_to(grant_->header.cards[0].wanted_bytes, 11ull << 30);
  EXPECT_EQ(growth_->asked(), wish(0, 11));
  growth_->answer(0);
  const std::uint64_t late = grant_->header.cards[0].asks.fetch_add(1) + 1;
  EXPECT_FALSE(growth_->asked());
  EXPECT_EQ(answered(0), late);
}

TEST_F(GrowthTest, LoweringTellsWhatIsUsedAndAnswersNobody) {
  growth_->allow(0, Bytes::from_gib(16));
  ASSERT_TRUE(take(0, 15));
  const std::uint64_t number = ask(0, 18);
  ASSERT_TRUE(growth_->asked());
  EXPECT_EQ(growth_->allow(0, Bytes::from_gib(9)), Bytes::from_gib(15));
  EXPECT_LT(answered(0), number);
  EXPECT_FALSE(take(0, 1));
  give_back(0, 5);
  EXPECT_EQ(growth_->allowed(0), Bytes::from_gib(10));
  give_back(0, 5);
  EXPECT_EQ(growth_->allowed(0), Bytes::from_gib(9));
}

TEST_F(GrowthTest, StaysBetweenGuaranteeAndCeiling) {
  EXPECT_EQ(growth_->allow(0, Bytes::from_gib(64)), Bytes::from_gib(20));
  EXPECT_EQ(growth_->allow(0, Bytes()), Bytes::from_gib(8));
}

TEST_F(GrowthTest, WhatNvmlSeesBeyondTheChargesIsUsed) {
  ASSERT_TRUE(take(0, 8));
  grant_->accounts[0][0].excess_units = abi::units_for(1ull << 30);
  EXPECT_EQ(growth_->used(0), Bytes::from_gib(9));
  EXPECT_EQ(growth_->allowed(0), Bytes::from_gib(9));
}

TEST_F(GrowthTest, TheJobKnowsWhetherSomebodyAnswers) {
  const std::uint64_t me = abi::owner_of(*grant_, abi::read_self());
  EXPECT_EQ(grant_->header.grower.load(), me);
  growth_.reset();
  EXPECT_EQ(grant_->header.grower.load(), 0u);
  for (const abi::Slot& slot : grant_->slots) EXPECT_NE(slot.owner.load(), me);
}

}  // namespace
}  // namespace mete::launch
