// SPDX-License-Identifier: Apache-2.0
// Parking, coming back, and which job is parked for which. Jobs run on cards with contexts
// (park_world.h); tests play their runners, which park, refuse, report late or not at all.
// Preemption is checked by the steps of a pass: which jobs it parks, for which, and when they come
// back.
#include "core/test/park_world.h"

namespace mete::core {
namespace {

class ParkTest : public ParkWorld {};

// ---- mete park, mete unpark --------------------------------------------------------------------

TEST_F(ParkTest, AParkedJobHoldsWhatStaysOnItsCardAndNoMore) {
  const JobId id = run(preemptible("60G"));
  ASSERT_TRUE(park(id).ok());
  EXPECT_EQ(state_of(id), JobState::kParking);
  EXPECT_EQ(granted_on_first(), Bytes::from_gib(60)) << "until its memory is away";
  away(id);
  EXPECT_EQ(granted_on_first(), kContext);
  const JobId other = submit("70G", "bob");
  EXPECT_EQ(grant(), Ids{other});
}

TEST_F(ParkTest, WhoWasParkedByHandStaysSoUntilSomebodyAsks) {
  const JobId id = run(preemptible("60G"));
  ASSERT_TRUE(park(id).ok());
  away(id);
  EXPECT_TRUE(turn().back.empty());
  ASSERT_TRUE(unpark(id).ok());
  EXPECT_EQ(turn().back, Ids{id});
  EXPECT_EQ(state_of(id), JobState::kUnparking);
  EXPECT_EQ(granted_on_first(), Bytes::from_gib(60)) << "the bytes are granted before it begins";
  back(id);
  EXPECT_EQ(state_of(id), JobState::kRunning);
}

TEST_F(ParkTest, BothMayBeAskedTwice) {
  const JobId id = run(preemptible("60G"));
  ASSERT_TRUE(park(id).ok());
  ASSERT_TRUE(park(id).ok());
  EXPECT_EQ(happened_, 0u);
  away(id);
  ASSERT_TRUE(park(id).ok());
  EXPECT_EQ(happened_, 0u);
  ASSERT_TRUE(unpark(id).ok());
  ASSERT_TRUE(unpark(id).ok());
  EXPECT_EQ(happened_, 0u);
  (void)turn();
  back(id);
  ASSERT_TRUE(unpark(id).ok());
  EXPECT_EQ(happened_, 0u);
}

TEST_F(ParkTest, WhoCannotBeParkedIsToldWhy) {
  const JobId plain = run("10G");
  EXPECT_EQ(park(plain).error().code, ErrorCode::kInvalid);
  EXPECT_NE(park(plain).error().evidence.find("not started to be parkable"), std::string::npos);
  EXPECT_EQ(park(plain, "bob").error().code, ErrorCode::kNotFound) << "not bob's to know";
  const JobId managed = run(preemptible("10G"));
  const JobId waits = submit("80G");
  EXPECT_EQ(park(waits).error().code, ErrorCode::kInvalid);
  refuses(managed, "it has managed memory", true);
  EXPECT_EQ(park(managed).error().evidence, "it has managed memory");
  EXPECT_EQ(park(managed).error().code, ErrorCode::kBusy) << "it runs on, as one that was asked";
  EXPECT_NE(park(managed).error().hint.find("mete park --deep"), std::string::npos);
  refuses(managed, "");
  EXPECT_TRUE(park(managed).ok()) << "it has freed that since";
  ASSERT_TRUE(cancel(managed).ok());
  EXPECT_EQ(park(managed).error().code, ErrorCode::kBusy) << "it is being ended";
  ended(plain);
  EXPECT_EQ(park(plain).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(unpark(plain).error().code, ErrorCode::kInvalid);
}

TEST_F(ParkTest, WhoCouldNotBeParkedRunsOn) {
  const JobId id = run(preemptible("60G"));
  ASSERT_TRUE(park(id).ok());
  refuses(id, "a stream is being captured");
  EXPECT_EQ(state_of(id), JobState::kRunning);
  EXPECT_EQ(job(id).unparkable->why, "a stream is being captured");
  EXPECT_FALSE(job(id).park.has_value());
}

TEST_F(ParkTest, ThatItIsBackIsNoAnswerToTheNextOrder) {
  const JobId id = run(preemptible("60G"));
  ASSERT_TRUE(park(id).ok());
  back(id);  // its daemon had died before it could report
  EXPECT_EQ(state_of(id), JobState::kParking);
}

TEST_F(ParkTest, WhoCouldNotComeBackIsParkedAndTriesAgain) {
  const JobId id = run(preemptible("60G"));
  ASSERT_TRUE(park(id).ok());
  away(id);
  ASSERT_TRUE(unpark(id).ok());
  (void)turn();
  ParkReport report{id, 0, true, {kContext}, Bytes::from_gib(59), "there is no room for it"};
  ASSERT_TRUE(take(report).ok());
  EXPECT_EQ(state_of(id), JobState::kParked);
  EXPECT_EQ(granted_on_first(), kContext);
  EXPECT_TRUE(turn().back.empty()) << "not at once";
  now_ = *state_.next_change(now_);
  EXPECT_EQ(turn().back, Ids{id});
}

TEST_F(ParkTest, AClockThatIsSetBackPostponesNoTry) {
  const JobId id = run(preemptible("60G"));
  ASSERT_TRUE(park(id).ok());
  away(id);
  ASSERT_TRUE(unpark(id).ok());
  (void)turn();
  ParkReport report{id, 0, true, {kContext}, Bytes::from_gib(59), "there is no room for it"};
  ASSERT_TRUE(take(report).ok());
  later(-86'400);
  EXPECT_EQ(turn().back, Ids{id});
}

TEST_F(ParkTest, OnlyWhoWasParkedForDoingNothingWakesByItself) {
  park_the_idle();
  const JobId id = run(preemptible("60G"));
  later(3600);
  idle(id);
  ASSERT_EQ(state_of(id), JobState::kParking);
  away(id);
  const ParkReport wakes{id, 0, true, {kContext}, Bytes(), "", false, true};
  ASSERT_TRUE(park(id).ok()) << "by hand, meanwhile";
  ASSERT_TRUE(take(wakes).ok());
  EXPECT_TRUE(turn().back.empty());
  ASSERT_TRUE(unpark(id).ok());
  (void)turn();
  back(id);
  later(3600);
  idle(id);
  ASSERT_EQ(state_of(id), JobState::kParking);
  away(id);
  ASSERT_TRUE(take(wakes).ok());
  EXPECT_EQ(turn().back, Ids{id});
}

TEST_F(ParkTest, WhatIsReservedForSomebodyNowIsNotTakenBySomeoneWhoComesBack) {
  const JobId id = run(preemptible("60G"));
  ASSERT_TRUE(park(id).ok());
  away(id);
  const WallTime until = reserve_in_a_minute();
  later(60);
  ASSERT_TRUE(unpark(id).ok());
  EXPECT_TRUE(turn().back.empty());
  EXPECT_NE(
      wire::wait_text(*state_.wait_to_return(job(id), moment())).find("carol's reservation 1"),
      std::string::npos);
  while (now_ < until) now_ = *state_.next_change(now_);
  EXPECT_EQ(turn().back, Ids{id}) << "once it is over";
}

TEST_F(ParkTest, WhatIsReservedForLaterIsNotInTheWay) {
  const JobId id = run(preemptible("60G"));
  ASSERT_TRUE(park(id).ok());
  away(id);
  (void)reserve_in_a_minute();
  ASSERT_TRUE(unpark(id).ok());
  EXPECT_EQ(turn().back, Ids{id}) << "as one that runs there is not ended either";
}

TEST_F(ParkTest, AParkedJobThatHasWaitedTooLongIsLookedAtThen) {
  const JobId id = run(preemptible("60G"));
  ASSERT_TRUE(park(id).ok());
  away(id);
  (void)run("70G", "bob");
  ASSERT_TRUE(unpark(id).ok());
  EXPECT_TRUE(turn().back.empty());
  EXPECT_EQ(state_.next_change(now_)->ms, now_.ms + 86'400'000);
}

TEST_F(ParkTest, AParkedJobCanBeCancelledAndItsRoomIsNotTakenBack) {
  const JobId id = run(preemptible("60G"));
  ASSERT_TRUE(park(id).ok());
  away(id);
  ASSERT_EQ(run("70G", "bob").number, 2u);
  ASSERT_TRUE(cancel(id).ok());
  EXPECT_EQ(state_of(id), JobState::kStopping);
  EXPECT_EQ(granted_on_first(), Bytes::from_gib(70) + kContext);
  ended(id);
  EXPECT_EQ(granted_on_first(), Bytes::from_gib(70));
}

TEST_F(ParkTest, TimeStandsStillWhileItIsParked) {
  JobSpec spec = preemptible("60G");
  spec.time_s = 100;
  const JobId id = run(spec);
  later(50);
  const WallTime before = *state_.ends_of(job(id), now_).first;
  ASSERT_TRUE(park(id).ok());
  away(id);
  later(1000);
  EXPECT_FALSE(state_.ends_of(job(id), now_).first.has_value());
  const std::uint64_t cost = state_.usage_of("alice", now_);
  EXPECT_LT(cost, 60ull * 1024 * 60) << "what stays there costs little";
  ASSERT_TRUE(unpark(id).ok());
  (void)turn();
  back(id);
  EXPECT_EQ(state_.ends_of(job(id), now_).first->ms, before.ms + 1'000'000);
}

// ---- preemption --------------------------------------------------------------------------------

TEST_F(ParkTest, AHigherPriorityHasALowerOneParkedAndItComesBackInOrder) {
  const JobId low = run(preemptible("60G"));
  later(60);
  const JobId high = submit(above("60G"));
  EXPECT_EQ(parked_for(high, turn()), Ids{low});
  EXPECT_EQ(why(high), "room that is being made: job 1 is being parked for it");
  EXPECT_TRUE(turn().park.empty()) << "one is enough";
  away(low);
  (void)turn();
  EXPECT_EQ(state_of(high), JobState::kStarting);
  started(high);
  const JobId later_low = submit("60G", "bob");
  EXPECT_TRUE(turn().back.empty());
  ended(high);
  const PassResult steps = turn();
  EXPECT_EQ(steps.back, Ids{low}) << "before those of its priority who never ran";
  EXPECT_EQ(state_of(later_low), JobState::kPending);
}

TEST_F(ParkTest, NobodyIsParkedForAnEqualOrWithoutHisConsent) {
  (void)run(preemptible("60G"));
  later(60);
  (void)submit("60G", "bob");
  EXPECT_TRUE(turn().park.empty());
  ended(JobId{1});
  (void)turn();
  started(JobId{2});
  later(60);
  (void)submit(above("60G"));
  EXPECT_TRUE(turn().park.empty()) << "bob's job did not say --preemptible";
}

TEST_F(ParkTest, AnIdleTimeAloneDoesNotAllowParkingForOthers) {
  JobSpec spec = spec_of("60G");
  spec.idle_s = 600;
  const JobId id = run(spec);
  later(60);
  (void)submit(above("60G"));
  EXPECT_TRUE(turn().park.empty());
  EXPECT_TRUE(park(id).ok()) << "by hand it can be";
}

TEST_F(ParkTest, WhoWouldRatherWaitHasNobodyParked) {
  (void)run(preemptible("60G"));
  later(60);
  JobSpec spec = above("60G");
  spec.no_preempt = true;
  (void)submit(spec);
  EXPECT_TRUE(turn().park.empty());
}

TEST_F(ParkTest, TheFewestAreParkedThenTheLowestThenTheCheapest) {
  const JobId small = run(preemptible("20G", -10));
  const JobId middle = run(preemptible("30G", -5));
  const JobId other = run(preemptible("28G", -10));
  later(60);
  const JobId one = submit(above("25G"));
  EXPECT_EQ(parked_for(one, turn()), Ids{other}) << "one is enough, of the lowest priority";
  refuses(other, "busy");
  ASSERT_TRUE(cancel(one, "root").ok());
  const JobId two = submit(above("48G"));
  EXPECT_EQ(parked_for(two, turn()), (Ids{small, middle})) << "two are, and one refused lately";
}

TEST_F(ParkTest, NobodyIsParkedWhoHasJustBegun) {
  const JobId low = run(preemptible("60G"));
  const JobId high = submit(above("60G"));
  EXPECT_TRUE(turn().park.empty());
  const std::optional<WallTime> next = state_.next_change(now_);
  ASSERT_TRUE(next.has_value()) << "time alone will change that";
  now_ = *next;
  EXPECT_EQ(parked_for(high, turn()), Ids{low});
}

TEST_F(ParkTest, WhoDoesNotParkInTimeIsNotWaitedForAlone) {
  const JobId first = run(preemptible("40G", -10));
  const JobId second = run(preemptible("39G", -5));
  later(60);
  const JobId high = submit(above("39G"));
  EXPECT_EQ(parked_for(high, turn()), Ids{first});
  later(29);
  EXPECT_TRUE(turn().park.empty());
  later(1);
  EXPECT_EQ(parked_for(high, turn()), Ids{second});
}

TEST_F(ParkTest, AWholeCardIsGivenBesideAParkedJob) {
  machine_.cards.resize(1);
  const JobId low = run(preemptible("60G"));
  later(60);
  const JobId high = submit(above("1"));
  EXPECT_EQ(parked_for(high, turn()), Ids{low});
  away(low);
  (void)turn();
  EXPECT_EQ(state_of(high), JobState::kStarting);
  EXPECT_EQ(job(high).grant[0].bytes, Bytes::from_gib(80) - kContext);
  started(high);
  EXPECT_TRUE(turn().back.empty()) << "its card is another's alone";
  ended(high);
  EXPECT_EQ(turn().back, Ids{low});
}

TEST_F(ParkTest, NobodyComesBackWithoutHavingBeenToldTo) {
  const JobId id = run(preemptible("60G"));
  ASSERT_TRUE(park(id).ok());
  away(id);
  EXPECT_EQ(take(ParkReport{id, 0, false}).error().code, ErrorCode::kBusy);
  EXPECT_EQ(granted_on_first(), kContext);
}

TEST_F(ParkTest, WhoIsAwayAgainstAllExpectationIsBelieved) {
  const JobId id = run(preemptible("60G"));
  away(id);
  EXPECT_TRUE(job(id).park->wants_back) << "nobody asked for it";
  EXPECT_EQ(turn().back, Ids{id});
}

TEST_F(ParkTest, OneWithoutCardsIsNotParkedWhateverItsRunnerSays) {
  const JobId id = run(spec_of("0", "alice"));
  EXPECT_EQ(take(ParkReport{id, 0, true, {}, Bytes::from_gib(4)}).error().code,
            ErrorCode::kInvalid);
  EXPECT_EQ(state_of(id), JobState::kRunning);
}

TEST_F(ParkTest, WhatWasLostStaysLost) {
  const JobId id = run(preemptible("60G"));
  ASSERT_TRUE(park(id).ok());
  away(id);
  ASSERT_TRUE(unpark(id).ok());
  (void)turn();
  ASSERT_TRUE(take(ParkReport{id, 0, true, {kContext}, {}, "the mover is gone", true}).ok());
  later(86'400);
  EXPECT_TRUE(turn().back.empty()) << "it is not tried again";
  EXPECT_EQ(unpark(id).error().evidence, "the mover is gone");
  ASSERT_TRUE(park(id).ok());
  EXPECT_TRUE(job(id).park->lost);
  EXPECT_EQ(unpark(id).error().code, ErrorCode::kInvalid);
  EXPECT_FALSE(state_.wait_to_return(job(id), moment()).has_value());
}

TEST_F(ParkTest, NoDeeperThanItWasParked) {
  const JobId id = run(preemptible("60G"));
  ASSERT_TRUE(park(id).ok());
  away(id);
  EXPECT_EQ(take(ParkJob{id, caller("alice"), true}).error().code, ErrorCode::kBusy);
}

TEST_F(ParkTest, WhoDoesNothingIsParkedNoSoonerThanForOthers) {
  park_the_idle();
  const JobId id = run(preemptible("60G"));
  idle(id);
  EXPECT_EQ(state_of(id), JobState::kRunning) << "it has just begun";
  later(3600);
  idle(id);
  EXPECT_EQ(state_of(id), JobState::kParking);
  refuses(id, "a stream is being captured");
  idle(id);
  EXPECT_EQ(state_of(id), JobState::kRunning) << "it has just refused";
}

TEST_F(ParkTest, WhoAsksForMoreCpusThanThereAreComesBackAllTheSame) {
  Rules rules;
  rules.cpus = 4;
  state_ = State(rules);
  JobSpec spec = preemptible("60G");
  spec.request.cpus = 6;
  const JobId id = run(spec);
  ASSERT_TRUE(park(id).ok());
  away(id);
  ASSERT_TRUE(unpark(id).ok());
  EXPECT_EQ(turn().back, Ids{id});
}

TEST_F(ParkTest, TheCpusOfAParkedJobAreFree) {
  Rules rules;
  rules.cpus = 4;
  state_ = State(rules);
  JobSpec spec = preemptible("60G");
  spec.request.cpus = 4;
  const JobId id = run(spec);
  JobSpec other = spec_of("10G", "bob");
  other.request.cpus = 4;
  ASSERT_TRUE(park(id).ok());
  away(id);
  const JobId next = submit(other);
  EXPECT_TRUE(state_.might_start(job(next), moment()));
  EXPECT_EQ(grant(), Ids{next});
}

TEST_F(ParkTest, WhoCannotStartBesideWhatAParkedJobLeftLetsItComeBack) {
  machine_.cards.resize(1);
  const JobId low = run(preemptible("60G"));
  later(60);
  const JobId high = submit(above("75G"));
  EXPECT_EQ(parked_for(high, turn()), Ids{low});
  away(low, Bytes::from_gib(20));  // much more than a context
  EXPECT_EQ(turn().back, Ids{low}) << "else both wait for ever";
  back(low);
  later(600);
  EXPECT_TRUE(turn().park.empty()) << "it would not help";
  ended(low);
  (void)turn();
  EXPECT_EQ(state_of(high), JobState::kStarting);
}

TEST_F(ParkTest, OfTwoParkedJobsTheOneComesBackForWhichThereIsRoom) {
  machine_.cards.resize(1);
  const JobId first = run(preemptible("60G"));
  ASSERT_TRUE(park(first).ok());
  away(first);
  const JobId second = run(preemptible("70G", 0, "bob"));
  ASSERT_TRUE(park(second, "bob").ok());
  away(second, Bytes::from_gib(30));
  ASSERT_TRUE(unpark(first).ok());
  ASSERT_TRUE(unpark(second, "bob").ok());
  EXPECT_EQ(turn().back, Ids{second}) << "nothing is held for the first: the other is in its way";
}

TEST_F(ParkTest, WhoGaveWayStandsInLineAsSoonAsTheOtherStarts) {
  machine_.cards.resize(1);
  const JobId low = run(preemptible("60G"));
  later(60);
  const JobId high = submit(above("60G"));
  EXPECT_EQ(parked_for(high, turn()), Ids{low});
  const JobId newcomer = submit("19G", "bob");
  away(low);
  const PassResult steps = turn();
  EXPECT_EQ(state_of(high), JobState::kStarting);
  EXPECT_EQ(state_of(newcomer), JobState::kPending) << "it would be in the way of the parked one";
  EXPECT_EQ(steps.held_for, low);
}

TEST_F(ParkTest, NothingIsKeptElsewhereOfOneThatComesBack) {
  const JobId id = run(preemptible("60G"));
  ASSERT_TRUE(park(id).ok());
  away(id);
  ASSERT_TRUE(unpark(id).ok());
  (void)turn();
  EXPECT_TRUE(job(id).park->moved.is_zero()) << "as a snapshot has it, too";
}

}  // namespace
}  // namespace mete::core
