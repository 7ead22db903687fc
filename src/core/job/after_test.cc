// SPDX-License-Identifier: Apache-2.0
// --after: which jobs wait for which, and what becomes of jobs whose dependency cannot be met.
// Tests end the jobs of a fake daemon (state_world.h) in all ways, alone, in chains and in arrays,
// some of which it has forgotten, and check which jobs start and which end as `dependency`.
#include "core/test/state_world.h"

namespace mete::core {
namespace {

class AfterTest : public StateWorld {
 protected:
  static JobSpec after(std::vector<After> targets, const std::string& user = "alice") {
    JobSpec spec = spec_of("1G", user);
    spec.after = std::move(targets);
    return spec;
  }
  JobId submit_after(JobId target, When when) { return submit(after({{target, when}})); }
  JobId run_array(const std::string& text) {
    JobSpec spec = spec_of("1G");
    spec.array = *parse_array(text);
    const JobId id = submit(spec);
    for (const JobId each : grant()) started(each);
    return id;
  }
  std::optional<Outcome> outcome(JobId id) { return job(id).outcome; }
};

// ---- one job -----------------------------------------------------------------------------------

TEST_F(AfterTest, WaitsUntilTheOtherHasEndedWell) {
  const JobId first = run("1G");
  const JobId next = submit_after(first, When::kOk);
  EXPECT_EQ(grant(), Ids{});
  EXPECT_EQ(wait_of(next).reason, Reason::kDependency);
  EXPECT_EQ(why(next), "job 1 to end well");
  ended(first);
  EXPECT_TRUE(job(next).unmet.empty());
  EXPECT_EQ(grant(), Ids{next});
}

TEST_F(AfterTest, EndsUnrunWhenTheOtherFails) {
  const JobId first = run("1G");
  const JobId next = submit_after(first, When::kOk);
  fails(first);
  EXPECT_EQ(grant(), Ids{});
  EXPECT_EQ(state_of(next), JobState::kEnded);
  EXPECT_EQ(outcome(next), Outcome::kDependency);
}

TEST_F(AfterTest, AnyEndWillDo) {
  const JobId good = run("1G");
  const JobId bad = run("1G");
  const JobId after_good = submit_after(good, When::kAny);
  const JobId after_bad = submit_after(bad, When::kAny);
  EXPECT_EQ(why(after_bad), "job 2 to end");
  ended(good);
  fails(bad);
  EXPECT_EQ(grant(), (Ids{after_good, after_bad}));
}

TEST_F(AfterTest, AFailureCanBeWaitedFor) {
  const JobId good = run("1G");
  const JobId bad = run("1G");
  const JobId after_good = submit_after(good, When::kFail);
  const JobId after_bad = submit_after(bad, When::kFail);
  EXPECT_EQ(why(after_bad), "job 2 to fail");
  ended(good);
  fails(bad);
  EXPECT_EQ(grant(), Ids{after_bad});
  EXPECT_EQ(outcome(after_good), Outcome::kDependency);
}

TEST_F(AfterTest, WhatWasCancelledOrNeverRanHasNotEndedWell) {
  const JobId waits = run("80G");
  const JobId cancelled = submit("80G");
  const JobId ok = submit_after(cancelled, When::kOk);
  const JobId fail = submit_after(cancelled, When::kFail);
  EXPECT_TRUE(cancel(cancelled).ok());
  settle();
  EXPECT_EQ(outcome(ok), Outcome::kDependency);
  ended(waits);
  EXPECT_EQ(grant(), Ids{fail});
}

TEST_F(AfterTest, AnAttemptThatIsTriedAgainIsNotAnEnd) {
  JobSpec spec = spec_of("1G");
  spec.retries = 1;
  const JobId first = run(spec);
  const JobId next = submit_after(first, When::kOk);
  fails(first);
  settle();
  EXPECT_EQ(state_of(first), JobState::kPending);
  EXPECT_EQ(state_of(next), JobState::kPending);
  later(10);
  EXPECT_EQ(grant(), Ids{first});
  started(first);
  ended(first);
  EXPECT_EQ(grant(), Ids{next});
}

// ---- several jobs ------------------------------------------------------------------------------

TEST_F(AfterTest, AllOfThemMustCome) {
  const JobId a = run("1G");
  const JobId b = run("1G");
  const JobId next = submit(after({{a, When::kOk}, {b, When::kAny}}));
  EXPECT_EQ(why(next), "job 1 to end well, and 1 more");
  ended(a);
  EXPECT_EQ(grant(), Ids{});
  EXPECT_EQ(why(next), "job 2 to end");
  fails(b);
  EXPECT_EQ(grant(), Ids{next});
}

TEST_F(AfterTest, OneInVainIsEnough) {
  const JobId a = run("1G");
  const JobId b = run("1G");
  const JobId next = submit(after({{a, When::kOk}, {b, When::kOk}}));
  fails(a);
  settle();
  EXPECT_EQ(outcome(next), Outcome::kDependency) << "whatever becomes of the other";
}

TEST_F(AfterTest, TheSameJobMayBeNamedTwice) {
  const JobId first = run("1G");
  const JobId both = submit(after({{first, When::kOk}, {first, When::kAny}}));
  const JobId never = submit(after({{first, When::kOk}, {first, When::kFail}}));
  ended(first);
  EXPECT_EQ(grant(), Ids{both});
  EXPECT_EQ(outcome(never), Outcome::kDependency);
}

TEST_F(AfterTest, AChainFallsAsFarAsItHangsTogether) {
  const JobId a = run("1G");
  const JobId b = submit_after(a, When::kOk);
  const JobId c = submit_after(b, When::kOk);
  const JobId d = submit_after(c, When::kOk);
  const JobId any = submit_after(b, When::kAny);
  const JobId fail = submit_after(c, When::kFail);
  const JobId after_fail = submit_after(fail, When::kOk);
  fails(a);
  EXPECT_EQ(grant(), (Ids{any, fail}));
  for (const JobId id : {b, c, d}) EXPECT_EQ(outcome(id), Outcome::kDependency) << id.number;
  EXPECT_EQ(state_of(after_fail), JobState::kPending) << "what it hangs on has just begun";
}

TEST_F(AfterTest, AThousandLongChainFallsAtOnce) {
  const JobId first = run("1G");
  JobId last = first;
  for (int i = 0; i < 1000; ++i) last = submit_after(last, When::kOk);
  fails(first);
  settle();
  EXPECT_EQ(outcome(last), Outcome::kDependency);
  EXPECT_EQ(state_.unfinished(), 0u);
}

// ---- arrays ------------------------------------------------------------------------------------

TEST_F(AfterTest, AnArrayHasEndedWellWhenAllOfItHas) {
  const JobId array = run_array("0-2");
  const JobId next = submit_after(array, When::kOk);
  ended(JobId{array.number, 0});
  ended(JobId{array.number, 2});
  EXPECT_EQ(grant(), Ids{});
  ended(JobId{array.number, 1});
  EXPECT_EQ(grant(), Ids{next});
}

TEST_F(AfterTest, OneFailureOfAnArrayIsEnoughAtOnce) {
  const JobId array = run_array("0-2");
  const JobId ok = submit_after(array, When::kOk);
  const JobId any = submit_after(array, When::kAny);
  const JobId fail = submit_after(array, When::kFail);
  fails(JobId{array.number, 1});
  settle();
  EXPECT_EQ(outcome(ok), Outcome::kDependency) << "the others still run";
  EXPECT_EQ(grant(), Ids{});
  ended(JobId{array.number, 0});
  ended(JobId{array.number, 2});
  EXPECT_EQ(grant(), (Ids{any, fail})) << "these wait for all of it";
}

TEST_F(AfterTest, OneElementCanBeWaitedFor) {
  const JobId array = run_array("0-2");
  const JobId next = submit_after(JobId{array.number, 1}, When::kOk);
  EXPECT_EQ(why(next), "job 1_1 to end well");
  fails(JobId{array.number, 0});
  ended(JobId{array.number, 1});
  EXPECT_EQ(grant(), Ids{next});
}

TEST_F(AfterTest, AnArrayWaitsAsAWhole) {
  const JobId first = run("1G");
  JobSpec spec = after({{first, When::kOk}});
  spec.array = *parse_array("0-1");
  const JobId array = submit(spec);
  EXPECT_EQ(grant(), Ids{});
  ended(first);
  EXPECT_EQ(grant(), (Ids{{array.number, 0}, {array.number, 1}}));
}

TEST_F(AfterTest, AnElementThatRunsAgainIsWaitedForAgain) {
  const JobId array = run_array("0-1");
  fails(JobId{array.number, 0});
  ended(JobId{array.number, 1});
  EXPECT_EQ(try_submit(after({{array, When::kOk}})).error().code, ErrorCode::kInfeasible);
  ASSERT_TRUE(take(Requeue{{array.number, 0}, caller("alice")}).ok());
  const JobId next = submit_after(array, When::kOk);
  EXPECT_EQ(grant(), (Ids{{array.number, 0}}));
  started(JobId{array.number, 0});
  ended(JobId{array.number, 0});
  EXPECT_EQ(grant(), Ids{next}) << "its failure of before was made good";
}

TEST_F(AfterTest, AFailureOfAnArrayIsKnownEvenWhenTheElementIsForgotten) {
  Rules rules;
  rules.ended_kept = 0;
  state_ = State(rules);
  const JobId array = run_array("0-2");
  fails(JobId{array.number, 0});
  fails(JobId{array.number, 1});
  for (int i = 0; i < 200; ++i) ended(run("0"));
  ASSERT_EQ(state_.find(JobId{array.number, 0}), nullptr);
  // The other failed job, which is remembered, runs again and succeeds.
  ASSERT_TRUE(take(Requeue{{array.number, 1}, caller("alice")}).ok());
  EXPECT_EQ(try_submit(after({{array, When::kOk}})).error().code, ErrorCode::kInfeasible);
  const JobId next = submit_after(array, When::kFail);
  EXPECT_EQ(grant(), (Ids{{array.number, 1}}));
  started(JobId{array.number, 1});
  ended(JobId{array.number, 1});
  ended(JobId{array.number, 2});
  EXPECT_EQ(grant(), Ids{next});
}

TEST_F(AfterTest, RequeuedTogetherTheyRunInTheirOrderAgain) {
  const JobId first = run("1G");
  const JobId next = submit_after(first, When::kOk);
  ended(first);
  EXPECT_EQ(grant(), Ids{next});
  started(next);
  ASSERT_TRUE(take(Requeue{first, caller("alice")}).ok());
  // A running job is ended before it is requeued.
  ASSERT_TRUE(take(Requeue{next, caller("alice")}).ok());
  ended(next);
  EXPECT_EQ(state_of(next), JobState::kPending);
  EXPECT_EQ(wait_of(next).reason, Reason::kDependency);
  EXPECT_EQ(grant(), Ids{first});
  started(first);
  ended(first);
  EXPECT_EQ(grant(), Ids{next});
  started(next);
  ended(next);
  // A job that has ended is requeued at once.
  ASSERT_TRUE(take(Requeue{first, caller("alice")}).ok());
  ASSERT_TRUE(take(Requeue{next, caller("alice")}).ok());
  EXPECT_EQ(grant(), Ids{first});
  started(first);
  fails(first);
  settle();
  EXPECT_EQ(job(next).outcome, Outcome::kDependency);
  // The dependency is over: a requeue now runs the job without it.
  ASSERT_TRUE(take(Requeue{next, caller("alice")}).ok());
  EXPECT_EQ(grant(), Ids{next});
}

TEST_F(AfterTest, ARetryDoesNotWaitForWhatRunsAgainMeanwhile) {
  const JobId first = run("1G");
  JobSpec spec = after({{first, When::kAny}});
  spec.retries = 1;
  const JobId next = submit(spec);
  ended(first);
  EXPECT_EQ(grant(), Ids{next});
  started(next);
  ASSERT_TRUE(take(Requeue{first, caller("alice")}).ok());
  EXPECT_EQ(grant(), Ids{first});
  fails(next);
  later(60);
  EXPECT_EQ(grant(), Ids{next});
}

// ---- dependencies that have ended already ------------------------------------------------------

TEST_F(AfterTest, WhatHasEndedAsWishedIsNotWaitedFor) {
  const JobId good = run("1G");
  ended(good);
  const JobId bad = run("1G");
  fails(bad);
  const JobId a = submit_after(good, When::kOk);
  const JobId b = submit_after(good, When::kAny);
  const JobId c = submit_after(bad, When::kFail);
  const JobId d = submit_after(bad, When::kAny);
  EXPECT_EQ(grant(), (Ids{a, b, c, d}));
}

TEST_F(AfterTest, WhatCanNeverBeIsRefused) {
  const JobId good = run("1G");
  ended(good);
  const JobId bad = run("1G");
  fails(bad);
  const Result<JobId> after_bad = try_submit(after({{bad, When::kOk}}));
  ASSERT_FALSE(after_bad.ok());
  EXPECT_EQ(after_bad.error().code, ErrorCode::kInfeasible);
  EXPECT_EQ(after_bad.error().evidence, "job 2 has failed");
  const Result<JobId> after_good = try_submit(after({{good, When::kFail}}));
  ASSERT_FALSE(after_good.ok());
  EXPECT_EQ(after_good.error().evidence, "job 1 has ended well");
}

// ---- jobs of other users -----------------------------------------------------------------------

TEST_F(AfterTest, AnUnknownJobAndAnotherUsersAreTheSame) {
  const JobId others = run("1G", "bob");
  const Result<JobId> unknown = try_submit(after({{JobId{99}, When::kOk}}));
  const Result<JobId> foreign = try_submit(after({{others, When::kOk}}));
  ASSERT_FALSE(unknown.ok());
  ASSERT_FALSE(foreign.ok());
  EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(foreign.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(foreign.error().message, "--after 1: there is no such job");
  EXPECT_EQ(try_submit(after({{{1, 3}, When::kOk}}, "bob")).error().code, ErrorCode::kNotFound)
      << "an element of what is no array";
  EXPECT_TRUE(try_submit(after({{others, When::kOk}}, "root")).ok());
}

TEST_F(AfterTest, ThereIsAMostOfThem) {
  const JobId first = run("1G");
  JobSpec spec = after(std::vector<After>(kMaxAfter, {first, When::kOk}));
  EXPECT_TRUE(try_submit(spec).ok());
  spec.after.push_back({first, When::kOk});
  EXPECT_EQ(try_submit(spec).error().code, ErrorCode::kInvalid);
}

// ---- with hold, cancel and priority ------------------------------------------------------------

TEST_F(AfterTest, AHeldOneWaitsForItsReleaseToo) {
  const JobId first = run("1G");
  JobSpec spec = after({{first, When::kOk}});
  spec.held = true;
  const JobId next = submit(spec);
  ended(first);
  EXPECT_EQ(grant(), Ids{});
  EXPECT_EQ(wait_of(next).reason, Reason::kHeld);
  ASSERT_TRUE(take(Release{next, caller("alice")}).ok());
  EXPECT_EQ(grant(), Ids{next});
}

TEST_F(AfterTest, OneThatWaitsCanBeCancelled) {
  const JobId first = run("1G");
  const JobId next = submit_after(first, When::kOk);
  EXPECT_TRUE(cancel(next).ok());
  ended(first);
  EXPECT_EQ(grant(), Ids{});
  EXPECT_EQ(outcome(next), Outcome::kCancelled);
}

TEST_F(AfterTest, WhoIsLostStaysLostWhateverIsChangedAboutIt) {
  const JobId first = run("1G");
  const JobId by_priority = submit_after(first, When::kOk);
  const JobId by_hold = submit_after(first, When::kOk);
  fails(first);
  ASSERT_TRUE(take(SetPriority{by_priority, caller("alice"), -5}).ok());
  ASSERT_TRUE(take(Hold{by_hold, caller("alice")}).ok());
  settle();
  EXPECT_EQ(outcome(by_priority), Outcome::kDependency);
  EXPECT_EQ(outcome(by_hold), Outcome::kDependency);
}

TEST_F(AfterTest, WhoIsLostIsLostAfterARestartToo) {
  const JobId array = run_array("0-1");
  const JobId next = submit_after(array, When::kOk);
  const JobId last = submit_after(next, When::kAny);
  fails(JobId{array.number, 0});
  state_ = State::from_parts(state_.parts());
  EXPECT_EQ(grant(), Ids{last});
  EXPECT_EQ(outcome(next), Outcome::kDependency);
}

TEST_F(AfterTest, WhoWillNotWaitMayNotComeAfterAnybody) {
  const JobId first = run("1G");
  EXPECT_EQ(try_submit(after({{first, When::kOk}}), false).error().code, ErrorCode::kExhausted);
}

}  // namespace
}  // namespace mete::core
