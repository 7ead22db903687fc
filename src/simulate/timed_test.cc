// SPDX-License-Identifier: Apache-2.0
// Jobs with times, on one machine and on a cluster: the same scenarios where both can run them.
// Small lists of jobs with known ends; a test checks the start of each job. Random traces and gangs
// are checked for invariants: no card is granted twice, every job runs, and a gang never runs in
// part.
#include "simulate/timed.h"

#include <gtest/gtest.h>

#include <set>

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

// Through the queue of a cluster, which is as empty afterwards as before.
Timed run_on(const std::vector<core::cluster::NodeSpec>& nodes, const std::vector<TimedJob>& jobs,
             const std::vector<core::cluster::Ask>& asks,
             const std::vector<std::uint32_t>& copies = {}) {
  const auto policy = core::cluster::make_best_fit();
  const auto site = *ClusterSite::make(nodes, asks, *policy, MixFrom::kJobs, copies);
  Timed timed = *run_timed(jobs, *site);
  EXPECT_EQ(site->cluster().idle(), site->cluster().capacity());
  EXPECT_EQ(site->cluster().recount(), "");
  return timed;
}

std::vector<std::int64_t> starts_of(const Timed& timed) {
  std::vector<std::int64_t> list;
  for (const Life& life : timed.lives) list.push_back(life.started ? life.started->ms / 1000 : -1);
  return list;
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
    return run_on(nodes_of(parts), jobs_, asks);
  }
  std::vector<std::int64_t> starts(std::uint32_t cards) { return starts_of(run(cards)); }
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
  // Two cards: one is taken until 1000 (and the grace after a limit), the first job in the queue
  // needs both.
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

// Several copies that start together, on nodes of two cards.
class GangTest : public testing::Test {
 protected:
  void add(std::uint32_t copies, TimedJob each) {
    each.request.procs = copies;  // so that the queue distinguishes them
    jobs_.push_back(std::move(each));
    copies_.push_back(copies);
  }
  Timed run(std::uint32_t nodes) {
    std::vector<core::cluster::Ask> asks;
    for (TimedJob each : jobs_) {
      each.request.procs = 1;
      asks.push_back(*ask_of(each.request));
    }
    std::vector<core::cluster::NodeSpec> list;
    for (std::uint32_t n = 0; n < nodes; ++n)
      list.push_back({"n" + std::to_string(n), 64'000, 1'000'000, 2, "T4", 16 * 1024, {}, {}});
    return run_on(list, jobs_, asks, copies_);
  }
  std::vector<std::int64_t> starts(std::uint32_t nodes) { return starts_of(run(nodes)); }
  std::vector<TimedJob> jobs_;
  std::vector<std::uint32_t> copies_;
};

TEST_F(GangTest, AllOfItStartsTogetherOnAsManyNodesAsItTakes) {
  add(3, job("2", 0, 100));
  const Timed timed = run(3);
  ASSERT_EQ(timed.lives[0].parts.size(), 3u);
  std::set<std::uint32_t> nodes;
  for (const Life::Part& part : timed.lives[0].parts) {
    nodes.insert(part.node);
    EXPECT_EQ(part.cards, (std::vector<std::uint32_t>{0, 1}));
  }
  EXPECT_EQ(nodes.size(), 3u);
}

TEST_F(GangTest, NoneOfItStartsWhereAllOfItDoesNotFit) {
  add(1, job("1", 0, 100));
  add(2, job("2", 0, 10));
  EXPECT_EQ(starts(2), (Starts{0, 100}));
}

TEST_F(GangTest, WhatIsHeldForItIsOnSeveralNodes) {
  // Both nodes have a card free; the gang needs all four until 1000; the short job may fill a gap,
  // the long one would delay the gang on either node.
  add(1, limited(job("2x60%", 0, 1000), 1000));
  add(1, limited(job("1", 0, 500), 500));
  add(2, limited(job("2", 1, 50), 50));
  add(1, limited(job("1", 2, 100), 100));
  add(1, limited(job("1", 3, 2000), 2000));
  EXPECT_EQ(starts(2), (Starts{0, 0, 1000, 2, 1050}));
}

TEST_F(GangTest, AThirdNodeIsForOthersMeanwhile) {
  add(1, limited(job("2", 0, 1000), 1000));
  add(1, limited(job("2", 0, 1000), 1000));
  add(1, limited(job("1", 0, 3000), 3000));
  add(2, limited(job("2", 1, 50), 50));
  add(1, limited(job("1", 2, 5000), 5000));
  EXPECT_EQ(starts(3), (Starts{0, 0, 0, 1000, 2}));
}

TEST_F(GangTest, SharesOfOneGangMayBeOnOneCard) {
  add(4, job("50%", 0, 10));
  EXPECT_EQ(starts(1), (Starts{0}));
}

TEST_F(GangTest, WhatAllNodesTogetherCannotHoldIsRefused) {
  add(5, job("1", 0, 10));
  add(4, job("1", 0, 10));
  const Timed timed = run(2);
  EXPECT_NE(timed.lives[0].refused.find("5 copies"), std::string::npos);
  EXPECT_TRUE(timed.lives[1].started);
}

TEST_F(GangTest, RandomGangsAllRunAndNeverInPart) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    core::cluster::Chance chance(seed);
    jobs_.clear();
    copies_.clear();
    for (int i = 0; i < 120; ++i) {
      const char* gpus[] = {"1", "2", "25%", "50%", "0", "2x30%"};
      TimedJob each = job(gpus[chance.below(6)], static_cast<std::int64_t>(chance.below(3000)),
                          static_cast<std::int64_t>(chance.below(400)));
      if (chance.below(2) == 0) each.limit_s = 1 + chance.below(600);
      add(static_cast<std::uint32_t>(1 + chance.below(4)), std::move(each));
    }
    const Timed timed = run(4);
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      EXPECT_TRUE(timed.lives[i].started);
      EXPECT_EQ(timed.lives[i].parts.size(), copies_[i]);
    }
    for (const Sample& sample : timed.samples) EXPECT_LE(sample.alloc_pct, 100.0001);
  }
}

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
  timed.lives = {{WallTime{1500}, WallTime{61'500}, "", {{3, {0, 2}}}},
                 {},
                 {WallTime{0}, WallTime{1000}, "", {{0, {1}}, {2, {}}}}};
  EXPECT_EQ(decisions_csv(timed),
            "0,3,0-2,1.500,61.500\n1,-1,,,\n2,0,1,0.000,1.000\n2,2,,0.000,1.000\n");
}

}  // namespace
}  // namespace mete::simulate
