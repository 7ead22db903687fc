// SPDX-License-Identifier: Apache-2.0
// Requests of users about jobs and cards, and who may make them: hold, release, priority, drain;
// and what time does: --begin, --deadline. Owners, other users and administrators make each
// request, and the clock of the fake daemon (state_world.h) is moved past each time.
#include "core/test/state_world.h"

namespace mete::core {
namespace {

class VerbsTest : public StateWorld {
 protected:
  Result<void> hold(JobId id, const std::string& user = "alice") {
    return take(Hold{id, caller(user)});
  }
  Result<void> release(JobId id, const std::string& user = "alice") {
    return take(Release{id, caller(user)});
  }
  Result<void> set_priority(JobId id, std::int32_t priority, const std::string& user = "alice") {
    return take(SetPriority{id, caller(user), priority});
  }
  Result<void> drain(const std::string& card, bool on = true, const std::string& user = "root") {
    return take(Drain{card, caller(user), on});
  }
  WallTime in(std::int64_t seconds) const { return {now_.ms + seconds * 1000}; }
};

// ---- hold and release --------------------------------------------------------------------------

TEST_F(VerbsTest, AHeldJobWaitsUntilItIsReleased) {
  JobSpec spec = spec_of("10G");
  spec.held = true;
  const JobId id = submit(spec);
  EXPECT_EQ(grant(), Ids{});
  EXPECT_EQ(wait_of(id).reason, Reason::kHeld);
  ASSERT_TRUE(release(id).ok());
  EXPECT_EQ(grant(), Ids{id});
}

TEST_F(VerbsTest, AHeldJobIsInNobodysWay) {
  const JobId runs = run("60G");
  const JobId large = submit("80G");
  const JobId small = submit("20G");
  EXPECT_EQ(grant(), Ids{}) << "the room is held for the large one";
  ASSERT_TRUE(hold(large).ok());
  EXPECT_EQ(grant(), Ids{small});
  ended(runs);
  ASSERT_TRUE(hold(large).ok());
  EXPECT_EQ(happened_, 0u) << "again changes nothing";
  EXPECT_EQ(grant(), Ids{});
}

TEST_F(VerbsTest, ATurnIsNotLostByBeingHeld) {
  const JobId runs = run("80G");
  const JobId first = submit("80G");
  const JobId second = submit("80G");
  ASSERT_TRUE(hold(first).ok());
  ASSERT_TRUE(release(first).ok());
  ended(runs);
  EXPECT_EQ(grant(), Ids{first});
  EXPECT_EQ(state_of(second), JobState::kPending);
}

TEST_F(VerbsTest, OnlyWhatWaitsCanBeHeld) {
  const JobId runs = run("10G");
  const Result<void> running = hold(runs);
  ASSERT_FALSE(running.ok());
  EXPECT_EQ(running.error().message, "job 1 runs already");
  ended(runs);
  EXPECT_EQ(hold(runs).error().message, "job 1 has ended");
  EXPECT_EQ(release(runs).error().message, "job 1 has ended");
  const JobId waits = submit("10G");
  EXPECT_EQ(release(waits).error().message, "job 2 is not held");
  EXPECT_EQ(hold(JobId{99}).error().code, ErrorCode::kNotFound);
}

TEST_F(VerbsTest, OfAnArrayThoseThatWaitAreHeld) {
  JobSpec spec = spec_of("40G");
  spec.array = *parse_array("0-3");
  const JobId array = submit(spec);
  EXPECT_EQ(grant(), (Ids{{1, 0}, {1, 1}}));
  ASSERT_TRUE(hold(array).ok());
  EXPECT_EQ(happened_, 2u);
  EXPECT_TRUE(job({1, 3}).held);
  ASSERT_TRUE(release(JobId{1, 3}).ok());
  started(JobId{1, 0});
  ended(JobId{1, 0});
  EXPECT_EQ(grant(), (Ids{{1, 3}}));
}

TEST_F(VerbsTest, AnotherUsersJobIsNotHeldReleasedOrMoved) {
  run("80G");
  const JobId id = submit("10G");
  for (const Result<void>& done :
       {hold(id, "bob"), release(id, "bob"), set_priority(id, -1, "bob"), cancel(id, "bob")}) {
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().message, "there is no job 2");
  }
  EXPECT_TRUE(hold(id, "root").ok());
  EXPECT_TRUE(release(id, "root").ok());
}

TEST_F(VerbsTest, AnArrayIsCancelledAsAWhole) {
  JobSpec spec = spec_of("40G");
  spec.array = *parse_array("0-3");
  const JobId array = submit(spec);
  grant();
  started(JobId{1, 0});
  ended(JobId{1, 0});
  EXPECT_TRUE(cancel(array).ok());
  EXPECT_EQ(job({1, 0}).outcome, Outcome::kOk);
  EXPECT_EQ(state_of(JobId{1, 1}), JobState::kStopping);
  EXPECT_EQ(job({1, 2}).outcome, Outcome::kCancelled);
  EXPECT_EQ(job({1, 3}).outcome, Outcome::kCancelled);
}

// ---- priority ----------------------------------------------------------------------------------

TEST_F(VerbsTest, AHigherPriorityGoesFirst) {
  const JobId runs = run("80G");
  const JobId first = submit("80G");
  JobSpec spec = spec_of("80G", "root");
  spec.priority = 5;
  const JobId urgent = submit(spec);
  const JobId last = submit("80G");
  ended(runs);
  EXPECT_EQ(grant(), Ids{urgent});
  ASSERT_TRUE(set_priority(first, -1).ok());
  started(urgent);
  ended(urgent);
  EXPECT_EQ(grant(), Ids{last});
  started(last);
  ended(last);
  EXPECT_EQ(grant(), Ids{first});
}

TEST_F(VerbsTest, AbovePriorityZeroIsAnAdministratorsToGive) {
  JobSpec spec = spec_of("10G");
  spec.priority = 1;
  EXPECT_EQ(try_submit(spec).error().code, ErrorCode::kDenied);
  spec.priority = -1;
  const JobId id = submit(spec);
  EXPECT_TRUE(set_priority(id, 0).ok());
  EXPECT_EQ(set_priority(id, 1).error().code, ErrorCode::kDenied);
  EXPECT_TRUE(set_priority(id, 1000, "root").ok());
  EXPECT_EQ(job(id).priority, 1000);
  EXPECT_EQ(job(id).spec->priority, -1) << "what was asked for stays known";
  EXPECT_TRUE(set_priority(id, 0).ok()) << "less is its owner's to choose";
}

TEST_F(VerbsTest, PrioritiesHaveEnds) {
  JobSpec spec = spec_of("10G", "root");
  for (const std::int32_t priority : {1001, -1001, INT32_MAX, INT32_MIN}) {
    spec.priority = priority;
    EXPECT_EQ(try_submit(spec).error().code, ErrorCode::kInvalid) << priority;
  }
  spec.priority = -1000;
  const JobId id = submit(spec);
  EXPECT_EQ(set_priority(id, 1001, "root").error().code, ErrorCode::kInvalid);
  EXPECT_EQ(set_priority(id, INT32_MIN, "root").error().code, ErrorCode::kInvalid);
}

TEST_F(VerbsTest, APriorityIsForWhatIsNotOver) {
  const JobId id = run("10G");
  EXPECT_TRUE(set_priority(id, -3).ok()) << "it may run again";
  EXPECT_TRUE(set_priority(id, -3).ok());
  EXPECT_EQ(happened_, 0u);
  ended(id);
  EXPECT_EQ(set_priority(id, -4).error().message, "job 1 has ended");
}

// ---- drain -------------------------------------------------------------------------------------

TEST_F(VerbsTest, ADrainedCardGetsNothingNew) {
  machine_ = pool_of({80, 80});
  const JobId runs = run("40G");
  ASSERT_EQ(job(runs).grant.front().index, 0u);
  ASSERT_TRUE(drain("0").ok());
  EXPECT_EQ(state_.drained().at("GPU-0"), "root");
  const JobId other = submit("40G");
  EXPECT_EQ(grant(), Ids{other});
  EXPECT_EQ(job(other).grant.front().index, 1u);
  const JobId two = submit("2x1G");
  EXPECT_EQ(grant(), Ids{});
  EXPECT_EQ(wait_of(two).reason, Reason::kDrained);
  EXPECT_EQ(state_of(runs), JobState::kRunning) << "what runs there runs on";
  ASSERT_TRUE(drain("0", false).ok());
  EXPECT_EQ(grant(), Ids{two});
}

TEST_F(VerbsTest, ACardIsNamedByIndexUuidOrItsBeginning) {
  machine_ = pool_of({80, 80, 80});
  machine_.cards[0].card.uuid = "GPU-aaaa1111-0000";
  machine_.cards[1].card.uuid = "GPU-aaaa2222-0000";
  machine_.cards[2].card.uuid = "GPU-bbbb3333-0000";
  for (const char* card : {"2", "GPU-bbbb3333-0000", "GPU-bb", "GPU-bbbb"}) {
    ASSERT_TRUE(drain(card).ok()) << card;
    EXPECT_EQ(state_.drained().count("GPU-bbbb3333-0000"), 1u) << card;
    ASSERT_TRUE(drain(card).ok());
    EXPECT_EQ(happened_, 0u) << "again changes nothing";
    ASSERT_TRUE(drain(card, false).ok());
    EXPECT_TRUE(state_.drained().empty()) << card;
  }
  for (const char* card : {"3", "GPU-", "GPU-a", "GPU-aaaa", "GPU-cccc", "", "-1", "02"})
    EXPECT_EQ(drain(card).error().code, ErrorCode::kNotFound) << card;
}

TEST_F(VerbsTest, DrainingIsForAdministrators) {
  EXPECT_EQ(drain("0", true, "alice").error().code, ErrorCode::kDenied);
  EXPECT_EQ(drain("0", false, "alice").error().code, ErrorCode::kDenied);
  EXPECT_TRUE(state_.drained().empty());
}

// ---- --begin -----------------------------------------------------------------------------------

TEST_F(VerbsTest, AJobDoesNotStartBeforeItsTime) {
  JobSpec spec = spec_of("80G");
  spec.begin = in(3600);
  const JobId id = submit(spec);
  const JobId small = submit("40G");
  EXPECT_EQ(grant(), Ids{small}) << "until then nothing is kept for it";
  EXPECT_EQ(wait_of(id).reason, Reason::kBegin);
  EXPECT_EQ(state_.next_change(now_), spec.begin);
  started(small);
  ended(small);
  later(3599);
  EXPECT_EQ(grant(), Ids{});
  later(1);
  EXPECT_EQ(grant(), Ids{id});
  EXPECT_EQ(state_.next_change(now_), std::nullopt);
}

TEST_F(VerbsTest, ATimeInThePastIsNow) {
  JobSpec spec = spec_of("10G");
  spec.begin = in(-5);
  EXPECT_EQ(grant(), Ids{});
  const JobId id = submit(spec);
  EXPECT_EQ(grant(), Ids{id});
}

// ---- --deadline --------------------------------------------------------------------------------

TEST_F(VerbsTest, AJobThatCanNoLongerBeOverInTimeEndsUnrun) {
  run("80G");
  JobSpec spec = spec_of("80G");
  spec.deadline = in(3600);
  spec.time_s = 600;
  const JobId id = submit(spec);
  EXPECT_EQ(state_.next_change(now_), WallTime{in(3000).ms + 1});
  later(3000);
  EXPECT_EQ(state_of(id), JobState::kPending) << "it could just be";
  now_.ms += 1;
  settle();
  EXPECT_EQ(state_of(id), JobState::kEnded);
  EXPECT_EQ(job(id).outcome, Outcome::kDeadline);
}

TEST_F(VerbsTest, WithoutATimeLimitItMayBeginUntilTheDeadline) {
  run("80G");
  JobSpec spec = spec_of("80G");
  spec.deadline = in(3600);
  const JobId id = submit(spec);
  later(3600);
  EXPECT_EQ(state_of(id), JobState::kPending);
  now_.ms += 1;
  settle();
  EXPECT_EQ(job(id).outcome, Outcome::kDeadline);
}

TEST_F(VerbsTest, ARunningJobIsEndedAtItsDeadline) {
  JobSpec spec = spec_of("80G");
  spec.deadline = in(3600);
  spec.retries = 3;
  spec.requeue = true;
  const JobId id = run(spec);
  EXPECT_EQ(state_.next_change(now_), spec.deadline);
  later(3599);
  EXPECT_EQ(state_of(id), JobState::kRunning);
  later(1);
  EXPECT_EQ(state_of(id), JobState::kStopping);
  EXPECT_EQ(state_.next_change(now_), std::nullopt) << "it is being ended already";
  fails(id);
  EXPECT_EQ(state_of(id), JobState::kEnded) << "nothing is tried again after that";
  EXPECT_EQ(job(id).outcome, Outcome::kDeadline);
}

TEST_F(VerbsTest, AHeldJobHasADeadlineToo) {
  JobSpec spec = spec_of("80G");
  spec.deadline = in(60);
  spec.held = true;
  const JobId held = submit(spec);
  later(61);
  EXPECT_EQ(job(held).outcome, Outcome::kDeadline);
}

TEST_F(VerbsTest, WhatCannotBeOverInTimeIsRefused) {
  JobSpec spec = spec_of("80G");
  spec.deadline = in(-1);
  EXPECT_EQ(try_submit(spec).error().code, ErrorCode::kInvalid);
  spec.deadline = now_;
  EXPECT_EQ(try_submit(spec).error().code, ErrorCode::kInvalid);
  spec.deadline = in(600);
  spec.time_s = 601;
  EXPECT_EQ(try_submit(spec).error().code, ErrorCode::kInfeasible);
  spec.time_s = 600;
  EXPECT_TRUE(try_submit(spec).ok());
  spec.begin = in(1);
  EXPECT_EQ(try_submit(spec).error().code, ErrorCode::kInfeasible) << "it begins later";
}

TEST_F(VerbsTest, ATimeLimitHasAnEnd) {
  JobSpec spec = spec_of("80G");
  for (const std::uint64_t time_s : {kMaxTimeS + 1, std::uint64_t{INT64_MAX}, UINT64_MAX}) {
    spec.time_s = time_s;
    EXPECT_EQ(try_submit(spec).error().code, ErrorCode::kInvalid) << time_s;
  }
  spec.time_s = kMaxTimeS;
  spec.deadline = WallTime{253'402'300'799'000};  // the year 9999
  const JobId id = run(spec);
  EXPECT_EQ(state_.ends_of(job(id), now_).second, true);
}

// A clock that is set back undoes nothing; later events come later.
TEST_F(VerbsTest, AClockThatIsSetBackEndsNothing) {
  JobSpec spec = spec_of("80G");
  spec.deadline = in(3600);
  const JobId id = run(spec);
  later(-7200);
  EXPECT_EQ(state_of(id), JobState::kRunning);
  ended(id);
  EXPECT_EQ(job(id).outcome, Outcome::kOk);
  EXPECT_EQ(state_.fair_share().usage("alice", now_), 0u) << "it did not run for less than nothing";
}

}  // namespace
}  // namespace mete::core
