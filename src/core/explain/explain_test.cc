// SPDX-License-Identifier: Apache-2.0
// Explanations of jobs that wait on a small machine: cards and their holders, place in the queue,
// changes that would help. Sentences are those of wire/wait_text.h, as users see them. Trials of
// jobs must leave the state as it was.
#include "core/explain/explain.h"

#include <gtest/gtest.h>

#include "core/test/state_world.h"

namespace mete::core {
namespace {

class ExplainTest : public StateWorld {
 protected:
  Explanation why_waits(JobId id) {
    Sight sight = state_.look(moment());
    return explain(state_, moment(), sight, job(id));
  }
  Change change(JobId id, Change::Kind kind) {
    for (Change& each : why_waits(id).changes)
      if (each.kind == kind) return each;
    return {kind, "", ""};
  }
  static JobSpec timed(const std::string& gpu, std::uint64_t seconds,
                       const std::string& user = "alice") {
    JobSpec spec = spec_of(gpu, user);
    spec.time_s = seconds;
    return spec;
  }
};

TEST_F(ExplainTest, SaysWhoHoldsWhatUntilWhenOnEachCard) {
  machine_ = pool_of({80, 80});
  const JobId large = run(timed("60G", 600));
  const JobId whole = run("1", "bob");
  const JobId waits = submit("32G", "carol");
  const Explanation why = why_waits(waits);
  EXPECT_EQ(why.wait->reason, Reason::kResources);
  ASSERT_EQ(why.cards.size(), 2u);
  EXPECT_EQ(why.cards[0].needs, Bytes::from_gib(32));
  EXPECT_EQ(why.cards[0].free, Bytes::from_gib(20));
  EXPECT_EQ(why.cards[0].holders,
            (std::vector<Explanation::CardHolder>{
                {large, "alice", Bytes::from_gib(60), false, WallTime{now_.ms + 630'000}, true}}));
  EXPECT_EQ(why.cards[1].holders.front().id, whole);
  EXPECT_TRUE(why.cards[1].holders.front().whole);
  EXPECT_EQ(wire::card_text(why.cards[1].wait), "held whole by bob's job 2");
}

TEST_F(ExplainTest, AWaitHasUsersAndEndsOfJobsAndNotTheirNames) {
  JobSpec secret = timed("60G", 600);
  secret.name = "secret";
  const JobId large = run(secret);
  const Wait wait = *why_waits(submit("32G", "carol")).wait;
  ASSERT_EQ(wait.room.cards.size(), 1u);
  EXPECT_EQ(wait.room.cards[0].holders,
            (std::vector<Holder>{{large, "alice", "", Bytes::from_gib(60), false, false, false,
                                  WallTime{now_.ms + 630'000}}}));
}

TEST_F(ExplainTest, SaysItsPlaceAndOfHowMany) {
  run("80G");
  submit("10G");
  const JobId second = submit("10G");
  EXPECT_EQ(why_waits(second).place, 2u);
  EXPECT_EQ(why_waits(second).in_line, 2u);
}

TEST_F(ExplainTest, AHeldJobHasNoPlace) {
  JobSpec spec = spec_of("10G");
  spec.held = true;
  const JobId id = submit(spec);
  EXPECT_EQ(why_waits(id).place, std::nullopt);
  EXPECT_EQ(change(id, Change::Kind::kRelease).text, "its hold ended: mete release 1");
}

TEST_F(ExplainTest, TheLargestShareThatWouldStartItIsNamed) {
  run("60G");
  const JobId waits = submit("32G");
  EXPECT_EQ(change(waits, Change::Kind::kGpu).argument, "--gpu 20G");
}

TEST_F(ExplainTest, TheSmallestJobWhoseEndIsEnoughIsNamed) {
  run("30G", "alice");
  const JobId small = run("20G", "bob");
  run("5G", "carol");
  const JobId waits = submit("40G");
  EXPECT_EQ(change(waits, Change::Kind::kJobEnds).jobs, Ids{small});
}

TEST_F(ExplainTest, SeveralJobsAreNamedWhereOneIsNotEnough) {
  const JobId first = run("30G", "alice");
  const JobId second = run("30G", "bob");
  run("5G", "carol");
  const JobId waits = submit("70G");
  EXPECT_EQ(change(waits, Change::Kind::kJobEnds).jobs, (Ids{first, second}));
}

// A job without its meter took 48 GiB more than it was granted.
TEST_F(ExplainTest, WhatAJobHoldsBeyondItsGrantIsNamedAndItsEndHelps) {
  const JobId escaped = run("2G", "alice");
  machine_.cards[0].foreign = {{"job 1 of alice", Bytes::from_gib(48), escaped, "alice"},
                               {"process 412 of bob (python)", Bytes::from_gib(3)}};
  const JobId waits = submit("40G", "carol");
  EXPECT_TRUE(grant().empty());
  const Explanation why = why_waits(waits);
  EXPECT_EQ(wire::wait_text(*why.wait),
            "40 GiB on one card; card 0: 27 GiB free of the 40 GiB needed, job 1 of alice holds "
            "48 GiB beyond its grant, process 412 of bob (python) holds 3 GiB, alice's job 1 holds "
            "2 GiB");
  EXPECT_EQ(why.wait->holders, Ids{escaped});
  EXPECT_EQ(why.cards[0].outside, machine_.cards[0].foreign) << "processes outside mete too";
  EXPECT_EQ(change(waits, Change::Kind::kJobEnds).jobs, Ids{escaped});
}

// The job was granted one card, and holds memory of another too.
TEST_F(ExplainTest, AJobThatHoldsMemoryOfACardThatItWasNotGrantedIsInTheWayThere) {
  machine_ = pool_of({80, 80});
  const JobId escaped = run("1", "alice");
  machine_.cards[1].foreign = {{"job 1 of alice", Bytes::from_gib(50), escaped, "alice"}};
  const JobId waits = submit("1", "bob");
  EXPECT_TRUE(grant().empty());
  EXPECT_EQ(why_waits(waits).wait->holders, Ids{escaped});
  ended(escaped);
  machine_.cards[1].foreign.clear();
  EXPECT_EQ(grant(), Ids{waits});
}

TEST_F(ExplainTest, AJobThatIsBeingParkedIsNotOfferedToBeParked) {
  JobSpec low = spec_of("60G");
  low.preemptible = true;
  const JobId gives_way = run(low);
  later(600);
  JobSpec high = spec_of("60G", "root");
  high.priority = 1;
  const JobId waits = submit(high);
  EXPECT_TRUE(take(ParkJob{gives_way, caller("root"), false}).ok());
  EXPECT_EQ(state_of(gives_way), JobState::kParking);
  EXPECT_EQ(wire::wait_text(*why_waits(waits).wait),
            "room that is being made: job 1 is being parked for it");
  EXPECT_EQ(change(waits, Change::Kind::kPriority).text, "") << "a higher one does not help";
  // Getting the room before the other job helps, and parks no further job.
  const JobId behind = submit("60G", "bob");
  EXPECT_EQ(change(behind, Change::Kind::kPriority).jobs, Ids{});
  EXPECT_EQ(change(behind, Change::Kind::kPriority).text, "instead of 0");
  Submit submit;
  submit.admin = true;
  submit.spec = high;
  submit.spec.priority = 2;
  const Result<Trial> trial = try_out(state_, moment(), submit);
  ASSERT_TRUE(trial.ok());
  EXPECT_TRUE(trial->parked.empty());
}

TEST_F(ExplainTest, ARunningJobIsExplainedByItsStart) {
  const JobId id = run("10G");
  const Explanation why = why_waits(id);
  EXPECT_EQ(why.state, JobState::kRunning);
  EXPECT_FALSE(why.wait);
  EXPECT_EQ(why.started, job(id).started);
}

TEST_F(ExplainTest, AForecastFollowsFromTheLimitOfTheJobInTheWay) {
  run(timed("80G", 600));
  const JobId waits = submit("10G", "bob");
  const std::optional<Forecast> told = why_waits(waits).forecast;
  ASSERT_TRUE(told);
  EXPECT_EQ(told->at, (WallTime{now_.ms + 600'000}));
}

TEST_F(ExplainTest, NothingIsForetoldWhereNothingIsKnown) {
  run("80G");
  EXPECT_EQ(why_waits(submit("10G", "bob")).forecast, std::nullopt);
}

TEST_F(ExplainTest, AJobIsTriedOutAndNothingIsDifferent) {
  machine_ = pool_of({80, 80});
  run(timed("60G", 600));
  const State before = state_;
  Submit submit;
  submit.spec = spec_of("70G", "bob");
  Result<Trial> trial = try_out(state_, moment(), submit);
  ASSERT_TRUE(trial.ok());
  ASSERT_TRUE(trial->grant);
  EXPECT_EQ(trial->grant->front().index, 1u);
  submit.spec = spec_of("2x50G", "bob");
  trial = try_out(state_, moment(), submit);
  ASSERT_TRUE(trial.ok());
  EXPECT_FALSE(trial->grant);
  EXPECT_EQ(trial->why.wait->reason, Reason::kResources);
  EXPECT_EQ(trial->why.forecast->at, (WallTime{now_.ms + 600'000}));
  EXPECT_TRUE(trial->parked.empty());
  submit.wait = false;
  EXPECT_EQ(try_out(state_, moment(), submit).error().code, ErrorCode::kExhausted);
  submit.spec = spec_of("90G", "bob");
  EXPECT_EQ(try_out(state_, moment(), submit).error().code, ErrorCode::kInfeasible);
  EXPECT_EQ(state_, before);
}

TEST_F(ExplainTest, AnArrayIsTriedOutByItsFirstJob) {
  machine_ = pool_of({80, 80});
  const JobId runs = run(timed("60G", 600));
  const State before = state_;
  const std::size_t pending = state_.pending().size();
  const std::optional<WallTime> change = state_.next_change(now_);
  Submit submit;
  submit.spec = spec_of("10G", "carol");
  submit.spec.time_s = 60;
  submit.spec.detached = Detached{};
  submit.spec.array = *parse_array("7-50000,3%2");
  submit.spec.key = "k";
  const Result<Trial> trial = try_out(state_, moment(), submit);
  ASSERT_TRUE(trial.ok()) << trial.error().message;
  EXPECT_TRUE(trial->grant);
  submit.spec.after = {{runs, When::kAny}};
  submit.spec.begin = WallTime{now_.ms + 1000};
  submit.spec.deadline = WallTime{now_.ms + 100'000};
  const Result<Trial> later = try_out(state_, moment(), submit);
  ASSERT_TRUE(later.ok()) << later.error().message;
  EXPECT_EQ(later->why.id, (JobId{before.jobs().rbegin()->first.number + 1, 7}));
  EXPECT_EQ(later->why.wait->reason, Reason::kDependency);
  EXPECT_EQ(state_, before);
  EXPECT_EQ(state_.pending().size(), pending);
  EXPECT_EQ(state_.next_change(now_), change);
  EXPECT_EQ(state_.unfinished_of("carol"), 0u);
  EXPECT_FALSE(state_.find_by_key(submit.spec.uid, "k"));
}

TEST_F(ExplainTest, TriedOutItSaysWhoWouldBeParked) {
  JobSpec spec = spec_of("60G");
  spec.preemptible = true;
  const JobId gives_way = run(spec);
  later(600);
  Submit submit;
  submit.admin = true;
  submit.spec = spec_of("60G", "root");
  submit.spec.priority = 1;
  const Result<Trial> trial = try_out(state_, moment(), submit);
  ASSERT_TRUE(trial.ok());
  EXPECT_FALSE(trial->grant);
  EXPECT_EQ(trial->parked, Ids{gives_way});
  EXPECT_EQ(state_of(gives_way), JobState::kRunning);
}

}  // namespace
}  // namespace mete::core
