// SPDX-License-Identifier: Apache-2.0
#include "wire/cards.h"

#include <gtest/gtest.h>

namespace mete::wire {
namespace {

CardView full_card() {
  CardView card;
  card.index = 3;
  card.uuid = "GPU-3";
  card.name = "NVIDIA \"H200\"";
  card.type = "H200";
  card.state = "drained";
  card.unusable = "split into MIG slices";
  card.total = Bytes::from_gib(141);
  card.capacity = Bytes::from_gib(140);
  card.granted = Bytes::from_gib(8);
  card.used = Bytes::from_gib(6);
  card.foreign = Bytes::from_gib(1);
  card.grantable = Bytes::from_gib(131);
  card.utilisation_pct = 97;
  card.temperature_c = -4;
  card.power_w = 612.5;
  card.power_limit_w = 700;
  card.reading_age_s = 0.25;
  card.numa = 1;
  card.links = {{0, 18}};
  card.jobs = {{"12", "alice", Bytes::from_gib(8), true, Bytes::from_gib(5), Bytes::from_gib(1),
                "train", WallTime{123}}};
  card.foreign_list = {{412, "bob", Bytes::from_gib(1), "python", 7},
                       {std::nullopt, "carol's mete", {}}};
  return card;
}

TEST(CardsDocument, ReadsBack) {
  const CardsDocument document{
      {1'800'000'000'123}, "the driver does not answer", {full_card(), {}}};
  const std::string text = encode(document);
  const Result<CardsDocument> again = decode_cards(text);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->at, document.at);
  EXPECT_EQ(again->trouble, document.trouble);
  ASSERT_EQ(again->cards.size(), 2u);
  const CardView& card = again->cards[0];
  EXPECT_EQ(card.temperature_c, -4);
  EXPECT_EQ(card.power_w, 612.5);
  EXPECT_EQ(card.jobs[0].whole, true);
  EXPECT_EQ(card.foreign_list[0].pid, 412);
  EXPECT_EQ(card.foreign_list[1].pid, std::nullopt);
  EXPECT_EQ(encode(*again), text) << "nothing was lost on the way";
}

TEST(CardsDocument, WhatIsNotKnownIsAbsent) {
  const std::string text = encode(CardsDocument{{0}, "", {CardView{}}});
  for (const char* key : {"total_bytes", "used_bytes", "temperature_c", "numa", "trouble", "null"})
    EXPECT_EQ(text.find(key), std::string::npos) << key;
  for (const char* key : {"\"links\":[]", "\"jobs\":[]", "\"foreign\":[]"})
    EXPECT_NE(text.find(key), std::string::npos) << key;
  EXPECT_EQ(decode_cards(text)->cards[0].total, std::nullopt);
}

TEST(CardsDocument, WrongKindsAndNumbersThatDoNotFitAreRefused) {
  const std::string start = R"({"at":"2026-11-15T05:50:43.123Z","cards":[)";
  const std::string card = R"({"index":0,"uuid":"u","name":"n","type":"t","state":"ok")";
  EXPECT_TRUE(decode_cards(start + card + "}]}").ok());
  for (const char* more :
       {",\"temperature_c\":\"hot\"", ",\"temperature_c\":99999999999", ",\"utilisation_pct\":-1",
        ",\"power_w\":\"much\"", ",\"links\":[{\"to\":4294967296,\"count\":1}]", ",\"links\":[7]",
        ",\"jobs\":[{\"id\":5}]", ",\"foreign\":[{\"pid\":\"x\",\"user\":\"u\"}]",
        ",\"total_bytes\":1.5"})
    EXPECT_FALSE(decode_cards(start + card + more + "}]}").ok()) << more;
  EXPECT_FALSE(decode_cards("{}").ok());
  EXPECT_FALSE(decode_cards(start + "7]}").ok());
}

TEST(DaemonView, ReadsBack) {
  DaemonView view{"0.2.0",    412,   "user", "/run/s", "/state",         77,     3, 4,
                  "best-fit", "odd", true,   60,       "127.0.0.1:9411", "taken"};
  const std::string text = encode(view, {0});
  const Result<DaemonView> again = decode_daemon(text);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->pending, 3u);
  EXPECT_EQ(again->running, 4u);
  EXPECT_EQ(again->idle_end_s, 60u);
  EXPECT_EQ(encode(*again, {0}), text);
  EXPECT_FALSE(decode_daemon("{}").ok());
}

}  // namespace
}  // namespace mete::wire
