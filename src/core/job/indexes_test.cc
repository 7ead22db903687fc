// SPDX-License-Identifier: Apache-2.0
// The indexes of State, each alone: users, history, dependencies, deadlines, administration. Jobs
// are made by hand, enter and leave an index, and its answers are compared with counts that each
// test knows. State as a whole is tested in state_test.cc.
#include <gtest/gtest.h>

#include "core/job/administration.h"
#include "core/job/deadlines.h"
#include "core/job/dependencies.h"
#include "core/job/history.h"
#include "core/job/users.h"

namespace mete::core {
namespace {

Job a_job(JobId id, JobState state = JobState::kPending, const std::string& user = "alice") {
  JobSpec spec;
  spec.user = user;
  Job job;
  job.id = id;
  job.spec = spec;
  job.state = state;
  return job;
}

Job ended_job(JobId id, Outcome outcome = Outcome::kOk, const std::string& user = "alice") {
  Job job = a_job(id, JobState::kEnded, user);
  job.outcome = outcome;
  job.exit.emplace().log_bytes = Bytes::from_bytes(100);
  return job;
}

// ---- users -------------------------------------------------------------------------------------

TEST(Users, AUserWithoutJobsHasNothing) {
  const Users users;
  EXPECT_EQ(users.of("alice").unfinished, 0u);
  EXPECT_EQ(users.of("alice").disk, Bytes());
  EXPECT_EQ(users.of("alice").known.bytes(), 0u);
}

TEST(Users, CountsUnfinishedJobsAndTheLogsOfEndedOnes) {
  Users users;
  users.enter(a_job({1}));
  users.enter(a_job({2}, JobState::kRunning));
  users.enter(ended_job({3}));
  users.enter(ended_job({4}));
  users.enter(a_job({5}, JobState::kPending, "bob"));
  EXPECT_EQ(users.of("alice").unfinished, 2u);
  EXPECT_EQ(users.of("alice").disk, Bytes::from_bytes(200));
  EXPECT_EQ(users.of("bob").unfinished, 1u);
  users.leave(a_job({2}, JobState::kRunning));
  users.leave(ended_job({3}));
  EXPECT_EQ(users.of("alice").unfinished, 1u);
  EXPECT_EQ(users.of("alice").disk, Bytes::from_bytes(100));
}

TEST(Users, BytesAreOpenUntilTheEndAndKnownUntilTheJobIsForgotten) {
  Users users;
  const UserBooks& alice = (users.hold(a_job({1})), users.of("alice"));
  const std::uint64_t one = alice.known.bytes();
  EXPECT_GE(one, kJobBytes);
  EXPECT_EQ(alice.open.bytes(), one);
  users.close(ended_job({1}));
  EXPECT_EQ(alice.known.bytes(), one);
  EXPECT_EQ(alice.open.bytes(), 0u);
  users.reopen(ended_job({1}));
  EXPECT_EQ(alice.open.bytes(), one);
  users.close(ended_job({1}));
  users.drop(ended_job({1}));
  EXPECT_EQ(alice.known.bytes(), 0u);
  users.hold(ended_job({2}));
  EXPECT_EQ(alice.known.bytes(), one) << "an ended job out of a snapshot";
  EXPECT_EQ(alice.open.bytes(), 0u);
}

// ---- history -----------------------------------------------------------------------------------

class HistoryTest : public testing::Test {
 protected:
  void submit(JobId id) {
    jobs_.emplace(id, a_job(id));
    if (id.element) history_.open(id);
  }
  void end(JobId id, Outcome outcome = Outcome::kOk, const std::string& user = "alice") {
    history_.enter(jobs_[id] = ended_job(id, outcome, user));
    if (id.element) (void)history_.close(jobs_.at(id));
  }
  std::vector<JobId> forget(std::size_t most, const std::string& user = "alice") {
    std::vector<JobId> forgotten;
    history_.forget_oldest(
        user, jobs_, [&] { return forgotten.size() == most; },
        [&](const Job& job) {
          forgotten.push_back(job.id);
          jobs_.erase(job.id);
        });
    return forgotten;
  }

