// SPDX-License-Identifier: Apache-2.0
#include "core/order/fair_share.h"

#include <gtest/gtest.h>

namespace mete::core {
namespace {

constexpr std::int64_t kHour = 3'600'000;
constexpr std::int64_t kWeek = 7 * 24 * kHour;
constexpr WallTime kThen{1'800'000'000'000};

WallTime after(std::int64_t ms) { return {kThen.ms + ms}; }

TEST(FairShare, NobodyHasHadAnything) {
  const FairShare fair;
  EXPECT_EQ(fair.usage("alice", kThen), 0u);
}

TEST(FairShare, WhatWasUsedAddsUpForEachUser) {
  FairShare fair;
  fair.charge("alice", 100, kThen);
  fair.charge("alice", 50, after(1000));
  fair.charge("bob", 7, after(2000));
  EXPECT_EQ(fair.usage("alice", after(3000)), 150u);
  EXPECT_EQ(fair.usage("bob", after(3000)), 7u);
}

TEST(FairShare, HalfIsForgottenInAHalfLife) {
  FairShare fair;
  fair.charge("alice", 1'000'000, kThen);
  EXPECT_EQ(fair.usage("alice", after(kHour - 1)), 1'000'000u) << "in steps of an hour";
  EXPECT_LT(fair.usage("alice", after(kHour)), 1'000'000u);
  EXPECT_EQ(fair.usage("alice", after(kWeek)), 500'000u);
  EXPECT_EQ(fair.usage("alice", after(2 * kWeek)), 250'000u);
  EXPECT_NEAR(static_cast<double>(fair.usage("alice", after(kWeek / 2))), 707'107, 200);
  EXPECT_EQ(fair.usage("alice", after(100 * kWeek)), 0u);
}

TEST(FairShare, ItFadesAllTheWhile) {
  FairShare fair;
  fair.charge("alice", 1'000'000'000, kThen);
  std::uint64_t before = fair.usage("alice", kThen);
  for (int hour = 1; hour < 24 * 30; ++hour) {
    const std::uint64_t now = fair.usage("alice", after(hour * kHour));
    ASSERT_LT(now, before) << hour;
    before = now;
  }
}

// A user who is charged every minute must still see the usage fade.
TEST(FairShare, ManySmallChargesFadeAsOneDoes) {
  FairShare often;
  FairShare once;
  once.charge("alice", 1'000'000'000, kThen);
  often.charge("alice", 1'000'000'000, kThen);
  for (int minute = 1; minute <= 7 * 24 * 60; ++minute)
    often.charge("alice", 0, after(minute * 60'000));
  const std::uint64_t a = often.usage("alice", after(kWeek));
  const std::uint64_t b = once.usage("alice", after(kWeek));
  EXPECT_NEAR(static_cast<double>(a), static_cast<double>(b), static_cast<double>(b) / 1000);
}

TEST(FairShare, TheHalfLifeCanBeAnother) {
  FairShare hour(3600);
  hour.charge("alice", 1024, kThen);
  EXPECT_EQ(hour.usage("alice", after(kHour)), 512u);
  EXPECT_EQ(hour.usage("alice", after(10 * kHour)), 1u);
  FairShare year(366 * 86'400);
  year.charge("alice", 1 << 30, kThen);
  EXPECT_NEAR(static_cast<double>(year.usage("alice", after(183 * 24 * kHour))), (1 << 30) * 0.7071,
              (1 << 30) * 0.001);
}

TEST(FairShare, AClockThatIsSetBackFadesNothing) {
  FairShare fair;
  fair.charge("alice", 1000, kThen);
  EXPECT_EQ(fair.usage("alice", after(-kWeek)), 1000u);
  fair.charge("alice", 1, after(-kWeek));
  EXPECT_EQ(fair.usage("alice", after(-kWeek)), 1001u);
  EXPECT_EQ(fair.usage("alice", after(kWeek)), 500u);
}

TEST(FairShare, ThereIsAMostAndItDoesNotWrap) {
  FairShare fair;
  for (int i = 0; i < 10; ++i) fair.charge("alice", UINT64_MAX, kThen);
  EXPECT_EQ(fair.usage("alice", kThen), std::uint64_t{1} << 62);
  EXPECT_EQ(fair.usage("alice", after(kWeek)), std::uint64_t{1} << 61);
}

TEST(FairShare, EntriesAreAllThereIs) {
  FairShare fair;
  fair.charge("alice", 1000, kThen);
  fair.charge("bob", 5, after(kHour + 5));
  FairShare again;
  again.set(fair.entries());
  EXPECT_EQ(again, fair);
  fair.charge("alice", 7, after(3 * kHour + 1));
  again.charge("alice", 7, after(3 * kHour + 1));
  EXPECT_EQ(again, fair) << "and it goes on from there the same";
}

TEST(FairShare, AJobCostsItsMemoryOrItsCpus) {
  EXPECT_EQ(mib_per_second(Bytes::from_gib(8), 4), 8192u);
  EXPECT_EQ(mib_per_second(Bytes(), 4), 4096u);
}

}  // namespace
}  // namespace mete::core
