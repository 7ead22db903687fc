// SPDX-License-Identifier: Apache-2.0
// Waits as JSON and as sentences. Each case builds a wait by hand, compares its sentence for users
// and for documents, and reads its JSON back; waits of older daemons, which have only a sentence,
// are read as well.
#include "wire/wait.h"

#include <gtest/gtest.h>
#include <time.h>

#include <cstdlib>

#include "core/request/gpu.h"
#include "wire/job.h"
#include "wire/ps_lines.h"
#include "wire/test/full.h"
#include "wire/wait_text.h"

namespace mete::wire {
namespace {

using core::CardWait;
using core::InTheWay;
using core::JobId;
using core::Reason;
using core::Wait;

// 2026-11-15 12:00:00 UTC
constexpr std::int64_t kNoon = 1'794'744'000'000;
WallTime at(std::int64_t minutes) { return {kNoon + minutes * 60'000}; }

class WaitText : public testing::Test {
 protected:
  void SetUp() override {
    setenv("TZ", "Europe/Berlin", 1);
    tzset();
  }
  void TearDown() override {
    setenv("TZ", "UTC", 1);
    tzset();
  }
};

CardWait full_card(std::uint32_t index) {
  CardWait card;
  card.index = index;
  card.why = InTheWay::kTooFull;
  card.needed = Bytes::from_gib(8);
  card.free = Bytes::from_gib(3);
  return card;
}

Wait for_cards(std::uint32_t cards) {
  Wait wait;
  wait.room.needs = core::CardNeed{1, *core::parse_gpu("8G"), Bytes::from_gib(8), {}, 0};
  for (std::uint32_t i = 0; i < cards; ++i) wait.room.cards.push_back(full_card(i));
  return wait;
}

TEST(WaitJson, ReadsBack) {
  const Wait wait = full_wait();
  const Result<Wait> again = wait_from_json(wait_json(wait));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(*again, wait);
  EXPECT_EQ(wait_json(*again), wait_json(wait));
  EXPECT_EQ(*wait_from_json(wait_json(Wait{})), Wait{});
}

TEST(WaitJson, HasTheFieldsThatOtherProgramsKnow) {
  Wait wait = for_cards(1);
  wait.holders = {JobId{12}};
  wait.room.cards[0].holders = {
      {JobId{12}, "alice", "", Bytes::from_gib(5), false, false, false, at(0)}};
  wait.room.cards[0].outside = {{"process 412 of bob", Bytes::from_gib(1), {}, "bob", 412}};
  JobView view{plain_job()};
  view.wait = wait;
  view.place = 2;
  EXPECT_NE(
      encode_ps({view}, {0})
          .find(
              R"("wait":{"place":2,"for":"8 GiB on one card; card 0: 3 GiB free of the 8 GiB needed, )"
              R"(alice's job 12 holds 5 GiB, process 412 of bob holds 1 GiB","kind":"resources",)"
              R"("holders":["12"],"needs":{"cards":1,"bytes":8589934592,"share":"8G"},"cards":[)"
              R"({"index":0,"why":"room","needed_bytes":8589934592,"free_bytes":3221225472,)"
              R"("holders":[{"job":"12","user":"alice","bytes":5368709120,)"
              R"("ends_at":"2026-11-15T12:00:00.000Z"}],"foreign":[{"pid":412,"user":"bob",)"
              R"("bytes":1073741824,"who":"process 412 of bob"}]}]})"),
      std::string::npos)
      << encode_ps({view}, {0});
  const Result<std::vector<JobView>> again = decode_ps(encode_ps({view}, {0}));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->front().wait, view.wait);
  EXPECT_EQ(again->front().place, 2u);
}

TEST(WaitJson, IsDifferentForEachFieldThatDiffers) {
  const Wait plain = full_wait();
  std::vector<Wait> others(18, plain);
  others[0].reason = Reason::kQuota;
  others[1].holders.pop_back();
  others[2].room.needs->with_room = 0;
  others[3].room.cards[0].free = Bytes::from_gib(4);
  others[4].room.cards[0].holders[0].bytes -= Bytes::from_bytes(1);
  others[5].room.cards[0].outside[0].pid.reset();
  others[6].room.cards[0].why = InTheWay::kHeldBack;
  others[7].room.unlisted = 6;
  others[8].behind.reset();
  others[9].parking.clear();
  others[10].later->from.ms += 1;
  others[11].release.reset();
  others[12].more_after = 0;
  others[13].until->ms += 1;
  others[14].quota->over.now = 0;
  others[15].array->running = 0;
  others[16].cpus.reset();
  others[17].words.clear();
  EXPECT_EQ(wait_json(plain), wait_json(Wait(plain)));
  for (std::size_t i = 0; i < others.size(); ++i)
    EXPECT_NE(wait_json(others[i]), wait_json(plain)) << i;
}

TEST(WaitJson, OfAnOlderDaemonIsItsSentence) {
  JobView view{plain_job()};
  view.wait = for_cards(1);
  std::string text = encode_ps({view}, {0});
  const std::size_t kind = text.find(R"("kind")");
  text.erase(kind, text.find(R"("grant")") - 2 - kind);
  text.insert(kind, R"("holders":["3"])");
  const Result<std::vector<JobView>> again = decode_ps(text);
  ASSERT_TRUE(again.ok()) << text;
  EXPECT_EQ(again->front().wait->words, wait_text(*view.wait));
  EXPECT_EQ(wait_text(*again->front().wait), wait_text(*view.wait));
  EXPECT_EQ(again->front().wait->holders, std::vector{JobId{3}});
}

TEST(PsLines, AWaitThatJobsShareIsWrittenOnce) {
  JobView first{plain_job()}, second{plain_job()}, other{plain_job()};
  first.wait = for_cards(1);
  second.wait = first.wait;
  other.wait = for_cards(2);
  const std::string text = encode_ps_lines({first, second, other}, {0});
  EXPECT_NE(text.find("\t1 {"), std::string::npos) << text;
  EXPECT_NE(text.find("\t1\t\t\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\t2 {"), std::string::npos) << text;
  const Result<std::vector<JobView>> again = decode_ps_lines(text);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ((*again)[0].wait.get(), (*again)[1].wait.get());
  EXPECT_EQ((*again)[1].wait, second.wait);
  EXPECT_EQ((*again)[2].wait, other.wait);
  for (const auto& [what, with] :
       {std::pair("\t1\t\t\n", "\t3\t\t\n"), std::pair("\t1\t\t\n", "\t0\t\t\n"),
        std::pair("\t2 {", "\t4 {")})
    EXPECT_FALSE(decode_ps_lines(replaced(text, what, with)).ok()) << with;
}

TEST_F(WaitText, HasTheTimeOfItsReader) {
  Wait wait;
  wait.reason = Reason::kBegin;
  wait.until = at(360);
  EXPECT_EQ(wait_text(wait), "its time, 2026-11-15T18:00:00.000Z");
  EXPECT_EQ(wait_text(wait, at(0)), "its time, 19:00");
  wait.reason = Reason::kRetry;
  wait.until = at(19 * 60);
  EXPECT_EQ(wait_text(wait, at(0)), "its next attempt, at Nov 16 08:00");
  wait.failure = "mete-keeper is missing";
  EXPECT_EQ(wait_text(wait, at(0)),
            "its next try, at Nov 16 08:00: it could not be started (mete-keeper is missing)");
  Wait reserved = for_cards(1);
  reserved.room.cards[0].outside = {
      {"", Bytes::from_gib(4), {}, "carol", {}, core::Outside::Reserved{2, at(60)}}};
  EXPECT_EQ(
      wait_text(reserved, at(0)),
      "8 GiB on one card; card 0: 3 GiB free of the 8 GiB needed, carol's reservation 2 until "
      "14:00 holds 4 GiB");
}

TEST_F(WaitText, NamesFourCardsAndThreeShares) {
  Wait wait = for_cards(6);
  wait.room.unlisted = 2;
  for (std::uint64_t i = 1; i <= 4; ++i)
    wait.room.cards[0].holders.push_back({JobId{i}, "alice", "", Bytes::from_gib(i)});
  wait.room.cards[0].unlisted = 1;
  EXPECT_EQ(wait_text(wait),
            "8 GiB on one card; card 0: 3 GiB free of the 8 GiB needed, alice's job 4 holds 4 GiB, "
            "alice's job 3 holds 3 GiB, alice's job 2 holds 2 GiB, and 2 others; card 1: 3 GiB "
            "free of the 8 GiB needed; card 2: 3 GiB free of the 8 GiB needed; card 3: 3 GiB free "
            "of the 8 GiB needed; and 4 more");
  EXPECT_EQ(wait_text(wait, {}, Cards::kLeftOut), "8 GiB on one card");
  wait.room.cards = {CardWait{}};
  wait.room.cards[0].why = InTheWay::kExcluded;
  wait.room.unlisted = 0;
  EXPECT_EQ(wait_text(wait), "8 GiB on one card") << "it is not asked for";
}

TEST_F(WaitText, OfWhatIsNoCard) {
  Wait behind;
  behind.reason = Reason::kPriority;
  EXPECT_EQ(wait_text(behind), "its turn");
  behind.behind = Wait::Behind{JobId{4}, "bob", {}};
  EXPECT_EQ(wait_text(behind),
            "its turn, behind job 4 of bob, which waits for its turn, which is next");
  behind.behind->room = for_cards(1).room;
  EXPECT_EQ(wait_text(behind, {}, Cards::kLeftOut),
            "its turn, behind job 4 of bob, which waits for 8 GiB on one card");
  Wait parking;
  parking.parking = {JobId{1}, JobId{2, 3}};
  EXPECT_EQ(wait_text(parking), "room that is being made: jobs 1, 2_3 are being parked for it");
  Wait after;
  after.after = {{JobId{8}, core::When::kOk}, {JobId{9}, core::When::kAny}};
  after.more_after = 3;
  EXPECT_EQ(wait_text(after), "job 8 to end well, and 4 more");
  Wait later = for_cards(0);
  later.later = Wait::Later{{JobId{3}}, at(5)};
  EXPECT_EQ(wait_text(later, at(0)), "8 GiB on one card; job 3 may be parked for it at 13:05");
  Wait array;
  array.array = Wait::OfArray{JobId{7}, 2, 2};
  EXPECT_EQ(wait_text(array), "2 of array 7 run, and at most 2 may at a time");
  Wait cpus;
  cpus.cpus = Wait::Cpus{4, 16};
  EXPECT_EQ(wait_text(cpus), "4 of the 16 CPUs for jobs");
  Wait quota;
  quota.quota = Wait::OfQuota{"alice", {core::OverQuota::Limit::kCards, 3, 4, 2}};
  EXPECT_EQ(wait_text(quota), "the quota of alice: 3 of 4 cards, and this takes 2");
  EXPECT_EQ(wait_text(Wait{}), "its turn, which is next");
}

TEST_F(WaitText, OfAJobThatDoesNotWaitSaysWhatItDoes) {
  ExplainDocument document;
  document.state = core::JobState::kEnded;
  document.ended = at(5);
  document.outcome = core::Outcome::kOk;
  EXPECT_EQ(explained_text(document), "it has ended at 2026-11-15T12:05:00.000Z: ok");
  EXPECT_EQ(explained_text(document, at(0)), "it has ended at 13:05: ok");
  document.state = core::JobState::kParked;
  EXPECT_EQ(explained_text(document), "it is parked until somebody asks for it back");
  document.lost = "its mover is gone";
  EXPECT_EQ(explained_text(document), "it is parked, and cannot come back: its mover is gone");
  Wait wait;
  wait.room.returns = true;
  wait.failure = "no room";
  document.wait = wait;
  EXPECT_EQ(explained_text(document),
            "it is parked, and waits for its turn to come back; the last time: no room");
}

TEST_F(WaitText, ARemarkHasTheTimeOfItsReader) {
  core::Remark remark;
  EXPECT_TRUE(remark.empty());
  EXPECT_EQ(remark_text(remark), "");
  remark.idle = core::Remark::Idle{at(0), at(60), true};
  EXPECT_EQ(remark_text(remark),
            "idle since 2026-11-15T12:00:00.000Z, is parked at 2026-11-15T13:00:00.000Z");
  EXPECT_EQ(remark_text(remark, at(0)), "idle since 13:00, is parked at 14:00");
  remark.said = "escape: process 412";
  remark.idle = core::Remark::Idle{at(0), at(60)};
  EXPECT_EQ(remark_text(remark, at(0)), "escape: process 412; idle since 13:00, is ended at 14:00");
  JobView view{plain_job()};
  view.remark = remark;
  EXPECT_EQ(decode_ps(encode_ps({view}, {0}))->front().remark, remark);
  EXPECT_EQ(decode_ps_lines(encode_ps_lines({view}, {0}))->front().remark, remark);
  const std::string older = replaced(encode_ps({view}, {0}), "\"remarks\"", "\"unknown\"");
  EXPECT_EQ(decode_ps(older)->front().remark.said, remark_text(remark));
}

}  // namespace
}  // namespace mete::wire
