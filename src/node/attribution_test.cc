// SPDX-License-Identifier: Apache-2.0
// Which process belongs to which job or claim, on snapshots that a test builds: descent from
// runners, containers, orphans, reused pids, claims of other daemons, memory that no listed process
// holds, and processes that end between two looks. Figures and texts are compared exactly.
#include "node/attribution.h"

#include <gtest/gtest.h>

namespace mete::node {
namespace {

constexpr char kCard[] = "GPU-00000000-0000-0000-0000-000000000001";
const core::JobId kJob{12};

Bytes mib(std::uint64_t count) { return Bytes::from_mib(count); }

// One card; runner 100 (started at 1) of job 12 below a shell 50; a test adds other processes.
class AttributionTest : public testing::Test {
 protected:
  AttributionTest() {
    snapshot_.cards.resize(1);
    snapshot_.cards[0].uuid = kCard;
    snapshot_.cards[0].used = mib(0);
    snapshot_.cards[0].processes.emplace();
    lives(1, 0, "init");
    lives(50, 1, "bash");
    lives(100, 50, "mete");
    jobs_ = {{kJob, core::ProcessRef{100, 1100}, 1000, {{kCard, mib(4096)}}}};
  }
  ProcessFacts& lives(pid_t pid, pid_t parent, const std::string& comm) {
    ProcessFacts facts;
    facts.pid = pid;
    facts.parent = parent;
    facts.start_ticks = 1000 + static_cast<std::uint64_t>(pid);
    facts.uid = 1000;
    facts.user = "alice";
    facts.comm = comm;
    return snapshot_.processes.emplace_back(facts);
  }
  void holds(pid_t pid, std::optional<Bytes> used) {
    snapshot_.cards[0].processes->push_back({pid, used, false});
    *snapshot_.cards[0].used += used.value_or(Bytes{});
  }
  CardUse use() {
    Attribution result = attribute(snapshot_, jobs_, others_, owners_);
    owners_ = result.owners;
    return result.cards.at(0);
  }
  CardSnapshot snapshot_;
  std::vector<JobHold> jobs_;
  std::vector<OtherHold> others_;
  std::map<pid_t, core::JobId> owners_;
};

TEST_F(AttributionTest, DescendantsOfTheRunnerAreTheJob) {
  lives(101, 100, "sh");
  lives(102, 101, "python");
  holds(102, mib(700));
  EXPECT_EQ(use().jobs, (std::map<core::JobId, Bytes>{{kJob, mib(700)}}));
  EXPECT_TRUE(use().outside.empty());
}

TEST_F(AttributionTest, AReusedRunnerPidIsNotTheRunner) {
  jobs_[0].runner->start_ticks = 7;
  lives(101, 100, "python");
  holds(101, mib(700));
  EXPECT_TRUE(use().jobs.empty());
  EXPECT_EQ(use().outside,
            (std::vector<HeldBy>{{"process 101 of alice (python)", mib(700), "alice", 101}}));
}

TEST_F(AttributionTest, WhoEntersAJobsContainerIsOfTheJob) {
  lives(110, 100, "init-of-container");
  lives(900, 1, "exec").namespace_init = 110;
  holds(900, mib(10));
  EXPECT_EQ(use().jobs[kJob], mib(10));
}

TEST_F(AttributionTest, OrphansAreKnownByTheirEnvironment) {
  ProcessFacts& orphan = lives(300, 1, "python");
  orphan.job = "12";
  orphan.token = "100.1100";
  holds(300, mib(10));
  EXPECT_EQ(use().jobs[kJob], mib(10));
  snapshot_.processes.back().token = "100.1101";
  EXPECT_TRUE(use().jobs.empty()) << "job 12 of another daemon";
  snapshot_.processes.back().token = "100.1100";
  snapshot_.processes.back().uid = 1001;
  EXPECT_TRUE(use().jobs.empty()) << "every user can set a variable";
}

TEST_F(AttributionTest, ClaimsOfOthersAreNotForeign) {
  others_ = {{"bob's mete", core::ProcessRef{200, 1200}, kCard}};
  lives(200, 1, "mete");
  lives(201, 200, "python");
  holds(201, mib(900));
  EXPECT_EQ(use().claimed, mib(900));
  EXPECT_TRUE(use().outside.empty());
  others_[0].uuid = "GPU-00000000-0000-0000-0000-000000000002";
  EXPECT_EQ(use().outside_bytes(), mib(900)) << "claimed elsewhere";
}

TEST_F(AttributionTest, WhatIsHeldBeyondAClaimIsForeign) {
  others_ = {{"bob's mete", core::ProcessRef{200, 1200}, kCard, mib(1000)}};
  lives(200, 1, "mete");
  lives(201, 200, "python");
  holds(201, mib(1064));
  EXPECT_TRUE(use().outside.empty()) << "noise";
  holds(201, mib(4000));
  EXPECT_EQ(use().claimed, mib(1000));
  EXPECT_EQ(use().outside, (std::vector<HeldBy>{{"bob's mete beyond its claim", mib(4064)}}));
}

TEST_F(AttributionTest, ForeignProcessesAreGroupedByUser) {
  lives(401, 1, "python");
  lives(402, 1, "jupyter");
  ProcessFacts& other = lives(403, 1, "train");
  other.user = "bob";
  other.uid = 1001;
  ProcessFacts hidden;
  hidden.pid = 404;
  hidden.visible = false;
  snapshot_.processes.push_back(hidden);
  holds(401, mib(100));
  holds(402, mib(50));
  holds(403, mib(900));
  holds(404, mib(5));
  EXPECT_EQ(use().outside,
            (std::vector<HeldBy>{{"process 403 of bob (train)", mib(900), "bob", 403},
                                 {"2 processes of alice", mib(150), "alice"},
                                 {"process 404 of another user", mib(5), "", 404}}));
  EXPECT_EQ(use().foreign.size(), 4u);
}

TEST_F(AttributionTest, WhatNobodyListsIsHeldUnlessItIsNoise) {
  *snapshot_.cards[0].used = mib(64);
  EXPECT_TRUE(use().outside.empty());
  *snapshot_.cards[0].used = mib(65);
  EXPECT_EQ(use().outside,
            (std::vector<HeldBy>{{"processes that the driver does not list", mib(65)}}));
}

TEST_F(AttributionTest, WithoutAListWhatIsNotChargedIsForeign) {
  snapshot_.cards[0].processes.reset();
  *snapshot_.cards[0].used = mib(5000);
  EXPECT_EQ(use().outside, (std::vector<HeldBy>{{"others", mib(904)}}));
  *snapshot_.cards[0].used = mib(4000);
  EXPECT_TRUE(use().outside.empty()) << "less used than charged";
}

TEST_F(AttributionTest, AJobWhoseFigureIsNotToldCountsAsCharged) {
  lives(101, 100, "python");
  holds(101, std::nullopt);
  EXPECT_TRUE(use().silent.contains(kJob)) << "that it holds nothing is not known";
  *snapshot_.cards[0].used = mib(4100);
  EXPECT_TRUE(use().outside.empty());
  *snapshot_.cards[0].used = mib(4096 + 65);
  EXPECT_EQ(use().unlisted, mib(65));
}

TEST_F(AttributionTest, AProcessThatJustEndedIsNotForeign) {
  holds(555, mib(300));
  const CardUse now = use();
  EXPECT_TRUE(now.foreign.empty());
  EXPECT_EQ(now.ending, mib(300));
  EXPECT_EQ(now.outside_bytes(), mib(300)) << "but not free either";
}

TEST_F(AttributionTest, AnEndedProcessOfAJobStaysTheJobsWhileTheJobLives) {
  lives(101, 100, "python");
  holds(101, mib(700));
  EXPECT_EQ(use().jobs[kJob], mib(700));
  snapshot_.processes.pop_back();  // ended after the next reading was taken
  EXPECT_EQ(use().jobs[kJob], mib(700));
  EXPECT_EQ(use().jobs[kJob], mib(700)) << "a forked child keeps its memory";
  jobs_.clear();
  const CardUse after = use();
  EXPECT_TRUE(after.foreign.empty());
  EXPECT_EQ(after.ending, mib(700)) << "being torn down";
}

TEST_F(AttributionTest, ALostCardTellsNothing) {
  holds(555, mib(300));
  snapshot_.cards[0].state = seam::CardState::kLost;
  EXPECT_TRUE(use().outside.empty());
}

TEST_F(AttributionTest, ACircleOfParentsEnds) {
  lives(601, 602, "a");
  lives(602, 601, "b");
  holds(601, mib(1));
  EXPECT_EQ(use().foreign.size(), 1u);
}

}  // namespace
}  // namespace mete::node
