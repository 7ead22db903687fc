// SPDX-License-Identifier: Apache-2.0
// The order of the queue: fair shares, jobs that have waited too long, arrays with a limit, CPUs,
// and the use of the room that is held for the first job. Each test submits jobs to a machine of a
// few cards, does a pass, and compares the jobs that start.
#include "core/order/pass.h"

#include "core/test/state_world.h"

namespace mete::core {
namespace {

class PassTest : public StateWorld {
 protected:
  static JobSpec timed(const std::string& gpu, std::uint64_t time_s,
                       const std::string& user = "alice") {
    JobSpec spec = spec_of(gpu, user);
    spec.time_s = time_s;
    return spec;
  }
  static JobSpec cpu_job(std::optional<unsigned> cpus, const std::string& user = "alice") {
    JobSpec spec = spec_of("0", user);
    spec.request.cpus = cpus;
    return spec;
  }
  WallTime in(std::int64_t seconds) const { return {now_.ms + seconds * 1000}; }
  void with_rules(const Rules& rules) { state_ = State(rules); }
  // A job of the user that ran for this long and has ended.
  void used(const std::string& user, const std::string& gpu, std::int64_t seconds) {
    const JobId id = run(gpu, user);
    later(seconds);
    ended(id);
  }
  PassResult walked() { return state_.look(moment()).result; }
  std::vector<std::string> users_in_order() {
    std::vector<std::string> users;
    for (const JobId id : in_order(state_.pass_input(moment())))
      users.push_back(job(id).spec->user);
    return users;
  }
};

using Users = std::vector<std::string>;

// ---- fair shares -------------------------------------------------------------------------------

TEST_F(PassTest, WhoHadLessGoesFirst) {
  used("alice", "40G", 3600);
  used("bob", "10G", 3600);
  submit("80G", "alice");
  submit("80G", "bob");
  submit("80G", "carol");
  EXPECT_EQ(users_in_order(), (Users{"carol", "bob", "alice"}));
}

TEST_F(PassTest, AmongThoseWhoHadTheSameTheLowerNumberIsFirst) {
  run("80G", "zoe");
  const JobId first = submit("80G", "bob");
  const JobId second = submit("80G", "alice");
  const JobId third = submit("80G", "bob");
  const JobId fourth = submit("80G", "alice");
  EXPECT_EQ(in_order(state_.pass_input(moment())), (Ids{first, second, third, fourth}));
}

TEST_F(PassTest, UsersTakeTurnsWithinOneWalk) {
  machine_ = pool_of({80, 80});
  for (int i = 0; i < 20; ++i) submit("10G", "alice");
  for (int i = 0; i < 20; ++i) submit("10G", "bob");
  grant();
  EXPECT_EQ(state_.held_by("alice").running, 8u);
  EXPECT_EQ(state_.held_by("bob").running, 8u) << "although all of alice's came first";
}

TEST_F(PassTest, WhoHasHadMuchCatchesUpNoFasterThanOthersUseTheCards) {
  machine_ = pool_of({80, 80});
  used("alice", "80G", 2 * 3600);
  for (int i = 0; i < 20; ++i) submit("10G", "alice");
  for (int i = 0; i < 20; ++i) submit("10G", "bob");
  grant();
  EXPECT_EQ(state_.held_by("bob").running, 16u);
}

TEST_F(PassTest, WhatRunsNowCountsToo) {
  run("40G", "alice");
  later(3600);
  submit("80G", "alice");
  submit("80G", "bob");
  EXPECT_EQ(users_in_order(), (Users{"bob", "alice"}));
}

TEST_F(PassTest, WhatWasLongAgoFades) {
  used("alice", "80G", 3600);
  later(4 * 7 * 86'400);
  used("bob", "10G", 3600);
  submit("80G", "alice");
  submit("80G", "bob");
  EXPECT_EQ(users_in_order(), (Users{"alice", "bob"})) << "a sixteenth of eight times as much";
}

TEST_F(PassTest, JobsWithoutACardCostSomethingToo) {
  used("alice", "0", 3600);
  submit("80G", "alice");
  submit("80G", "bob");
  EXPECT_EQ(users_in_order(), (Users{"bob", "alice"}));
}

TEST_F(PassTest, PriorityGoesBeforeFairness) {
  used("alice", "80G", 36'000);
  run("80G", "carol");
  submit("80G", "bob");
  const JobId urgent = submit("80G", "alice");
  ASSERT_TRUE(take(SetPriority{urgent, caller("root"), 1}).ok());
  EXPECT_EQ(users_in_order(), (Users{"alice", "bob"}));
}

// ---- no job waits forever ----------------------------------------------------------------------

TEST_F(PassTest, WhoHasWaitedForTooLongGoesBeforeEverybody) {
  used("alice", "80G", 36'000);
  run("80G", "zoe");
  const JobId old = submit("80G", "alice");
  const JobId old_too = submit("80G", "alice");
  later(86'400);
  const JobId urgent = submit("80G", "bob");
  ASSERT_TRUE(take(SetPriority{urgent, caller("root"), 1000}).ok());
  EXPECT_EQ(in_order(state_.pass_input(moment())), (Ids{old, urgent, old_too}))
      << "one of each user, so that a thousand of them do not stand before all others";
}

TEST_F(PassTest, OfThoseWhoWaitedTooLongTheOldestIsFirst) {
  run("80G", "zoe");
  const JobId bobs = submit("80G", "bob");
  later(10);
  const JobId alices = submit("80G", "alice");
  later(86'390);
  EXPECT_EQ(in_order(state_.pass_input(moment())).front(), bobs);
  later(10);
  used("carol", "0", 0);
  EXPECT_EQ(in_order(state_.pass_input(moment())), (Ids{bobs, alices}));
}

TEST_F(PassTest, OneThatWaitsForItsTimeIsNotStarving) {
  run("80G", "zoe");
  JobSpec spec = spec_of("80G");
  spec.begin = in(2 * 86'400);
  submit(spec);
  const JobId other = submit("80G", "bob");
  later(86'400);
  EXPECT_EQ(in_order(state_.pass_input(moment())), Ids{other});
}

TEST_F(PassTest, HowLongIsTooLongCanBeSet) {
  Rules rules;
  rules.starve_after_s = 60;
  with_rules(rules);
  used("alice", "80G", 3600);
  run("80G", "zoe");
  const JobId alices = submit("80G", "alice");
  const JobId bobs = submit("80G", "bob");
  EXPECT_EQ(in_order(state_.pass_input(moment())), (Ids{bobs, alices}));
  later(60);
  EXPECT_EQ(in_order(state_.pass_input(moment())), (Ids{alices, bobs}));
}

TEST_F(PassTest, TheMomentAtWhichSomebodyHasWaitedTooLongIsAChange) {
  run("80G", "zoe");
  submit("80G", "alice");
  EXPECT_EQ(state_.next_change(now_), in(86'400));
  later(86'400);
  EXPECT_EQ(state_.next_change(now_), std::nullopt);
}

// ---- arrays ------------------------------------------------------------------------------------

TEST_F(PassTest, SoManyOfAnArrayRunAtATime) {
  JobSpec spec = spec_of("1G");
  spec.array = *parse_array("0-9%3");
  const JobId array = submit(spec);
  const JobId other = submit("1G");
  EXPECT_EQ(grant(), (Ids{{1, 0}, {1, 1}, {1, 2}, other})) << "and others pass";
  EXPECT_EQ(wait_of({1, 3}).reason, Reason::kQuota);
  EXPECT_EQ(why({1, 3}), "3 of array 1 run, and at most 3 may at a time");
  started(JobId{1, 1});
  ended(JobId{1, 1});
  EXPECT_EQ(grant(), (Ids{{1, 3}}));
  EXPECT_TRUE(cancel(array).ok());
  EXPECT_EQ(state_of(JobId{1, 9}), JobState::kEnded);
}

TEST_F(PassTest, TheLimitOfAnArrayHoldsNothing) {
  JobSpec spec = spec_of("40G");
  spec.array = *parse_array("0-3%1");
  submit(spec);
  const JobId other = submit("40G");
  EXPECT_EQ(grant(), (Ids{{1, 0}, other})) << "the next of the array could not use that room";
}

TEST_F(PassTest, EachArrayHasItsOwnLimit) {
  JobSpec spec = spec_of("1G");
  spec.array = *parse_array("0-3%1");
  submit(spec);
  submit(spec);
  EXPECT_EQ(grant(), (Ids{{1, 0}, {2, 0}}));
}

TEST_F(PassTest, ARetryOfAnArrayCountsAgain) {
  JobSpec spec = spec_of("1G");
  spec.array = *parse_array("0-1%1");
  spec.retries = 1;
  submit(spec);
  EXPECT_EQ(grant(), (Ids{{1, 0}}));
  started(JobId{1, 0});
  fails(JobId{1, 0});
  EXPECT_EQ(grant(), (Ids{{1, 1}})) << "while the first waits a little";
  later(10);
  EXPECT_EQ(grant(), Ids{});
  started(JobId{1, 1});
  ended(JobId{1, 1});
  EXPECT_EQ(grant(), (Ids{{1, 0}}));
}

// ---- CPUs --------------------------------------------------------------------------------------

TEST_F(PassTest, WithoutALimitCpusAreNotCounted) {
  for (int i = 0; i < 100; ++i) submit(cpu_job(64));
  EXPECT_EQ(grant().size(), 100u);
}

TEST_F(PassTest, SubmittedJobsWithoutACardTakeOneCpuEachUnlessTheySay) {
  Rules rules;
  rules.cpus = 4;
  with_rules(rules);
  const JobId three = submit(cpu_job(3));
  const JobId one = submit(cpu_job({}));
  const JobId another = submit(cpu_job({}));
  const JobId on_card = submit("1G");
  EXPECT_EQ(grant(), (Ids{three, one, on_card})) << "one with a card takes none unless it says so";
  EXPECT_EQ(why(another), "1 of the 4 CPUs for jobs");
  ended(one);
  EXPECT_EQ(grant(), Ids{another});
}

TEST_F(PassTest, ARunIsNotCounted) {
  Rules rules;
  rules.cpus = 1;
  with_rules(rules);
  JobSpec spec = cpu_job(8);
  spec.detached.reset();
  const JobId a = submit(spec);
  const JobId b = submit(spec);
  EXPECT_EQ(grant(), (Ids{a, b}));
}

TEST_F(PassTest, AMachineWithFewerCpusRunsItAlone) {
  Rules rules;
  rules.cpus = 4;
  with_rules(rules);
  const JobId large = submit(cpu_job(64));
  const JobId small = submit(cpu_job(1));
  EXPECT_EQ(grant(), Ids{large});
  ended(large);
  EXPECT_EQ(grant(), Ids{small});
}

TEST_F(PassTest, CpusAreHeldForTheFirstInLine) {
  Rules rules;
  rules.cpus = 4;
  with_rules(rules);
  const JobId runs = submit(cpu_job(2));
  grant();
  const JobId large = submit(cpu_job(4));
  const JobId small = submit(cpu_job(1));
  EXPECT_EQ(grant(), Ids{}) << "a stream of small ones would keep it waiting for ever";
  ended(runs);
  EXPECT_EQ(grant(), Ids{large});
  EXPECT_EQ(state_of(small), JobState::kPending);
}

TEST_F(PassTest, HeldCpusAreForThoseWhoAreBackInTime) {
  Rules rules;
  rules.cpus = 4;
  with_rules(rules);
  JobSpec spec = cpu_job(2);
  spec.time_s = 600;
  submit(spec);
  grant();
  submit(cpu_job(4));
  spec.request.cpus = 1;
  spec.time_s = 601;
  const JobId longer = submit(spec);
  spec.time_s = 600;
  const JobId in_time = submit(spec);
  EXPECT_EQ(grant(), Ids{in_time});
  EXPECT_EQ(state_of(longer), JobState::kPending);
}

// ---- room that is held -------------------------------------------------------------------------

TEST_F(PassTest, AShortJobMayUseTheRoomThatIsHeld) {
  run(timed("60G", 600));
  const JobId large = submit("80G");
  const JobId longer = submit(timed("20G", 601));
  const JobId unknown = submit("20G");
  const JobId in_time = submit(timed("20G", 600));
  EXPECT_EQ(grant(), Ids{in_time});
  const PassResult result = walked();
  EXPECT_EQ(result.held_for, large);
  EXPECT_EQ(result.held_until, in(600 + static_cast<std::int64_t>(state_.rules().grace_s)));
  for (const JobId id : {longer, unknown}) EXPECT_EQ(wait_of(id).reason, Reason::kResources);
  ended(in_time);
  for (const JobId id : {longer, unknown}) EXPECT_EQ(wait_of(id).reason, Reason::kPriority);
}

TEST_F(PassTest, TimePassesForThoseWhoWouldUseIt) {
  run(timed("60G", 600));
  submit("80G");
  later(100);
  const JobId too_late = submit(timed("20G", 501));
  const JobId in_time = submit(timed("20G", 500));
  EXPECT_EQ(grant(), Ids{in_time});
  EXPECT_EQ(state_of(too_late), JobState::kPending);
}

TEST_F(PassTest, WhereNobodyKnowsTheEndNothingIsLent) {
  run("60G");
  submit("80G");
  submit(timed("20G", 1));
  EXPECT_EQ(grant(), Ids{});
  EXPECT_EQ(walked().held_until, std::nullopt);
}

TEST_F(PassTest, WhatWasLearnedIsBelieved) {
  Exit exit = exit_with(0);
  exit.ran_ms = 300'000;
  for (int i = 0; i < 5; ++i) ended(run("1G"), exit);
  run(timed("60G", 600));
  JobSpec large = spec_of("80G");
  large.name = "large";
  submit(large);
  JobSpec unknown = spec_of("20G");
  unknown.name = "never seen";
  submit(unknown);
  const JobId known = submit("20G");
  EXPECT_EQ(grant(), Ids{known});
}

TEST_F(PassTest, WhatStartsInTheSameWalkIsBelievedToEndLikeWhatRuns) {
  Exit exit = exit_with(0);
  exit.ran_ms = 300'000;
  for (int i = 0; i < 5; ++i) ended(run("1G"), exit);
  const JobId known = submit("60G");
  JobSpec large = spec_of("80G");
  large.name = "large";
  submit(large);
  submit(timed("20G", 290));  // with the grace period it ends after `known`
  EXPECT_EQ(grant(), Ids{known});
  EXPECT_EQ(walked().held_until, in(300));
}

TEST_F(PassTest, AJobThatOutlastsWhatWasLearnedLendsNothing) {
  Exit exit = exit_with(0);
  exit.ran_ms = 300'000;
  for (int i = 0; i < 5; ++i) ended(run("1G"), exit);
  run("60G");
  JobSpec large = spec_of("80G");
  large.name = "large";
  submit(large);
  EXPECT_EQ(walked().held_until, in(300));
  later(301);
  EXPECT_EQ(walked().held_until, std::nullopt) << "nobody knows any more";
  submit(timed("20G", 1));
  EXPECT_EQ(grant(), Ids{});
}

TEST_F(PassTest, SeveralMayUseItButNotTheSameBytes) {
  run(timed("40G", 600));
  submit("80G");
  const JobId a = submit(timed("20G", 60));
  const JobId b = submit(timed("20G", 60));
  const JobId c = submit(timed("20G", 60));
  EXPECT_EQ(grant(), (Ids{a, b}));
  EXPECT_EQ(state_of(c), JobState::kPending);
}

TEST_F(PassTest, WhatIsLeftBesideTheHeldRoomIsForAnybody) {
  machine_ = pool_of({80, 80});
  run(timed("20G", 36'000));
  run(timed("80G", 600));
  submit("2x30G");
  const JobId too_much = submit("31G");
  const JobId beside = submit("30G");
  EXPECT_EQ(grant(), Ids{beside});
  EXPECT_EQ(state_of(too_much), JobState::kPending);
}

// Room is held where the first can start soonest, not where the least is missing: otherwise a long
// job takes what would have been free in ten minutes.
TEST_F(PassTest, RoomIsHeldWhereTheFirstCanStartSoonest) {
  machine_ = pool_of({80, 80});
  const JobId hours = run(timed("20G", 36'000));
  const JobId minutes = run(timed("70G", 600));
  const std::uint32_t soon = job(minutes).grant[0].index;
  ASSERT_NE(job(hours).grant[0].index, soon);
  const JobId large = submit("80G");
  const JobId small = submit("10G");
  EXPECT_EQ(walked().held_until, in(630));
  EXPECT_EQ(grant(), Ids{small});
  EXPECT_NE(job(small).grant[0].index, soon) << "although it would just fit there";
  ended(minutes);
  EXPECT_EQ(grant(), Ids{large});
}

TEST_F(PassTest, RoomIsHeldWhereTheLeastIsMissingWhenNobodyKnowsMore) {
  machine_ = pool_of({80, 80});
  const JobId little = run("30G");
  const JobId much = run("60G");
  ASSERT_NE(job(little).grant[0].index, job(much).grant[0].index);
  submit("80G");
  const JobId small = submit("20G");
  EXPECT_EQ(grant(), Ids{small});
  EXPECT_EQ(job(small).grant[0].index, job(much).grant[0].index);
}

TEST_F(PassTest, SeveralCardsAreWaitedForTogether) {
  machine_ = pool_of({80, 80, 80});
  run(timed("80G", 600));
  run(timed("80G", 6000));
  const JobId two = submit("2");
  const JobId longer = submit(timed("80G", 601));
  EXPECT_EQ(grant(), Ids{}) << "the free card and the one that is free first";
  EXPECT_EQ(walked().held_until, in(630));
  const JobId in_time = submit(timed("80G", 600));
  EXPECT_EQ(grant(), Ids{in_time});
  later(630);
  for (const JobId id : {JobId{1}, in_time}) ended(id);
  EXPECT_EQ(grant(), Ids{two});
  EXPECT_EQ(state_of(longer), JobState::kPending);
}

TEST_F(PassTest, WhoWillNotWaitMayUseTheHeldRoomToo) {
  run(timed("60G", 600));
  submit("80G");
  EXPECT_EQ(try_submit(timed("20G", 601), false).error().code, ErrorCode::kExhausted);
  ASSERT_TRUE(try_submit(timed("20G", 600), false).ok());
  EXPECT_EQ(grant(), Ids{JobId{3}});
}

TEST_F(PassTest, OnlyTheFirstHasRoomHeld) {
  machine_ = pool_of({80, 80});
  run(timed("60G", 600));
  run(timed("60G", 600));
  submit("80G");
  submit("80G");
  const JobId small = submit("20G");
  EXPECT_EQ(grant(), Ids{small}) << "on the card that nobody is the first to wait for";
}

}  // namespace
}  // namespace mete::core
