// SPDX-License-Identifier: Apache-2.0
// Jobs with times, on one machine and on a cluster: the same stories where both can tell them.
#include "simulate/timed.h"

#include <gtest/gtest.h>

#include "core/cluster/chance.h"
#include "simulate/asks.h"
#include "simulate/cluster_site.h"
#include "simulate/machine_site.h"
#include "simulate/pool.h"

namespace mete::simulate {
namespace {

enum class Kind { kMachine, kCluster };

TimedJob job(const std::string& gpu, std::int64_t at_s, std::int64_t run_s,
             const std::string& user = "alice") {
  TimedJob job;
  job.name = "train";
  job.user = user;
  job.request.gpu = *core::parse_gpu(gpu);
  job.submitted = {at_s * 1000};
  job.run_ms = run_s * 1000;
  return job;
}

TimedJob limited(TimedJob job, std::uint64_t limit_s) {
  job.limit_s = limit_s;
  return job;
}

class TimedTest : public testing::TestWithParam<Kind> {
 protected:
  // On cards of 16 GiB.
  Timed run(std::uint32_t cards) {
    const std::vector<PoolPart> parts{{cards, "T4", 16 * 1024}};
    if (GetParam() == Kind::kMachine) {
      core::Pool pool;
      add_cards(pool, parts);
      MachineSite site(pool, core::Policy::kBestFit, jobs_);
      return *run_timed(jobs_, site);
    }
    std::vector<core::cluster::Ask> asks;
    for (const TimedJob& each : jobs_) asks.push_back(*ask_of(each.request));
    const auto policy = core::cluster::make_best_fit();
    const auto site = *ClusterSite::make(nodes_of(parts), asks, *policy, MixFrom::kJobs);
    Timed timed = *run_timed(jobs_, *site);
    EXPECT_EQ(site->cluster().idle(), site->cluster().capacity());
    EXPECT_EQ(site->cluster().recount(), "");
    return timed;
  }
  std::vector<std::int64_t> starts(std::uint32_t cards) {
    std::vector<std::int64_t> list;
    for (const Life& life : run(cards).lives)
      list.push_back(life.started ? life.started->ms / 1000 : -1);
    return list;
  }
  std::vector<TimedJob> jobs_;
};

using Starts = std::vector<std::int64_t>;

TEST_P(TimedTest, JobsWaitUntilSomebodyLeaves) {
  jobs_ = {job("1", 0, 100), job("1", 10, 50), job("1", 20, 10)};
  EXPECT_EQ(starts(1), (Starts{0, 100, 150}));
  EXPECT_EQ(starts(2), (Starts{0, 10, 60}));
}

TEST_P(TimedTest, SharesOfACardRunSideBySide) {
  jobs_ = {job("50%", 0, 100), job("50%", 0, 100), job("50%", 0, 100)};
  EXPECT_EQ(starts(1), (Starts{0, 0, 100}));
}

TEST_P(TimedTest, TheHigherPriorityGoesFirst) {
  jobs_ = {job("1", 0, 100), job("1", 1, 10), job("1", 2, 10)};
  jobs_[2].priority = 5;
  EXPECT_EQ(starts(1), (Starts{0, 110, 100}));
}

TEST_P(TimedTest, UsersTakeTurns) {
  jobs_ = {job("1", 0, 100), job("1", 1, 10), job("1", 2, 10), job("1", 3, 10, "bob")};
  EXPECT_EQ(starts(1), (Starts{0, 110, 120, 100}));
}

TEST_P(TimedTest, ShortJobsFillTheGapBeforeTheFirstInLine) {
  // Two cards: one is taken until 1000 (and the grace after a limit), the first in line needs both.
  jobs_ = {limited(job("1", 0, 1000), 1000), limited(job("2", 1, 50), 50),
           limited(job("1", 2, 100), 100), limited(job("1", 3, 2000), 2000)};
  EXPECT_EQ(starts(2), (Starts{0, 1000, 2, 1050}));
}

TEST_P(TimedTest, NobodyPassesTheFirstInLineIfNobodyKnowsWhenItEnds) {
  jobs_ = {job("1", 0, 1000), job("2", 1, 50), job("1", 2, 100)};
  EXPECT_EQ(starts(2), (Starts{0, 1000, 1050}));
}

TEST_P(TimedTest, WhatCanNeverFitIsRefusedAndTold) {
  jobs_ = {job("3", 0, 10), job("1", 0, 10)};
  const Timed timed = run(2);
  EXPECT_FALSE(timed.lives[0].started);
  EXPECT_NE(timed.lives[0].refused, "");
  EXPECT_TRUE(timed.lives[1].started);
}

TEST_P(TimedTest, ALimitEndsAJob) {
  jobs_ = {limited(job("1", 0, 500), 60), job("1", 0, 10)};
  EXPECT_EQ(starts(1), (Starts{0, 60}));
}

TEST_P(TimedTest, SamplesAddUp) {
  jobs_ = {job("1", 0, 100), job("50%", 0, 50), job("1", 0, 100)};
  const Timed timed = run(2);
  const OverTime mean = over_time(timed.samples);
  EXPECT_EQ(mean.span_ms, 150'000);
  // 100 s of a card, 50 s of a half, 100 s of a card, of 300 card seconds.
  EXPECT_NEAR(mean.alloc_pct, 75.0, 0.01);
  EXPECT_NEAR(mean.waiting, 50.0 / 150, 0.001);
  const Waits waits = waits_of(jobs_, timed);
  EXPECT_EQ(waits.jobs, 3u);
  EXPECT_EQ(waits.waited, 1u);
  EXPECT_DOUBLE_EQ(waits.max_s, 50);
}

TEST_P(TimedTest, RandomTracesNeverGrantACardTwiceAndEverybodyRuns) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    core::cluster::Chance chance(seed);
    jobs_.clear();
    for (int i = 0; i < 120; ++i) {
      const char* gpus[] = {"1", "2", "25%", "50%", "6G", "4", "2x30%"};
      TimedJob each =
          job(gpus[chance.below(7)], static_cast<std::int64_t>(chance.below(3000)),
              static_cast<std::int64_t>(chance.below(400)), chance.below(2) == 0 ? "alice" : "bob");
      if (chance.below(2) == 0) each.limit_s = 1 + chance.below(600);
      each.priority = static_cast<std::int32_t>(chance.below(3));
      jobs_.push_back(std::move(each));
    }
    const Timed timed = run(4);
    for (const Life& life : timed.lives) EXPECT_TRUE(life.started);
    for (const Sample& sample : timed.samples) {
      EXPECT_LE(sample.alloc_pct, 100.0001);
      EXPECT_LE(sample.frag_pct + sample.alloc_pct, 100.0001);
      EXPECT_GE(sample.frag_pct, 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sites, TimedTest, testing::Values(Kind::kMachine, Kind::kCluster),
                         [](const auto& each) {
                           return each.param == Kind::kMachine ? "Machine" : "Cluster";
                         });

TEST(Timed, ProgressCanStopIt) {
  std::vector<TimedJob> jobs(1000, job("1", 0, 1));
  core::Pool pool;
  add_cards(pool, {{1, "T4", 16 * 1024}});
  MachineSite site(pool, core::Policy::kBestFit, jobs);
  const Result<Timed> timed =
      run_timed(jobs, site, {}, {{}, {}, [](std::size_t, std::size_t) { return false; }});
  ASSERT_FALSE(timed);
  EXPECT_EQ(timed.error().code, ErrorCode::kBusy);
}

TEST(Timed, DecisionsSayWhereAndWhen) {
  Timed timed;
  timed.lives = {{WallTime{1500}, WallTime{61'500}, "", 3, {0, 2}}, {}};
  EXPECT_EQ(decisions_csv(timed), "0,3,0-2,1.500,61.500\n1,-1,,,\n");
}

}  // namespace
}  // namespace mete::simulate
