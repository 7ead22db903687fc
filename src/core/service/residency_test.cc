// SPDX-License-Identifier: Apache-2.0
#include "core/service/residency.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mete::core::service {
namespace {

constexpr Bytes gib(std::uint64_t n) { return Bytes::from_gib(n); }
using Indexes = std::vector<std::size_t>;

Sleeper one(Rest rest, std::uint64_t gib_needed = 20, std::uint32_t card = 0) {
  Sleeper sleeper;
  sleeper.needs = {{card, gib(gib_needed)}};
  sleeper.rest = rest;
  sleeper.wake_ms = 400;
  return sleeper;
}
Sleeper awake(std::uint64_t gib_needed = 20) { return one(Rest::kAwake, gib_needed); }
Sleeper busy(Moment since, std::uint64_t gib_needed = 20) {
  Sleeper sleeper = one(Rest::kAwake, gib_needed);
  sleeper.in_flight = 1;
  sleeper.awake_since = since;
  return sleeper;
}
Sleeper asked(Moment since, std::uint64_t gib_needed = 20) {
  Sleeper sleeper = one(Rest::kAsleep, gib_needed);
  sleeper.waiting = 1;
  sleeper.waits_since = since;
  return sleeper;
}

class ResidencyTest : public ::testing::Test {
 protected:
  Decision decide() const { return next_swap(sleepers_, free_, now_); }
  std::vector<Sleeper> sleepers_;
  std::vector<Bytes> free_ = {Bytes()};
  Moment now_ = 10'000;
};

TEST_F(ResidencyTest, NothingWakesWithoutARequest) {
  free_ = {gib(100)};
  sleepers_ = {one(Rest::kAsleep), awake()};
  EXPECT_FALSE(decide().wake);
  EXPECT_FALSE(decide().again_ms);
}

TEST_F(ResidencyTest, FreeRoomIsTakenFirst) {
  free_ = {gib(20)};
  sleepers_ = {awake(), asked(9'000)};
  EXPECT_EQ(decide().wake, 1u);
  EXPECT_EQ(decide().sleep, Indexes{});
}

TEST_F(ResidencyTest, AnIdleOneLeavesAtOnceAndABusyOneAfterItsSlice) {
  sleepers_ = {awake(), asked(9'999)};
  sleepers_[0].awake_since = now_;
  EXPECT_EQ(decide().sleep, Indexes{0});
  // 10 times 400 ms.
  sleepers_[0] = busy(now_ - 3'999);
  EXPECT_FALSE(decide().wake);
  EXPECT_EQ(decide().again_ms, now_ + 1);
  sleepers_[0] = busy(now_ - 4'000);
  EXPECT_EQ(decide().wake, 1u);
  EXPECT_EQ(decide().sleep, Indexes{0});
}

TEST_F(ResidencyTest, RequestsThatWaitMakeABusyOneToo) {
  sleepers_ = {awake(), asked(9'000)};
  sleepers_[0].awake_since = now_ - 100;
  sleepers_[0].waiting = 1;
  EXPECT_FALSE(decide().wake);
}

TEST_F(ResidencyTest, ASliceIsTwoSecondsAtLeast) {
  sleepers_ = {busy(now_ - 1'999), asked(9'000)};
  sleepers_[0].wake_ms = 10;
  EXPECT_FALSE(decide().wake);
  now_ += 1;
  EXPECT_TRUE(decide().wake);
}

TEST_F(ResidencyTest, TheOldestRequestIsNext) {
  sleepers_ = {awake(), asked(9'500), asked(9'400), asked(9'600)};
  EXPECT_EQ(decide().wake, 2u);
}

TEST_F(ResidencyTest, PrioritiesComeBeforeAge) {
  now_ = 50'000;
  sleepers_ = {awake(), asked(1'000), asked(49'000)};
  EXPECT_EQ(decide().wake, 1u) << "it has waited for more than 30 s";
  sleepers_[2].priority = 1;
  EXPECT_EQ(decide().wake, 2u);
}

TEST_F(ResidencyTest, AHigherPriorityNeedNotWaitForASlice) {
  sleepers_ = {busy(now_ - 100), asked(9'999)};
  sleepers_[1].priority = 1;
  EXPECT_EQ(decide().sleep, Indexes{0});
  // A busy one of a higher priority stays; an idle one leaves for anyone.
  sleepers_[1].priority = -1;
  now_ = 100'000;
  EXPECT_FALSE(decide().wake);
  sleepers_[0].in_flight = 0;
  EXPECT_EQ(decide().sleep, Indexes{0});
}

TEST_F(ResidencyTest, WhatIsAlwaysResidentStays) {
  sleepers_ = {awake(), asked(9'000)};
  sleepers_[0].always = true;
  EXPECT_FALSE(decide().wake);
}

TEST_F(ResidencyTest, TheCheapestToBeWithoutLeavesFirst) {
  sleepers_ = {awake(), awake(), awake(), asked(9'000)};
  sleepers_[0].per_minute = 9;
  sleepers_[1].per_minute = 2;
  sleepers_[2].per_minute = 4;
  EXPECT_EQ(decide().sleep, Indexes{1});
  sleepers_[1].priority = 1;
  EXPECT_EQ(decide().sleep, Indexes{2}) << "but first those of a lower priority";
  sleepers_[1] = sleepers_[2];
  sleepers_[1].used_at = 5;
  sleepers_[2].used_at = 3;
  EXPECT_EQ(decide().sleep, Indexes{2}) << "the one that was used before the other";
}

TEST_F(ResidencyTest, NoMoreLeaveThanNeeded) {
  // The two small ones are the cheapest, and not enough; with the large one they are not needed.
  sleepers_ = {awake(4), awake(5), awake(20), asked(9'000, 20)};
  sleepers_[2].per_minute = 100;
  EXPECT_EQ(decide().sleep, Indexes{2});
  // 20 are needed, 2 are free: one of the small ones has to help.
  free_ = {gib(2)};
  sleepers_[2] = awake(14);
  sleepers_[2].per_minute = 100;
  EXPECT_EQ(decide().sleep, (Indexes{0, 2}));
}

TEST_F(ResidencyTest, OneThatDoesNotFitYetLetsSmallerOnesPass) {
  sleepers_ = {busy(now_, 30), awake(10), asked(9'000, 40), asked(9'500, 10)};
  EXPECT_EQ(decide().wake, 3u);
  // Until it has waited for 30 s.
  now_ = 39'000;
  sleepers_[0] = busy(now_ - 1, 30);
  EXPECT_FALSE(decide().wake);
  EXPECT_EQ(decide().again_ms, 39'500) << "then the other has waited for too long as well";
}

TEST_F(ResidencyTest, AnswersWhenAWaitBecomesTooLong) {
  sleepers_ = {busy(now_, 30), asked(9'000, 40)};
  sleepers_[0].always = true;
  EXPECT_EQ(decide().again_ms, 39'000);
  now_ = 40'000;
  EXPECT_FALSE(decide().again_ms) << "time alone changes nothing more";
}

TEST_F(ResidencyTest, OneSwapAtATimeOnACard) {
  free_ = {gib(40), gib(20)};
  sleepers_ = {one(Rest::kWaking), asked(9'000), asked(9'500)};
  EXPECT_FALSE(decide().wake);
  sleepers_[2].needs[0].card = 1;
  EXPECT_EQ(decide().wake, 2u);
  sleepers_[0].rest = Rest::kLeaving;
  EXPECT_EQ(decide().wake, 2u);
  sleepers_[0].rest = Rest::kAwake;
  EXPECT_EQ(decide().wake, 1u);
}

TEST_F(ResidencyTest, AReplicaOnTwoCardsNeedsRoomOnBoth) {
  free_ = {gib(20), Bytes()};
  sleepers_ = {one(Rest::kAwake, 20, 1), asked(9'000)};
  sleepers_[1].needs = {{0, gib(20)}, {1, gib(20)}};
  EXPECT_EQ(decide().sleep, Indexes{0});
  sleepers_[0].needs[0].card = 0;
  EXPECT_FALSE(decide().wake) << "no replica can make room on card 1";
  sleepers_[1].needs[1].card = 7;
  EXPECT_FALSE(decide().wake) << "there is no card 7";
}

// All eight waiting, one fits, A is awake: A B A A C A B C costs two swaps.
TEST_F(ResidencyTest, AResidentModelIsServedBeforeASwap) {
  sleepers_ = {awake(), one(Rest::kAsleep), one(Rest::kAsleep)};
  sleepers_[0].awake_since = now_;
  std::vector<std::pair<std::size_t, Moment>> requests;
  const std::string order = "ABAACABC";
  for (std::size_t i = 0; i < order.size(); ++i)
    requests.emplace_back(static_cast<std::size_t>(order[i] - 'A'), static_cast<Moment>(i));
  std::string served;
  int swaps = 0;
  while (!requests.empty()) {
    for (std::size_t m = 0; m < 3; ++m) {
      sleepers_[m].waiting = 0;
      for (auto at = requests.rbegin(); at != requests.rend(); ++at) {
        if (at->first != m) continue;
        ++sleepers_[m].waiting;
        sleepers_[m].waits_since = at->second;
      }
    }
    if (const Decision decision = decide(); decision.wake) {
      ++swaps;
      sleepers_[decision.sleep.at(0)].rest = Rest::kAsleep;
      sleepers_[*decision.wake].rest = Rest::kAwake;
      sleepers_[*decision.wake].awake_since = now_;
      continue;
    }
    // One request of the model that is awake is answered, in a millisecond.
    const auto next = std::find_if(requests.begin(), requests.end(), [&](const auto& request) {
      return sleepers_[request.first].rest == Rest::kAwake;
    });
    ASSERT_NE(next, requests.end());
    served += static_cast<char>('A' + next->first);
    requests.erase(next);
    ++now_;
  }
  EXPECT_EQ(served, "AAAABBCC");
  EXPECT_EQ(swaps, 2);
}

TEST(Demand, HalvesInAMinute) {
  Demand demand;
  EXPECT_EQ(demand.per_minute(0), 0);
  demand.add(1'000);
  demand.add(1'000, 3);
  EXPECT_EQ(demand.per_minute(1'000), 4);
  EXPECT_EQ(demand.per_minute(61'000), 2);
  demand.add(121'000);
  EXPECT_EQ(demand.per_minute(121'000), 2);
  EXPECT_EQ(demand.per_minute(0), 2) << "a clock that went back changes nothing";
}

}  // namespace
}  // namespace mete::core::service
