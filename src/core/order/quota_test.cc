// SPDX-License-Identifier: Apache-2.0
// Quotas: the sums, who sets them, what is refused at submit and what waits in the queue. A fake
// daemon (state_world.h) does real passes on a small machine. At the end a long queue is run down,
// and after every pass no user may be above a quota.
#include "core/order/quota.h"

#include "core/test/state_world.h"

namespace mete::core {
namespace {

TEST(Quota, WithoutALimitNothingIsOver) {
  EXPECT_EQ(over({}, {1000, Bytes::from_gib(1 << 20), 1000}, {8, Bytes::from_gib(640), 1}),
            std::nullopt);
}

TEST(Quota, EachLimitLimits) {
  Quota cards;
  cards.cards = 4;
  EXPECT_EQ(over(cards, {2, {}, 2}, {2, {}, 1}), std::nullopt);
  EXPECT_EQ(over(cards, {3, {}, 2}, {2, {}, 1}), (OverQuota{OverQuota::Limit::kCards, 3, 4, 2}));
  EXPECT_EQ(to_string(*over(cards, {3, {}, 2}, {2, {}, 1})), "3 of 4 cards, and this takes 2");
  EXPECT_EQ(over(cards, {4, {}, 2}, {0, {}, 1}), std::nullopt) << "one without a card may run";
  Quota bytes;
  bytes.bytes = Bytes::from_gib(40);
  EXPECT_EQ(over(bytes, {1, Bytes::from_gib(32), 1}, {1, Bytes::from_gib(8), 1}), std::nullopt);
  EXPECT_EQ(to_string(*over(bytes, {1, Bytes::from_gib(32), 1}, {1, Bytes::from_gib(9), 1})),
            "32 GiB of 40 GiB, and this takes 9 GiB");
  EXPECT_NE(over(bytes, {1, Bytes::from_bytes(UINT64_MAX), 1}, {1, Bytes::from_gib(9), 1}),
            std::nullopt)
      << "no overflow";
  Quota running;
  running.running = 2;
  EXPECT_EQ(over(running, {0, {}, 1}, {0, {}, 1}), std::nullopt);
  EXPECT_EQ(to_string(*over(running, {0, {}, 2}, {0, {}, 1})), "2 of 2 running jobs");
}

TEST(Quota, ALimitOfNoneIsALimit) {
  Quota none;
  none.cards = 0;
  EXPECT_NE(never_within(none, {1, Bytes::from_gib(1), 1}), std::nullopt);
  EXPECT_EQ(never_within(none, {0, {}, 1}), std::nullopt);
}

TEST(Quota, WhatIsNotOnesOwnIsEverybodys) {
  Quota own;
  own.cards = 1;
  Quota everybody;
  everybody.cards = 2;
  everybody.jobs = 10;
  const Quota quota = with_defaults(own, everybody);
  EXPECT_EQ(quota.cards, 1u);
  EXPECT_EQ(quota.jobs, 10u);
  EXPECT_EQ(quota.bytes, std::nullopt);
}

class QuotaTest : public StateWorld {
 protected:
  QuotaTest() { machine_ = pool_of({80, 80}); }
  void set(const std::string& user, const Quota& quota) {
    EXPECT_TRUE(take(SetQuota{user, quota, caller("root")}).ok());
  }
  static Quota of_cards(std::uint32_t cards) {
    Quota quota;
    quota.cards = cards;
    return quota;
  }
};

// ---- who sets quotas ---------------------------------------------------------------------------

TEST_F(QuotaTest, IsForAdministratorsToSet) {
  EXPECT_EQ(take(SetQuota{"alice", {}, caller("alice")}).error().code, ErrorCode::kDenied);
  set("alice", of_cards(2));
  EXPECT_EQ(state_.quotas().at("alice").cards, 2u);
  set("alice", of_cards(2));
  EXPECT_EQ(happened_, 0u) << "again changes nothing";
  set("alice", {});
  EXPECT_TRUE(state_.quotas().empty()) << "one without limits is none";
  set("alice", {});
  EXPECT_EQ(happened_, 0u);
}

// ---- refused at submit -------------------------------------------------------------------------

TEST_F(QuotaTest, TooManyUnfinishedJobsAreRefused) {
  Quota quota;
  quota.jobs = 3;
  set("alice", quota);
  const JobId first = run("1G");
  submit("1G");
  JobSpec array = spec_of("1G");
  array.array = *parse_array("0-1");
  const Result<JobId> two = try_submit(array);
  ASSERT_FALSE(two.ok());
  EXPECT_EQ(two.error().code, ErrorCode::kExhausted);
  EXPECT_EQ(two.error().message, "alice may have 3 unfinished jobs");
  EXPECT_EQ(two.error().evidence, "there are 2, and these are 2 more");
  submit("1G");
  EXPECT_EQ(try_submit(spec_of("1G")).error().code, ErrorCode::kExhausted);
  EXPECT_TRUE(try_submit(spec_of("1G", "bob")).ok());
  ended(first);
  EXPECT_TRUE(try_submit(spec_of("1G")).ok());
}

TEST_F(QuotaTest, WhatIsMoreThanOneMayHaveAtAllIsRefused) {
  set("alice", of_cards(1));
  const Result<JobId> two = try_submit(spec_of("2"));
  ASSERT_FALSE(two.ok());
  EXPECT_EQ(two.error().code, ErrorCode::kInfeasible);
  EXPECT_EQ(two.error().evidence, "0 of 1 cards, and this takes 2");
  Quota bytes;
  bytes.bytes = Bytes::from_gib(40);
  set("bob", bytes);
  EXPECT_EQ(try_submit(spec_of("41G", "bob")).error().code, ErrorCode::kInfeasible);
  EXPECT_EQ(try_submit(spec_of("1", "bob")).error().code, ErrorCode::kInfeasible);
  EXPECT_TRUE(try_submit(spec_of("50%", "bob")).ok());
  Quota none;
  none.running = 0;
  set("carol", none);
  EXPECT_EQ(try_submit(spec_of("0", "carol")).error().code, ErrorCode::kInfeasible);
}

TEST_F(QuotaTest, LogsThatTakeTooMuchRefuseWhatWouldWriteMore) {
  Quota quota;
  quota.disk = Bytes::from_mib(10);
  set("", quota);
  Exit exit = exit_with(0);
  exit.log_bytes = Bytes::from_mib(6);
  const JobId first = run("1G");
  ended(first, exit);
  const JobId second = run("1G");
  ended(second, exit);
  EXPECT_EQ(state_.disk_of("alice"), Bytes::from_mib(12));
  const Result<JobId> more = try_submit(spec_of("1G"));
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.error().code, ErrorCode::kExhausted);
  EXPECT_EQ(more.error().evidence, "they take 12 MiB");
  JobSpec run = spec_of("1G");
  run.detached.reset();
  EXPECT_TRUE(try_submit(run).ok()) << "a run writes no log of ours";
  EXPECT_TRUE(try_submit(spec_of("1G", "bob")).ok());
}

TEST_F(QuotaTest, ForgottenJobsHaveNoLogs) {
  Rules rules;
  rules.ended_kept = 10;
  state_ = State(rules);
  Exit exit = exit_with(0);
  exit.log_bytes = Bytes::from_mib(1);
  for (int i = 0; i < 500; ++i) ended(run("0"), exit);
  EXPECT_EQ(state_.disk_of("alice"), Bytes::from_mib(state_.jobs().size()));
  const JobId last = state_.jobs().rbegin()->first;
  ASSERT_TRUE(take(Requeue{last, caller("alice")}).ok());
  EXPECT_EQ(state_.disk_of("alice"), Bytes::from_mib(state_.jobs().size() - 1));
}

// ---- skipped in the queue ----------------------------------------------------------------------

TEST_F(QuotaTest, WhoIsOverItIsPassedOverAndHoldsNothing) {
  set("alice", of_cards(1));
  run("30G");
  const JobId waits = submit("60G");
  const JobId other = submit("60G", "bob");
  EXPECT_EQ(grant(), Ids{other}) << "behind it in line";
  EXPECT_EQ(wait_of(waits).reason, Reason::kQuota);
  EXPECT_EQ(why(waits), "the quota of alice: 1 of 1 cards");
}

TEST_F(QuotaTest, HeldRoomIsNotForOneWhoMayNotHaveIt) {
  set("alice", of_cards(1));
  run("30G");
  run("60G", "bob");
  const JobId large = submit("80G");
  const JobId small = submit("20G", "bob");
  EXPECT_EQ(grant(), Ids{small}) << "nothing is kept for one that could not start anyway";
  EXPECT_EQ(wait_of(large).reason, Reason::kQuota);
}

TEST_F(QuotaTest, AnEndMakesRoomInAQuota) {
  set("alice", of_cards(1));
  const JobId first = run("30G");
  const JobId next = submit("30G");
  EXPECT_EQ(grant(), Ids{});
  EXPECT_TRUE(cancel(first).ok());
  EXPECT_EQ(grant(), Ids{}) << "its processes are still there";
  ended(first);
  EXPECT_EQ(grant(), Ids{next});
}

TEST_F(QuotaTest, BytesAndRunningJobsAreCountedToo) {
  Quota quota;
  quota.bytes = Bytes::from_gib(50);
  quota.running = 2;
  set("", quota);
  const JobId a = submit("30G");
  const JobId b = submit("30G");
  const JobId c = submit("10G");
  const JobId d = submit("1G");
  EXPECT_EQ(grant(), (Ids{a, c}));
  EXPECT_EQ(why(b), "the quota of alice: 2 of 2 running jobs");
  ended(c);
  EXPECT_EQ(grant(), Ids{d});
  ended(d);
  EXPECT_EQ(grant(), Ids{});
  EXPECT_EQ(why(b), "the quota of alice: 30 GiB of 50 GiB, and this takes 30 GiB");
}

TEST_F(QuotaTest, OnesOwnGoesBeforeEverybodys) {
  set("", of_cards(0));
  set("alice", of_cards(2));
  EXPECT_TRUE(try_submit(spec_of("2")).ok());
  EXPECT_EQ(try_submit(spec_of("1G", "bob")).error().code, ErrorCode::kInfeasible);
  set("", {});
  EXPECT_TRUE(try_submit(spec_of("1G", "bob")).ok());
}

TEST_F(QuotaTest, ALoweredQuotaEndsNothing) {
  const JobId id = run("2");
  set("alice", of_cards(1));
  EXPECT_EQ(state_of(id), JobState::kRunning);
  const JobId next = submit("1");
  EXPECT_EQ(grant(), Ids{});
  ended(id);
  EXPECT_EQ(grant(), Ids{next});
}

TEST_F(QuotaTest, WhoWillNotWaitIsToldOfTheQuotaAlsoWithinOneWalk) {
  set("alice", of_cards(1));
  submit("1G");  // starts at once
  EXPECT_EQ(try_submit(spec_of("1G"), false).error().code, ErrorCode::kExhausted);
  EXPECT_TRUE(try_submit(spec_of("1G", "bob"), false).ok());
}

// The first in the queue is tried in every pass, whichever other jobs start meanwhile.
TEST_F(QuotaTest, NobodyIsEverOverIt) {
  Quota quota;
  quota.cards = 2;
  quota.bytes = Bytes::from_gib(70);
  quota.running = 3;
  set("", quota);
  for (int i = 0; i < 30; ++i) {
    submit("20G", i % 2 == 0 ? "alice" : "bob");
    submit("2x5G", i % 3 == 0 ? "alice" : "carol");
  }
  std::size_t turns = 0;
  while (state_.unfinished() > 0 && ++turns < 1000) {
    grant();
    for (const char* user : {"alice", "bob", "carol"}) {
      const Held held = state_.held_by(user);
      ASSERT_LE(held.cards, 2u);
      ASSERT_LE(held.bytes, Bytes::from_gib(70));
      ASSERT_LE(held.running, 3u);
    }
    ASSERT_FALSE(state_.active().empty()) << "somebody may always run";
    ended(*state_.active().begin());
  }
  EXPECT_EQ(state_.unfinished(), 0u);
}

}  // namespace
}  // namespace mete::core
