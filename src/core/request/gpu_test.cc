// SPDX-License-Identifier: Apache-2.0
// The grammar of --gpu, rule by rule: texts and their values, and refusals, each of which must have
// a hint. RapidCheck adds that every value is read back from its text, and that any text is
// accepted exactly or refused with a hint.
#include "core/request/gpu.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace mete::core {
namespace {

using Kind = CardCount::Kind;

GpuRequest parsed(std::string_view text) {
  const Result<GpuRequest> request = parse_gpu(text);
  EXPECT_TRUE(request.ok()) << text << ": " << (request.ok() ? "" : request.error().message);
  return request.ok() ? *request : GpuRequest{};
}

// The message, after checking the error's code and that it has a hint.
std::string refused(std::string_view text) {
  const Result<GpuRequest> request = parse_gpu(text);
  EXPECT_FALSE(request.ok()) << text << " was accepted as " << to_string(*request);
  if (request.ok()) return "";
  EXPECT_EQ(request.error().code, ErrorCode::kInvalid);
  EXPECT_FALSE(request.error().hint.empty()) << text;
  return request.error().message;
}

TEST(GpuRequest, SharesOfOneCard) {
  EXPECT_EQ(parsed("0.4"), (GpuRequest{{Kind::kOne}, Fraction{400}}));
  EXPECT_EQ(parsed("40%"), (GpuRequest{{Kind::kOne}, Fraction{400}}));
  EXPECT_EQ(parsed(".125"), (GpuRequest{{Kind::kOne}, Fraction{125}}));
  EXPECT_EQ(parsed("12.5%"), (GpuRequest{{Kind::kOne}, Fraction{125}}));
  EXPECT_EQ(parsed("0.999"), (GpuRequest{{Kind::kOne}, Fraction{999}}));
  EXPECT_EQ(parsed("100%"), (GpuRequest{{Kind::kOne}, Fraction{1000}}));
  EXPECT_EQ(parsed("1%"), (GpuRequest{{Kind::kOne}, Fraction{10}}));
}

TEST(GpuRequest, SizesOnOneCard) {
  EXPECT_EQ(parsed("8G"), (GpuRequest{{Kind::kOne}, Size{Bytes::from_gib(8)}}));
  EXPECT_EQ(parsed("8GiB"), parsed("8192M"));
  EXPECT_EQ(parsed("8GB"), parsed("8000MB"));
  EXPECT_EQ(parsed("2M"), (GpuRequest{{Kind::kOne}, Size{Bytes::from_mib(2)}}));
}

TEST(GpuRequest, WholeCardsAndNone) {
  EXPECT_EQ(parsed("0"), no_gpu());
  EXPECT_EQ(parsed("1"), whole_cards(1));
  EXPECT_EQ(parsed("16"), whole_cards(16));
  EXPECT_EQ(parsed("all"), (GpuRequest{{Kind::kAll}, WholeCard{}}));
}

TEST(GpuRequest, SharesOnSeveralCards) {
  EXPECT_EQ(parsed("4x40%"), (GpuRequest{{Kind::kNumber, 4}, Fraction{400}}));
  EXPECT_EQ(parsed("2x8G"), (GpuRequest{{Kind::kNumber, 2}, Size{Bytes::from_gib(8)}}));
  EXPECT_EQ(parsed("allx0.4"), (GpuRequest{{Kind::kAll}, Fraction{400}}));
  EXPECT_EQ(parsed("2x8G..20G"),
            (GpuRequest{{Kind::kNumber, 2}, Growing{Bytes::from_gib(8), Bytes::from_gib(20)}}));
}

TEST(GpuRequest, GrowingShares) {
  EXPECT_EQ(parsed("8G..20G"),
            (GpuRequest{{Kind::kOne}, Growing{Bytes::from_gib(8), Bytes::from_gib(20)}}));
  EXPECT_EQ(parsed("8G..all"), (GpuRequest{{Kind::kOne}, Growing{Bytes::from_gib(8), {}}}));
  EXPECT_EQ(parsed("grow"), parsed("1G..all"));
}

TEST(GpuRequest, OneCardByCountIsNotTheSameAsAShareAlone) {
  EXPECT_NE(parsed("1x8G"), parsed("8G"));
}

TEST(GpuRequest, SaysWhatIsWrong) {
  EXPECT_EQ(refused("1.5"), "--gpu '1.5': a share above 1 must be a whole number of cards");
  EXPECT_EQ(refused("1.0"), "--gpu '1.0': whole cards are written without a point");
  EXPECT_EQ(refused("0x8G"), "--gpu '0x8G': the number of cards must be at least 1");
  EXPECT_EQ(refused("8Q"), "--gpu '8Q': '8Q' is not a size: there is no unit 'Q'");
  EXPECT_EQ(refused("-1"), "--gpu '-1': it is negative");
  EXPECT_EQ(refused(""), "--gpu '': it is empty");
  EXPECT_EQ(refused("0.0"), "--gpu '0.0': a share must be more than 0");
  EXPECT_EQ(refused("0.0004"), "--gpu '0.0004': more than three decimals");
  EXPECT_EQ(refused("0%"), "--gpu '0%': a percentage goes from 1% to 100% of one card");
  EXPECT_EQ(refused("101%"), "--gpu '101%': a percentage goes from 1% to 100% of one card");
  EXPECT_EQ(refused("100.1%"), "--gpu '100.1%': a percentage goes from 1% to 100% of one card");
  EXPECT_EQ(refused("12.25%"),
            "--gpu '12.25%': a percentage has at most one decimal (thousandths of a card)");
  EXPECT_EQ(refused("2x1"), "--gpu '2x1': after x comes a share of a card, not a number of cards");
  EXPECT_EQ(refused("2x"), "--gpu '2x': the share is missing");
  EXPECT_EQ(refused("x8G"), "--gpu 'x8G': the number of cards before x is missing");
  EXPECT_EQ(refused("8Gx2"), "--gpu '8Gx2': '8G' is not a number of cards");
  EXPECT_EQ(refused("20G..8G"), "--gpu '20G..8G': the second size must be larger than the first");
  EXPECT_EQ(refused("1M"), "--gpu '1M': a size must be at least 2 MiB");
  EXPECT_EQ(refused("1025"), "--gpu '1025': more than 1024 cards cannot be asked for");
  EXPECT_EQ(refused("99999999999999999999"),
            "--gpu '99999999999999999999': more than 1024 cards cannot be asked for");
}

TEST(GpuRequest, RefusesEverythingElse) {
  for (const char* text : {" 1",     "1 ",       "8 G",      "+1",       "1e3",
                           "0.4%%",  "%",        "all%",     "allx",     "allxall",
                           "growx2", "2xgrow",   "xall",     "..",       "8G..",
                           "..8G",   "40%..60%", "0.1..0.2", "8G...20G", "0x0",
                           "00x8G",  "nan",      "inf",      "0x10",     "99999999999999999999G",
                           "1,5",    "ALL",      "\n",       "1.5G..",   "--gpu",
                           "1.2.3",  "8G..8G"})
    refused(text);
}

// The text is shown as written, with its value where that would be shown differently.
TEST(GpuRequest, IsShownAsItWasWritten) {
  for (const auto& [text, shown] : {
           std::pair("8GB", "8GB = 7.45 GiB"),
           {"8000MB", "8000MB = 7.45 GiB"},
           {"8000M", "8000M = 7.81 GiB"},
           {"8192M", "8192M = 8 GiB"},
           {"2x8GB", "2x8GB = 2x 7.45 GiB"},
           {"allx8GB", "allx8GB = all x 7.45 GiB"},
           {"8GB..20GB", "8GB..20GB = 7.45 GiB..18.62 GiB"},
           {"8GB..all", "8GB..all = 7.45 GiB..all"},
           {"8G", "8G"},
           {"8GiB", "8GiB"},
           {"8gib", "8gib"},
           {"1.5G", "1.5G"},
           {"512M", "512M"},
           {"2x8G", "2x8G"},
           {"8G..20G", "8G..20G"},
           {"8G..all", "8G..all"},
           {"grow", "grow"},
           {"0.4", "0.4"},
           {"40%", "40%"},
           {"4x12.5%", "4x12.5%"},
           {"1", "1"},
           {"all", "all"},
           {"0", "0"},
       }) {
    const Result<GpuRequest> request = parse_gpu(text);
    ASSERT_TRUE(request.ok()) << text;
    EXPECT_EQ(as_written(*request), text);
    EXPECT_EQ(with_size(*request), shown);
    const GpuRequest values{request->cards, request->memory};
    EXPECT_EQ(values, *request) << "the words are no part of it";
    EXPECT_EQ(values <=> *request, std::strong_ordering::equal);
    EXPECT_EQ(as_written(values), to_string(*request));
  }
  EXPECT_EQ(to_string(*parse_gpu("8GB")), "8GB");
  EXPECT_EQ(to_string(*parse_gpu("8000MB")), "8GB");
}

rc::Gen<Memory> any_memory() {
  const auto size = rc::gen::map(rc::gen::inRange<std::uint64_t>(2 << 20, 1ull << 50),
                                 [](std::uint64_t count) { return Bytes::from_bytes(count); });
  return rc::gen::oneOf(
      rc::gen::just(Memory(WholeCard{})),
      rc::gen::map(rc::gen::inRange<std::uint32_t>(1, 1001),
                   [](std::uint32_t milli) { return Memory(Fraction{milli}); }),
      rc::gen::map(size, [](Bytes bytes) { return Memory(Size{bytes}); }),
      rc::gen::map(rc::gen::pair(size, rc::gen::inRange<std::uint64_t>(0, 1ull << 50)),
                   [](const std::pair<Bytes, std::uint64_t>& p) {
                     if (p.second % 7 == 0) return Memory(Growing{p.first, std::nullopt});
                     return Memory(Growing{p.first, p.first + Bytes::from_bytes(p.second + 1)});
                   }));
}

rc::Gen<GpuRequest> any_request() {
  return rc::gen::map(
      rc::gen::pair(any_memory(), rc::gen::inRange<std::uint32_t>(0, kMaxCards + 3)),
      [](const std::pair<Memory, std::uint32_t>& p) {
        GpuRequest request{{Kind::kNumber, p.second}, p.first};
        const bool whole = std::holds_alternative<WholeCard>(p.first);
        if (p.second == 0) request = no_gpu();
        if (p.second > kMaxCards) request.cards = {Kind::kAll, 0};
        if (p.second == kMaxCards + 2 && !whole) request.cards = {Kind::kOne, 0};
        return request;
      });
}

RC_GTEST_PROP(GpuRequest, PrintedTextReadsBackAsTheSameRequest, ()) {
  const GpuRequest request = *any_request();
  const std::string text = to_string(request);
  const Result<GpuRequest> again = parse_gpu(text);
  RC_LOG() << text << "\n";
  RC_ASSERT(again.ok());
  RC_ASSERT(*again == request);
}

RC_GTEST_PROP(GpuRequest, AnyTextIsAcceptedExactlyOrRefusedWithAHint, ()) {
  const std::string alphabet = "0123456789.xXallgrow%GMKTiB-+ ";
  const auto text = *rc::gen::container<std::string>(rc::gen::elementOf(alphabet));
  const Result<GpuRequest> request = parse_gpu(text);
  if (request) {
    RC_ASSERT(*parse_gpu(to_string(*request)) == *request);
  } else {
    RC_ASSERT(!request.error().hint.empty());
    RC_ASSERT(request.error().code == ErrorCode::kInvalid);
  }
}

}  // namespace
}  // namespace mete::core