  History history_;
  History::Jobs jobs_;
};

TEST_F(HistoryTest, ForgetsTheOldestJobsOfOneUser) {
  end({3});
  end({1});
  end({2}, Outcome::kOk, "bob");
  end({4});
  EXPECT_EQ(forget(2), (std::vector<JobId>{{3}, {1}})) << "in the order in which they ended";
  EXPECT_EQ(history_.ended(), (std::vector<JobId>{{2}, {4}}));
  EXPECT_EQ(history_.take_forgotten().size(), 2u);
  EXPECT_TRUE(history_.take_forgotten().empty()) << "told once";
  EXPECT_TRUE(history_.has_ended_jobs("bob"));
  EXPECT_FALSE(history_.has_ended_jobs("carol"));
}

TEST_F(HistoryTest, ForgetsInBatches) {
  for (std::uint64_t number = 1; number <= 109; ++number) end({number});
  EXPECT_EQ(history_.too_many("alice", 10), 0u);
  end({110});
  EXPECT_EQ(history_.too_many("alice", 10), 100u);
  EXPECT_EQ(history_.too_many("alice", 110), 0u);
}

TEST_F(HistoryTest, AnArrayKeepsOneFailureAsLongAsOneOfItsJobsIsKnown) {
  for (const std::uint32_t element : {1u, 2u, 3u}) submit({7, element});
  end({7, 1}, Outcome::kFailed);
  end({7, 2}, Outcome::kFailed);
  const Ends* array = history_.array(7);
  ASSERT_NE(array, nullptr);
  EXPECT_EQ(array->open, 1u);
  EXPECT_EQ(array->failed, 2u);
  EXPECT_EQ(forget(9), (std::vector<JobId>{{7, 1}})) << "the other one stays for the array";
  EXPECT_EQ(history_.array(7)->failed, 2u) << "forgotten ones count too";
  end({7, 3});
  EXPECT_EQ(forget(9), (std::vector<JobId>{{7, 3}}));
  EXPECT_EQ(forget(9), (std::vector<JobId>{{7, 2}})) << "nothing else is left of the array";
  EXPECT_EQ(history_.array(7), nullptr);
}

TEST_F(HistoryTest, AJobThatRunsAgainIsNoFailureOfItsArray) {
  for (const std::uint32_t element : {1u, 2u}) submit({7, element});
  end({7, 1}, Outcome::kFailed);
  history_.leave(jobs_.at({7, 1}));
  history_.reopen(jobs_.at({7, 1}));
  EXPECT_TRUE(history_.ended().empty());
  EXPECT_EQ(history_.array(7)->open, 2u);
  EXPECT_EQ(history_.array(7)->failed, 0u);
  EXPECT_EQ(history_.array(7)->known_failed, 0u);
}

TEST_F(HistoryTest, WhatRunsAgainLaterInTheLogIsNotForgottenBefore) {
  end({1});
  end({2});
  history_.remember_until_requeued({1});
  EXPECT_EQ(forget(9), (std::vector<JobId>{{2}}));
  history_.requeued({1});
  EXPECT_EQ(forget(9), (std::vector<JobId>{{1}}));
}

// ---- dependencies ------------------------------------------------------------------------------

TEST(Dependencies, KnowsWhichJobsWaitForWhich) {
  Dependencies dependencies;
  Job both = a_job({3});
  both.unmet = {{{1}, When::kOk}, {{2}, When::kAny}};
  Job one = a_job({4});
  one.unmet = {{{1}, When::kFail}};
  dependencies.enter(both);
  dependencies.enter(one);
  EXPECT_EQ(dependencies.on({1}), (std::set<JobId>{{3}, {4}}));
  EXPECT_EQ(dependencies.on({2}), (std::set<JobId>{{3}}));
  EXPECT_TRUE(dependencies.on({5}).empty());
  dependencies.leave(both);
  EXPECT_EQ(dependencies.on({1}), (std::set<JobId>{{4}}));
  EXPECT_TRUE(dependencies.on({2}).empty());
}

TEST(Dependencies, AJobThatLeavesIsNoLongerDoomed) {
  Dependencies dependencies;
  Job job = a_job({3});
  job.unmet = {{{1}, When::kOk}};
  dependencies.enter(job);
  dependencies.doom({3});
  EXPECT_TRUE(dependencies.is_doomed({3}));
  dependencies.leave(job);
  EXPECT_TRUE(dependencies.doomed().empty());
}

// ---- deadlines ---------------------------------------------------------------------------------

TEST(Deadlines, APendingJobStartsInTimeForItsLimitAndAnActiveOneEndsByTheDeadline) {
  Deadlines deadlines;
  JobSpec spec;
  spec.deadline = WallTime{100'000};
  spec.time_s = 30;
  Job job = a_job({1});
  job.spec = spec;
  deadlines.enter(job);
  EXPECT_EQ(deadlines.start_by(), (std::set<Deadlines::Entry>{{70'000, {1}}}));
  EXPECT_TRUE(deadlines.end_by().empty());
  deadlines.leave(job);
  job.state = JobState::kRunning;
  deadlines.enter(job);
  EXPECT_TRUE(deadlines.start_by().empty());
  EXPECT_EQ(deadlines.end_by(), (std::set<Deadlines::Entry>{{100'000, {1}}}));
  deadlines.leave(job);
  job.state = JobState::kEnded;
  deadlines.enter(job);
  deadlines.enter(a_job({2}));
  EXPECT_TRUE(deadlines.start_by().empty());
  EXPECT_TRUE(deadlines.end_by().empty());
}

// ---- administration ----------------------------------------------------------------------------

TEST(Administration, HoldsWhatWasSetLast) {
  Administration admin;
  Quota quota;
  quota.cards = 2;
  admin.apply(CardDrained{"GPU-0", "root"});
  admin.apply(QuotaSet{"alice", quota});
  EXPECT_EQ(admin.drained().at("GPU-0"), "root");
  EXPECT_EQ(admin.quotas().at("alice"), quota);
  admin.apply(CardUndrained{"GPU-0"});
  admin.apply(QuotaSet{"alice", {}});
  EXPECT_TRUE(admin.drained().empty());
  EXPECT_TRUE(admin.quotas().empty()) << "a quota without a limit is none";
}

TEST(Administration, ANumberIsNotUsedAgain) {
  Administration admin;
  Reservation reservation;
  reservation.id = 1;
  admin.apply(Reserved{reservation});
  admin.apply(Unreserved{1});
  EXPECT_TRUE(admin.reservations().empty());
  EXPECT_EQ(admin.last_reservation(), 1u);
  EXPECT_DEATH(admin.apply(Reserved{reservation}), "impossible");
}

TEST(Administration, ComesBackOutOfASnapshot) {
  Reservation reservation;
  reservation.id = 4;
  Administration admin;
  admin.restore({{"GPU-1", "root"}}, {}, {reservation}, 6);
  EXPECT_TRUE(admin.drained().contains("GPU-1"));
  EXPECT_EQ(admin.reservations().size(), 1u);
  EXPECT_EQ(admin.last_reservation(), 6u);
}

}  // namespace
}  // namespace mete::core
