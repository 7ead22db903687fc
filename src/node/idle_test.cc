// SPDX-License-Identifier: Apache-2.0
// Readings over time in, idle jobs out.
#include "node/idle.h"

#include <gtest/gtest.h>

namespace mete::node {
namespace {

using core::JobId;
using std::chrono::milliseconds;

constexpr std::optional<unsigned> kUntold;

class IdleTest : public testing::Test {
 protected:
  // A reading each quarter of a second, repeated `readings` times.
  void see(const JobLoads& loads, int readings = 1) {
    for (int i = 0; i < readings; ++i) {
      now_ += milliseconds(250);
      idle_.see(now_, WallTime{now_.count() / 1'000'000}, loads);
    }
  }
  std::optional<std::int64_t> since_ms(JobId job) const {
    const auto idle = idle_.since();
    const auto found = idle.find(job);
    return found == idle.end() ? std::nullopt : std::optional(found->second.ms);
  }

  const JobId job_{12};
  const JobId other_{13};
  seam::Nanoseconds now_{};
  Idle idle_;
};

TEST_F(IdleTest, AJobThatDoesNothingIsIdleSinceItsFirstQuietReading) {
  see({{job_, {{40}}}});
  see({{job_, {{0}}}}, 12);
  EXPECT_FALSE(since_ms(job_)) << "not long enough to be sure";
  see({{job_, {{0}}}});
  EXPECT_EQ(since_ms(job_), 500);
  see({{job_, {{0}}}}, 1000);
  EXPECT_EQ(since_ms(job_), 500);
}

TEST_F(IdleTest, TheLeastWorkOfAnyProcessOnAnyCardEndsIt) {
  see({{job_, {{0}, {0}}}}, 20);
  ASSERT_TRUE(since_ms(job_));
  see({{job_, {{0}, {1}}}});
  EXPECT_FALSE(since_ms(job_));
  see({{job_, {{0}, {0}}}}, 13);
  EXPECT_EQ(since_ms(job_), 22 * 250);
}

// NVML samples once a second: three of four readings say nothing about a job that works all the
// time.
TEST_F(IdleTest, AJobThatWorksIsNeverIdleBetweenTwoSamples) {
  for (int i = 0; i < 40; ++i) {
    see({{job_, {{99}}}});
    see({{job_, {{0}}}}, 3);
    ASSERT_FALSE(since_ms(job_));
  }
}

TEST_F(IdleTest, WhatADriverDoesNotSayIsNeverIdle) {
  see({{job_, {kUntold}}}, 100);
  EXPECT_FALSE(since_ms(job_));
  see({{job_, {{0}, kUntold}}}, 100);
  EXPECT_FALSE(since_ms(job_));
}

TEST_F(IdleTest, AJobWithoutAProcessOnACardIsNotIdle) {
  see({{other_, {{0}}}}, 100);
  EXPECT_FALSE(since_ms(job_));
  see({{job_, {}}}, 100);
  EXPECT_FALSE(since_ms(job_));
}

TEST_F(IdleTest, AProcessThatVanishesBetweenTwoReadingsDoesNotMatterToTheOthers) {
  see({{job_, {{0}, {0}}}}, 20);
  see({{job_, {{0}}}});
  EXPECT_EQ(since_ms(job_), 250);
  see({{job_, {kUntold}}}, 2);  // of a card whose work belongs to no listed process
  EXPECT_EQ(since_ms(job_), 250);
  see({{job_, {{0}}}});
  EXPECT_EQ(since_ms(job_), 250);
  see({});  // its last one
  EXPECT_FALSE(since_ms(job_));
  see({{job_, {{0}}}}, 13);
  EXPECT_EQ(since_ms(job_), 26 * 250) << "and begins anew";
}

TEST_F(IdleTest, SeveralSecondsOfNotKnowingEndIt) {
  see({{job_, {{0}}}}, 20);
  see({{job_, {kUntold}}}, 20);
  EXPECT_TRUE(since_ms(job_));
  see({{job_, {kUntold}}});
  EXPECT_FALSE(since_ms(job_));
  see({{job_, {{0}}}});
  EXPECT_FALSE(since_ms(job_));
}

TEST_F(IdleTest, AGapWithoutReadingsBeginsAnew) {
  see({{job_, {{0}}}}, 20);
  now_ += std::chrono::seconds(60);
  see({{job_, {{0}}}});
  EXPECT_FALSE(since_ms(job_)) << "no reading shows what it did meanwhile";
}

TEST_F(IdleTest, TheSameReadingOnceMoreChangesNothing) {
  see({{job_, {{0}}}}, 13);
  ASSERT_TRUE(since_ms(job_));
  idle_.see(now_, WallTime{1}, {{job_, {{70}}}});
  EXPECT_EQ(since_ms(job_), 250);
}

TEST_F(IdleTest, JobsAreSeenEachForItself) {
  see({{job_, {{0}}}, {other_, {{5}}}}, 20);
  EXPECT_TRUE(since_ms(job_));
  EXPECT_FALSE(since_ms(other_));
}

}  // namespace
}  // namespace mete::node
