// SPDX-License-Identifier: Apache-2.0
#include "wire/queue.h"

#include <gtest/gtest.h>

#include "wire/test/full.h"

namespace mete::wire {
namespace {

using core::JobId;

const WallTime kAt{1'800'000'009'000};

TEST(Changed, ReadsBack) {
  const ChangedDocument document{kAt, {JobId{12}, JobId{13, 0}}};
  const std::string text = encode(document);
  EXPECT_NE(text.find(R"("changed":["12","13_0"])"), std::string::npos) << text;
  const Result<ChangedDocument> again = decode_changed(text);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->at, kAt);
  EXPECT_EQ(again->changed, document.changed);
  EXPECT_TRUE(decode_changed(encode(ChangedDocument{kAt, {}}))->changed.empty());
  for (const std::string wrong : {"\"0\"", "12", "\"12_\"", "\"x\""})
    EXPECT_FALSE(decode_changed(replaced(text, "\"12\"", wrong)).ok()) << wrong;
  EXPECT_FALSE(decode_changed("{}").ok());
}

TEST(Wait, ReadsBack) {
  const WaitDocument document{kAt, {full_view(), {plain_job()}}};
  const std::string text = encode(document);
  const Result<WaitDocument> again = decode_wait(text);
  ASSERT_TRUE(again.ok()) << again.error().message;
  ASSERT_EQ(again->jobs.size(), 2u);
  EXPECT_EQ(again->jobs[0].job.id, (JobId{12, 3}));
  EXPECT_EQ(encode(*again), text);
  EXPECT_FALSE(decode_wait(replaced(text, "\"stopping\"", "\"dreaming\"")).ok());
}

TEST(Priority, ReadsBackWithinItsBounds) {
  for (const std::int32_t priority : {-1000, 0, 7, 1000})
    EXPECT_EQ(*decode_priority(encode_priority(priority)), priority);
  for (const char* text : {"{}", "[]", "", R"({"priority":1001})", R"({"priority":-1001})",
                           R"({"priority":"7"})", R"({"priority":1.5})"})
    EXPECT_FALSE(decode_priority(text).ok()) << text;
}

TEST(Quota, RequestReadsBack) {
  const QuotaRequest full{"alice", full_quota()};
  EXPECT_EQ(*decode_quota_request(encode(full)), full);
  const QuotaRequest nothing{"", {}};
  EXPECT_EQ(*decode_quota_request(encode(nothing)), nothing);
  const std::string text = encode(full);
  for (const auto& [what, with] : std::vector<std::pair<std::string, std::string>>{
           {"\"user\":\"alice\"", "\"user\":7"},
           {"\"cards\":1", "\"cards\":-1"},
           {"\"running\":3", "\"running\":4294967296"},
           {"\"jobs\":4", "\"jobs\":\"4\""},
           {"\"disk_bytes\":", "\"disk_bytes\":1.5,\"x\":"}})
    EXPECT_FALSE(decode_quota_request(replaced(text, what, with)).ok()) << with;
  EXPECT_FALSE(decode_quota_request("{}").ok());
}

TEST(Quota, ReadsBack) {
  QuotaDocument document{kAt, full_quota(), {}};
  QuotaDocument::User user;
  user.user = kOddText;
  user.own.cards = 2;
  user.limits = full_quota();
  user.held = {1, Bytes::from_gib(8), 2};
  user.jobs = 9;
  user.disk = kMost;
  document.users = {user, {}};
  const std::string text = encode(document);
  const Result<QuotaDocument> again = decode_quota(text);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->at, kAt);
  EXPECT_EQ(again->everybody, full_quota());
  EXPECT_EQ(again->users, document.users);
  EXPECT_FALSE(decode_quota(replaced(text, "\"used\":{", "\"used\":7,\"x\":{")).ok());
  EXPECT_FALSE(decode_quota(replaced(text, "\"own\":{", "\"own\":{\"cards\":\"\"},\"x\":{")).ok());
  EXPECT_FALSE(decode_quota("{}").ok());
}

TEST(Reserve, RequestReadsBack) {
  ReserveRequest request;
  request.user = "carol";
  request.request = full_spec().request;
  request.from = {1'800'000'000'000};
  request.until = {1'800'000'100'000};
  const std::string text = encode(request);
  const Result<ReserveRequest> again = decode_reserve_request(text);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(*again, request);
  for (const auto& [what, with] :
       std::vector<std::pair<std::string, std::string>>{{"\"gpu\":\"2x40%\"", "\"gpu\":\"much\""},
                                                        {"\"from\":\"", "\"from\":\"x"},
                                                        {"\"until\":", "\"untill\":"},
                                                        {"\"user\":\"carol\"", "\"user\":null"}})
    EXPECT_FALSE(decode_reserve_request(replaced(text, what, with)).ok()) << with;
}

TEST(Reservations, ReadBack) {
  const ReservationsDocument document{kAt, {full_reservation()}};
  const std::string text = encode(document);
  const Result<ReservationsDocument> again = decode_reservations(text);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->reservations, document.reservations);
  for (const char* wrong : {"\"0\"", "\"x\"", "7"})
    EXPECT_FALSE(decode_reservations(replaced(text, "\"18446744073709551615\"", wrong)).ok());
}

TEST(Stats, ReadBack) {
  StatsDocument document;
  document.at = kAt;
  document.states = {{"pending", 3}, {"ended", UINT64_MAX}};
  document.outcomes = {{"ok", 2}};
  document.users = {{"alice", 1, 2, 3, UINT64_MAX}};
  document.waits = {5, 1, 2, 3};
  document.forecasts = {1000, 799, 1250};
  const std::string text = encode(document);
  EXPECT_NE(text.find("\"held_pct\":79,\"confidence_pct\":80"), std::string::npos) << text;
  const Result<StatsDocument> again = decode_stats(text);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->states, document.states);
  EXPECT_EQ(again->outcomes, document.outcomes);
  EXPECT_EQ(again->users, document.users);
  EXPECT_EQ(again->waits, document.waits);
  EXPECT_EQ(again->forecasts, document.forecasts);
  EXPECT_FALSE(decode_stats(replaced(text, "\"given\":1000", "\"given\":-1")).ok());
  EXPECT_FALSE(decode_stats(replaced(text, "\"waits\":{", "\"waits\":[],\"x\":{")).ok());
  EXPECT_FALSE(decode_stats(replaced(text, "\"ok\":2", "\"ok\":\"2\"")).ok());
}

TEST(Stats, WithoutForecastsThereIsNoPercentage) {
  const std::string text = encode(StatsDocument{});
  EXPECT_EQ(text.find("held_pct"), std::string::npos);
  EXPECT_EQ(text.find("median_s"), std::string::npos);
  EXPECT_EQ(decode_stats(text)->forecasts, StatsDocument::Forecasts{});
}

}  // namespace
}  // namespace mete::wire
