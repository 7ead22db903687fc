// SPDX-License-Identifier: Apache-2.0
#include "wire/snapshot.h"

#include <gtest/gtest.h>

#include "wire/test/full.h"

namespace mete::wire {
namespace {

constexpr WallTime kNow{1'800'000'000'000};

Past past() {
  return {{{5, kNow, {std::nullopt, 0, 97}}, {60, kNow, {12}}}, {{5, kNow, {4096, std::nullopt}}}};
}

Snapshot full() {
  Snapshot snapshot;
  snapshot.at = kNow;
  snapshot.seq = UINT64_MAX;
  snapshot.trouble = "the driver does not answer";
  snapshot.driver = "580.159.04";
  snapshot.daemon = {"0.2.0", 412, "user",     "/run/s", "/state", 77,
                     3,       4,   "best-fit", "odd",    true,     60};
  CardView card;
  card.index = 3;
  card.power_limit_w = 700;
  card.foreign_list = {{412, "bob", Bytes::from_gib(1), "python", 7}};
  snapshot.cards = {card, {}};
  Snapshot::Job job{full_view(), {}, {Bytes::from_gib(7), std::nullopt}, 97};
  job.processes = {{412, 98765, 400, 3, kOddText, Bytes::from_gib(3), 0},
                   {413, 0, 0, 0, "", std::nullopt, std::nullopt}};
  snapshot.jobs = {job, {JobView{plain_job()}, {}, {}, {}}};
  snapshot.queue = {{{core::JobId{12, 3}, 2}, {core::JobId{13}, std::nullopt}},
                    7,
                    {{"held", 1}, {"resources", 9}}};
  snapshot.history = {{{"GPU-3", past()}}, {{core::JobId{12, 3}, past()}}};
  return snapshot;
}

TEST(Snapshot, ReadsBack) {
  const Snapshot snapshot = full();
  const std::string text = encode(snapshot);
  const Result<Snapshot> again = decode_snapshot(text);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(encode(*again), text) << "nothing was lost on the way";
  EXPECT_EQ(again->seq, snapshot.seq);
  EXPECT_EQ(again->jobs[0].processes, snapshot.jobs[0].processes);
  EXPECT_EQ(again->jobs[0].peaks, snapshot.jobs[0].peaks);
  EXPECT_EQ(again->queue, snapshot.queue);
  EXPECT_EQ(again->history, snapshot.history);
  EXPECT_EQ(again->cards[0].foreign_list[0].name, "python");
  EXPECT_EQ(again->daemon.pid, 412);
}

TEST(Snapshot, WhatIsNotKnownIsAbsent) {
  Snapshot snapshot;
  snapshot.jobs = {{JobView{plain_job()}, {{}}, {}, {}}};
  const std::string text = encode(snapshot);
  for (const char* key : {"trouble", "driver\"", "history", "utilisation_pct", "used_bytes",
                          "start_ticks", "parent", "null"})
    EXPECT_EQ(text.find(key), std::string::npos) << key;
  EXPECT_EQ(decode_snapshot(text)->history, std::nullopt);
  EXPECT_EQ(decode_snapshot(text)->jobs[0].utilisation_pct, std::nullopt);
}

TEST(Snapshot, ZeroIsAReading) {
  Snapshot snapshot;
  snapshot.jobs = {{JobView{plain_job()}, {}, {Bytes()}, 0}};
  const Result<Snapshot> again = decode_snapshot(encode(snapshot));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->jobs[0].utilisation_pct, 0u);
  EXPECT_EQ(again->jobs[0].peaks, std::vector<std::optional<Bytes>>{Bytes()});
}

TEST(Snapshot, WrongKindsAndNumbersThatDoNotFitAreRefused) {
  const std::string text = encode(full());
  ASSERT_TRUE(decode_snapshot(text).ok());
  const std::pair<const char*, const char*> wrong[] = {
      {"\"step_s\":5", "\"step_s\":-5"},
      {"[null,0,97]", "[null,0,\"97\"]"},
      {"[null,0,97]", "[null,0,4294967296]"},
      {"\"pid\":413", "\"pid\":4294967296"},
      {"\"left_off\":7", "\"left_off\":true"},
      {"\"place\":2", "\"place\":\"2\""},
      {"[7516192768,null]", "[7.5,null]"},
      {"\"held\":1", "\"held\":-1"},
      {"\"last_at\":\"2027", "\"last_at\":\"year 2027"},
      {"\"uptime_s\":77", "\"uptime_s\":-1"}};
  for (const auto& [what, with] : wrong)
    EXPECT_FALSE(decode_snapshot(replaced(text, what, with)).ok()) << with;
  for (const char* no : {"", "{}", "[]", "{\"at\":7}"})
    EXPECT_FALSE(decode_snapshot(no).ok()) << no;
}

TEST(Snapshot, HistoryIsCarriedOnWhereItWasLeftOut) {
  Snapshot next;
  carry_history(next, full());
  EXPECT_EQ(next.history, full().history);
  Snapshot newer;
  newer.history.emplace();
  carry_history(newer, full());
  EXPECT_EQ(newer.history, History{});
}

}  // namespace
}  // namespace mete::wire
