// SPDX-License-Identifier: Apache-2.0
#include "wire/explain.h"

#include <gtest/gtest.h>

#include "wire/test/full.h"

namespace mete::wire {
namespace {

ExplainDocument full_document() {
  ExplainDocument document;
  document.at = {1'800'000'009'000};
  document.id = {12, 3};
  document.state = core::JobState::kPending;
  document.waiting_s = 77;
  document.reason = core::Reason::kReservation;
  document.place = 2;
  document.in_line = 9;
  document.forecast = core::Forecast{{}, {1'800'000'010'000}, {1'800'000'020'000}};
  ExplainDocument::Card card;
  card.index = 3;
  card.uuid = "GPU-3";
  card.name = "NVIDIA H200";
  card.state = "drained";
  card.needs = Bytes::from_gib(8);
  card.free = Bytes();
  card.holders = {{{7}, "bob", kMost, WallTime{1'800'000'030'000}, "limit", WallTime{5}},
                  {{8, 1}, "eve", Bytes(), {}, "", {}}};
  card.reserved = {{"carol", {1'800'000'040'000}, Bytes::from_gib(2)}};
  card.text = kOddText;
  document.cards = {card, {}};
  document.changes = {{"gpu", "with less", "--gpu 6G", {}},
                      {"job-ends", kOddText, "", core::JobId{7}}};
  document.text = kOddText;
  return document;
}

TEST(Explain, ReadsBack) {
  const ExplainDocument document = full_document();
  const std::string text = encode(document);
  const Result<ExplainDocument> again = decode_explain(text);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->at, document.at);
  EXPECT_EQ(again->id, document.id);
  EXPECT_EQ(again->state, document.state);
  EXPECT_EQ(again->waiting_s, document.waiting_s);
  EXPECT_EQ(again->reason, document.reason);
  EXPECT_EQ(again->place, document.place);
  EXPECT_EQ(again->in_line, document.in_line);
  EXPECT_EQ(again->forecast, document.forecast);
  EXPECT_EQ(again->cards, document.cards);
  EXPECT_EQ(again->changes, document.changes);
  EXPECT_EQ(again->text, document.text);
}

TEST(Explain, ADryRunReadsBack) {
  DryRunDocument document;
  document.at = {1'800'000'009'000};
  document.grant = {{3, "GPU-3", Bytes::from_gib(8), true}};
  document.parked = {{7}, {8, 1}};
  document.why = full_document();
  const Result<DryRunDocument> again = decode_dry_run(encode(document));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->at, document.at);
  EXPECT_FALSE(again->starts);
  EXPECT_EQ(again->grant, document.grant);
  EXPECT_EQ(again->parked, document.parked);
  EXPECT_EQ(again->why.reason, document.why.reason);
  EXPECT_EQ(again->why.cards, document.why.cards);
  EXPECT_EQ(again->why.changes, document.why.changes);
  document.starts = true;
  EXPECT_TRUE(decode_dry_run(encode(document))->starts);
  EXPECT_FALSE(decode_dry_run("{}").ok());
}

TEST(Explain, WhatIsNotKnownIsAbsent) {
  ExplainDocument document;
  document.id = {1};
  document.state = core::JobState::kRunning;
  const std::string text = encode(document);
  EXPECT_NE(text.find(R"("cards":[],"changes":[])"), std::string::npos) << text;
  for (const char* key : {"waiting_s", "reason", "place", "start_forecast", "null"})
    EXPECT_EQ(text.find(key), std::string::npos) << key;
  EXPECT_EQ(decode_explain(text)->reason, std::nullopt);
}

TEST(Explain, WrongKindsAreRefused) {
  const std::string good = encode(full_document());
  for (const auto& [what, with] : std::vector<std::pair<std::string, std::string>>{
           {"\"id\":\"12_3\"", "\"id\":12"},
           {"\"state\":\"pending\"", "\"state\":\"dreaming\""},
           {"\"place\":2", "\"place\":-2"},
           {"\"cards\":[", "\"cards\":[7,"},
           {"\"holders\":[", "\"holders\":[{\"id\":\"0\"},"},
           {"\"reserved\":[", "\"reserved\":[{},"},
           {"\"changes\":[", "\"changes\":[{\"kind\":7},"},
           {"\"job\":\"7\"", "\"job\":7"},
           {"\"by\":\"limit\"", "\"by\":7"},
           {"\"start_forecast\":{", "\"start_forecast\":[],\"x\":{"}})
    EXPECT_FALSE(decode_explain(replaced(good, what, with)).ok()) << with;
  EXPECT_TRUE(decode_explain(replaced(good, "\"reservation\"", "\"moon\"")).ok())
      << "a newer daemon's reason";
  EXPECT_FALSE(decode_explain("{}").ok());
}

}  // namespace
}  // namespace mete::wire
