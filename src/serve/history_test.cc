// SPDX-License-Identifier: Apache-2.0
#include "serve/history.h"

#include <gtest/gtest.h>

namespace mete::serve {
namespace {

using Values = std::vector<std::optional<std::uint32_t>>;
constexpr std::int64_t kWall = 1'800'000'000'000;
const core::JobId kJob{7};

struct HistoryTest : testing::Test {
  // A reading at this time after boot.
  void see(double second, std::optional<unsigned> utilisation, std::optional<std::uint64_t> mib,
           std::uint32_t attempt = 1) {
    const auto ms = static_cast<std::int64_t>(second * 1000);
    std::optional<Bytes> used;
    if (mib) used = Bytes::from_mib(*mib);
    History::JobFigures job{attempt, utilisation, {}, {}};
    if (used) job.used["GPU-0"] = *used;
    history.see(seam::Milliseconds(ms), WallTime{kWall + ms}, {{"GPU-0", {utilisation, used}}},
                {{kJob, job}});
  }
  wire::Past card() const {
    return history.shown([](core::JobId) { return true; }).cards.at("GPU-0");
  }

  History history;
};

TEST_F(HistoryTest, AStepIsTheMeanOfUtilisationAndTheMostOfMemory) {
  see(100, 10, 50);
  see(102, 20, 90);
  see(104, 31, 70);
  EXPECT_TRUE(card().used_mib.empty()) << "nothing is over yet";
  see(105, 99, 10);
  ASSERT_EQ(card().used_mib.size(), 1u) << "no minute is over yet";
  EXPECT_EQ(card().used_mib[0].values, Values{90});
  EXPECT_EQ(card().utilisation_pct[0].values, Values{20});
  EXPECT_EQ(card().used_mib[0].step_s, 5u);
  EXPECT_EQ(card().used_mib[0].last_at.ms, kWall + 105'000);
}

TEST_F(HistoryTest, WhatWasNotReadIsAGapAndNeverZero) {
  see(100, std::nullopt, 50);
  see(121, 0, std::nullopt);  // three steps without a reading
  see(125, 1, 1);
  EXPECT_EQ(card().used_mib[0].values, (Values{50, {}, {}, {}, {}}));
  EXPECT_EQ(card().utilisation_pct[0].values, (Values{{}, {}, {}, {}, 0}));
  see(1e6, 1, 1);  // after a long sleep the whole series is a gap
  EXPECT_EQ(card().used_mib[0].values, Values(wire::kPastSteps));
}

TEST_F(HistoryTest, IsBoundedAndHasALongerPastInLongerSteps) {
  for (int second = 0; second <= 3 * 3600; ++second) see(second, 50, 100);
  const wire::Past past = card();
  ASSERT_EQ(past.used_mib.size(), 2u);
  EXPECT_EQ(past.used_mib[1].step_s, 60u);
  for (const wire::Series& series : past.used_mib)
    EXPECT_EQ(series.values, Values(wire::kPastSteps, 100));
}

TEST_F(HistoryTest, TheSameReadingOnceMoreChangesNothing) {
  see(100, 10, 50);
  see(100, 90, 90);
  see(105, 0, 0);
  EXPECT_EQ(card().utilisation_pct[0].values, Values{10});
}

TEST_F(HistoryTest, AJobThatIsNoLongerToldOfIsForgotten) {
  see(100, 10, 50);
  EXPECT_EQ(history.peak(kJob, 1, "GPU-0"), Bytes::from_mib(50));
  history.see(seam::Milliseconds(100'000), WallTime{kWall}, {}, {});
  EXPECT_EQ(history.peak(kJob, 1, "GPU-0"), std::nullopt);
  EXPECT_TRUE(history.shown([](core::JobId) { return true; }).jobs.empty());
}

TEST_F(HistoryTest, PeaksAreOfOneAttempt) {
  see(100, 10, 50);
  see(101, 10, 20);
  EXPECT_EQ(history.peak(kJob, 1, "GPU-0"), Bytes::from_mib(50));
  EXPECT_EQ(history.peak(kJob, 1, "GPU-1"), std::nullopt);
  see(102, 10, 20, 2);
  EXPECT_EQ(history.peak(kJob, 2, "GPU-0"), Bytes::from_mib(20));
  EXPECT_EQ(history.peak(kJob, 1, "GPU-0"), std::nullopt);
}

TEST_F(HistoryTest, AMeterHasSeenWhatNobodyRead) {
  History::JobFigures job;
  job.used["GPU-0"] = Bytes::from_mib(50);
  job.peaks["GPU-0"] = Bytes::from_mib(70);
  history.see(seam::Milliseconds(100'000), WallTime{kWall}, {}, {{kJob, job}});
  EXPECT_EQ(history.peak(kJob, 1, "GPU-0"), Bytes::from_mib(70));
  // The job holds more than that outside its meter.
  job.used["GPU-0"] = Bytes::from_mib(90);
  history.see(seam::Milliseconds(101'000), WallTime{kWall}, {}, {{kJob, job}});
  EXPECT_EQ(history.peak(kJob, 1, "GPU-0"), Bytes::from_mib(90));
}

TEST_F(HistoryTest, ShowsOnlyWhatMayBeSeen) {
  see(100, 10, 50);
  EXPECT_TRUE(history.shown([](core::JobId) { return false; }).jobs.empty());
  EXPECT_EQ(history.shown([](core::JobId id) { return id == kJob; }).jobs.size(), 1u);
}

TEST(History, KeepsABoundedNumberOfJobs) {
  History history;
  std::map<core::JobId, History::JobFigures> jobs;
  for (std::uint64_t id = 1; id <= 2 * History::kMostJobs; ++id) jobs[core::JobId{id}];
  history.see(seam::Milliseconds(100'000), WallTime{kWall}, {}, jobs);
  EXPECT_EQ(history.shown([](core::JobId) { return true; }).jobs.size(), History::kMostJobs);
}

}  // namespace
}  // namespace mete::serve
