// SPDX-License-Identifier: Apache-2.0
// Reservations: who makes and removes them, and what they mean for jobs in the queue before, during
// and after. Most are for carol, on a machine of one or two cards; jobs of other users have limits
// that end before or after the reservation begins, and the clock moves past both its ends.
#include "core/order/reservation.h"

#include "core/test/state_world.h"

namespace mete::core {
namespace {

class ReservationTest : public StateWorld {
 protected:
  ReservationTest() { machine_ = pool_of({80, 80}); }

  WallTime in(std::int64_t seconds) const { return {now_.ms + seconds * 1000}; }
  Result<void> try_reserve(const std::string& gpu, std::int64_t from_s, std::int64_t until_s,
                           const std::string& by = "root", const std::string& user = "carol") {
    Reserve reserve;
    reserve.user = user;
    reserve.request.gpu = *parse_gpu(gpu);
    reserve.from = in(from_s);
    reserve.until = in(until_s);
    reserve.by = caller(by);
    return take(reserve);
  }
  // For carol; times in seconds from now.
  const Reservation& reserve(const std::string& gpu, std::int64_t from_s, std::int64_t until_s,
                             const std::string& user = "carol") {
    const Result<void> done = try_reserve(gpu, from_s, until_s, "root", user);
    EXPECT_TRUE(done.ok()) << done.error().message;
    return state_.reservations().back();
  }
  static JobSpec timed(const std::string& gpu, std::uint64_t time_s,
                       const std::string& user = "alice") {
    JobSpec spec = spec_of(gpu, user);
    spec.time_s = time_s;
    return spec;
  }
  std::uint32_t card_of(JobId id) { return job(id).grant.front().index; }
};

// ---- making reservations -----------------------------------------------------------------------

TEST_F(ReservationTest, IsForAdministratorsToMake) {
  EXPECT_EQ(try_reserve("1", 0, 60, "carol").error().code, ErrorCode::kDenied);
  const Reservation& made = reserve("1", 0, 60);
  EXPECT_EQ(made.id, 1u);
  EXPECT_EQ(made.user, "carol");
  EXPECT_EQ(made.by, "root");
  ASSERT_EQ(made.cards.size(), 1u);
  EXPECT_TRUE(made.cards[0].whole);
}

TEST_F(ReservationTest, WhatCanNeverBeIsRefused) {
  EXPECT_EQ(try_reserve("3", 0, 60).error().code, ErrorCode::kInfeasible);
  EXPECT_EQ(try_reserve("81G", 0, 60).error().code, ErrorCode::kInfeasible);
  EXPECT_EQ(try_reserve("0", 0, 60).error().code, ErrorCode::kInvalid) << "it is of cards";
  EXPECT_EQ(try_reserve("1", 60, 60).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(try_reserve("1", 60, 30).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(try_reserve("1", 0, 86'400'000'000).error().message,
            "a reservation is for ten years at most");
  EXPECT_EQ(try_reserve("1", -60, 0).error().code, ErrorCode::kInvalid) << "it is over";
  EXPECT_TRUE(try_reserve("1", -60, 1).ok()) << "it may have begun";
  EXPECT_EQ(try_reserve("1", 0, 60, "root", "").error().code, ErrorCode::kInvalid)
      << "it is for somebody";
}

TEST_F(ReservationTest, TwoAtATimeAreOnDifferentCards) {
  const GrantedCard first = reserve("1", 0, 100).cards[0];
  const GrantedCard second = reserve("1", 50, 150, "dave").cards[0];
  EXPECT_NE(first.uuid, second.uuid);
  EXPECT_EQ(try_reserve("1", 99, 200).error().code, ErrorCode::kExhausted);
  EXPECT_EQ(reserve("1", 100, 140).cards[0].uuid, first.uuid) << "the first is over then";
}

TEST_F(ReservationTest, OneOfTheSameUserAddsToIt) {
  const GrantedCard first = reserve("1", 0, 100).cards[0];
  EXPECT_NE(reserve("1", 0, 100).cards[0].uuid, first.uuid);
  EXPECT_EQ(try_reserve("1", 0, 100).error().code, ErrorCode::kExhausted);
}

TEST_F(ReservationTest, SharesLieOnOneCardTogether) {
  EXPECT_EQ(reserve("40G", 0, 100).cards[0].index, 0u);
  EXPECT_EQ(reserve("40G", 0, 100, "dave").cards[0].index, 0u);
  EXPECT_EQ(reserve("40G", 0, 100, "erin").cards[0].index, 1u);
}

TEST_F(ReservationTest, CardsWithoutJobsAndInServiceAreTakenFirst) {
  run("10G");
  EXPECT_EQ(reserve("1", 0, 100).cards[0].index, 1u);
  ASSERT_TRUE(take(Unreserve{1, caller("root")}).ok());
  ASSERT_TRUE(take(Drain{"1", caller("root")}).ok());
  EXPECT_EQ(reserve("2", 0, 100).cards.size(), 2u) << "but they will do";
}

TEST_F(ReservationTest, IsTakenBackByItsUserOrAnAdministrator) {
  reserve("1", 0, 100);
  EXPECT_EQ(take(Unreserve{1, caller("alice")}).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(take(Unreserve{7, caller("root")}).error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(take(Unreserve{1, caller("carol")}).ok());
  EXPECT_TRUE(state_.reservations().empty());
  EXPECT_EQ(reserve("1", 0, 100).id, 2u) << "a number is not used again";
}

TEST_F(ReservationTest, IsOverByItself) {
  reserve("1", 10, 100);
  EXPECT_EQ(state_.next_change(now_), in(10));
  later(99);
  EXPECT_EQ(state_.reservations().size(), 1u);
  EXPECT_EQ(state_.next_change(now_), in(1));
  later(1);
  EXPECT_TRUE(state_.reservations().empty());
  EXPECT_EQ(state_.next_change(now_), std::nullopt);
}

TEST_F(ReservationTest, ThereIsAMost) {
  for (std::size_t i = 0; i < kMaxReservations; ++i)
    reserve("1", static_cast<std::int64_t>(i) * 10, static_cast<std::int64_t>(i) * 10 + 10);
  EXPECT_EQ(try_reserve("1", 0, 10).error().code, ErrorCode::kExhausted);
}

// ---- before it begins --------------------------------------------------------------------------

TEST_F(ReservationTest, WhoMayStillRunThenKeepsOffTheCard) {
  reserve("1", 3600, 7200);
  const JobId unknown = submit("60G");
  EXPECT_EQ(grant(), Ids{unknown});
  EXPECT_EQ(card_of(unknown), 1u);
  const JobId next = submit("60G");
  EXPECT_EQ(grant(), Ids{});
  EXPECT_EQ(wait_of(next).reason, Reason::kReservation);
  EXPECT_NE(why(next).find("carol's reservation 1"), std::string::npos) << why(next);
}

TEST_F(ReservationTest, WhoWillHaveEndedByThenMayHaveIt) {
  reserve("2", 3600, 7200);
  const JobId too_long = submit(timed("60G", 3600));
  const JobId just = submit(timed("60G", 3600 - state_.rules().grace_s));
  EXPECT_EQ(grant(), Ids{just}) << "with the time that ending it may take";
  started(just);
  ended(just);
  later(60);
  EXPECT_EQ(grant(), Ids{});
  const JobId shorter = submit(timed("60G", 3000));
  EXPECT_EQ(grant(), Ids{shorter});
  EXPECT_EQ(state_of(too_long), JobState::kPending);
}

TEST_F(ReservationTest, HowLongSuchJobsRanIsBelieved) {
  for (int i = 0; i < 5; ++i) {
    const JobId id = run("1G");
    Exit exit = exit_with(0);
    exit.ran_ms = 600'000;
    ended(id, exit);
  }
  reserve("2", 3600, 7200);
  const JobId known = submit("60G");
  JobSpec other = spec_of("1G");
  other.name = "another";
  const JobId unknown = submit(other);
  EXPECT_EQ(grant(), Ids{known});
  EXPECT_EQ(state_of(unknown), JobState::kPending);
}

TEST_F(ReservationTest, BeforeItBeginsItsUserStandsInLineAsAllDo) {
  reserve("1", 3600, 7200);
  const JobId own = submit("60G", "carol");
  EXPECT_EQ(grant(), Ids{own});
  const JobId second = submit("60G", "carol");
  EXPECT_EQ(grant(), Ids{second}) << "on any card, for any time";
}

// ---- while it lasts ----------------------------------------------------------------------------

TEST_F(ReservationTest, OnlyItsUserHasTheCard) {
  const GrantedCard card = reserve("1", 0, 3600).cards[0];
  const JobId other = submit(timed("80G", 60));
  const JobId small = submit(timed("1G", 60));
  EXPECT_EQ(grant(), Ids{other});
  EXPECT_NE(job(other).grant[0].uuid, card.uuid);
  const JobId own = submit("80G", "carol");
  EXPECT_EQ(grant(), Ids{own});
  EXPECT_EQ(job(own).grant[0].uuid, card.uuid);
  EXPECT_EQ(state_of(small), JobState::kPending);
}

TEST_F(ReservationTest, AShareLeavesTheRestToOthers) {
  machine_ = pool_of({80});
  reserve("50G", 0, 3600);
  const JobId small = submit("30G");
  const JobId more = submit("2G");
  EXPECT_EQ(grant(), Ids{small});
  EXPECT_EQ(state_of(more), JobState::kPending);
  const JobId own = submit("50G", "carol");
  EXPECT_EQ(grant(), Ids{own});
}

TEST_F(ReservationTest, WhatItsUserHasOfItIsNotCountedTwice) {
  machine_ = pool_of({80});
  reserve("40G", 0, 3600);
  const JobId own = submit("30G", "carol");
  EXPECT_EQ(grant(), Ids{own});
  const JobId other = submit("40G");
  EXPECT_EQ(grant(), Ids{other}) << "10 GiB are still hers, and there are as many";
  const JobId last = submit("1G");
  EXPECT_EQ(grant(), Ids{}) << "and these are not for others";
  EXPECT_EQ(wait_of(last).reason, Reason::kReservation);
  const JobId rest = submit("10G", "carol");
  EXPECT_EQ(grant(), Ids{rest});
}

TEST_F(ReservationTest, ItsUserMayHaveMoreThanWasReserved) {
  reserve("1", 0, 3600);
  const JobId two = submit("2", "carol");
  EXPECT_EQ(grant(), Ids{two});
}

TEST_F(ReservationTest, AJobThatRunsThereIsNotEnded) {
  machine_ = pool_of({80});
  const JobId runs = run("60G");
  reserve("1", 3600, 7200);
  later(3600);
  EXPECT_EQ(state_of(runs), JobState::kRunning);
  const JobId own = submit("1", "carol");
  EXPECT_EQ(grant(), Ids{});
  ended(runs);
  EXPECT_EQ(grant(), Ids{own});
}

// The first job in the queue waits for the reserved cards: they are still free for the user they
// are reserved for.
TEST_F(ReservationTest, TheFirstInLineDoesNotKeepItFromItsUser) {
  machine_ = pool_of({80});
  reserve("1", 0, 3600);
  JobSpec urgent = spec_of("80G", "root");
  urgent.priority = 100;
  const JobId first = submit(urgent);
  EXPECT_EQ(grant(), Ids{});
  const JobId own = submit("80G", "carol");
  EXPECT_EQ(grant(), Ids{own});
  started(own);
  ended(own);
  EXPECT_EQ(grant(), Ids{});
  later(3600);
  EXPECT_EQ(grant(), Ids{first});
}

TEST_F(ReservationTest, WhatTheFirstInLineWaitsForUntilItIsOverMayBeUsedTillThen) {
  machine_ = pool_of({80});
  reserve("40G", 0, 3600);
  const JobId large = submit("80G");  // starts once the reservation is over
  const JobId longer = submit(timed("10G", 3600));
  const JobId in_time = submit(timed("10G", 3000));
  EXPECT_EQ(wait_of(large).reason, Reason::kReservation);
  EXPECT_EQ(grant(), Ids{in_time});
  EXPECT_EQ(wait_of(longer).reason, Reason::kPriority);
  EXPECT_EQ(state_.look(moment()).result.held_until, in(3600));
}

// ---- when it is over ---------------------------------------------------------------------------

TEST_F(ReservationTest, AfterItAllMayHaveTheCard) {
  machine_ = pool_of({80});
  reserve("1", 0, 3600);
  const JobId waits = submit("80G");
  EXPECT_EQ(grant(), Ids{});
  later(3599);
  EXPECT_EQ(grant(), Ids{});
  later(1);
  EXPECT_EQ(grant(), Ids{waits});
}

TEST_F(ReservationTest, TakenBackItIsNobodys) {
  machine_ = pool_of({80});
  reserve("1", 0, 3600);
  const JobId waits = submit("80G");
  EXPECT_EQ(grant(), Ids{});
  ASSERT_TRUE(take(Unreserve{1, caller("root")}).ok());
  EXPECT_EQ(grant(), Ids{waits});
}

TEST_F(ReservationTest, AReservedCardThatIsGoneIsInNobodysWay) {
  reserve("1", 0, 3600);
  machine_.cards.erase(machine_.cards.begin());
  const JobId id = submit("80G");
  EXPECT_EQ(grant(), Ids{id});
}

}  // namespace
}  // namespace mete::core
