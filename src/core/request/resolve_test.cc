// SPDX-License-Identifier: Apache-2.0
// Requests on a machine with cards of several types: the bytes on each card as text, and refusals
// with their reason. RapidCheck adds what holds for all shares: never more than the card has, nor
// than was asked for.
#include "core/request/resolve.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace mete::core {
namespace {

const Bytes kH200 = Bytes::from_mib(143771);
const Bytes kT4 = Bytes::from_mib(15360);

const std::vector<Card> kMixed{{0, "GPU-00aa", "H200", kH200},
                               {1, "GPU-00ab", "T4", kT4},
                               {2, "GPU-11cc", "H200", kH200},
                               {3, "GPU-22dd", "T4", kT4}};

struct Words {
  const char* gpu = nullptr;
  std::vector<std::string> devices = {};
  const char* type = nullptr;
};

Result<std::vector<CardShare>> resolved(const Words& words,
                                        const std::vector<Card>& cards = kMixed) {
  Request request;
  if (words.gpu != nullptr) request.gpu = *parse_gpu(words.gpu);
  request.devices = words.devices;
  if (words.type != nullptr) request.gpu_type = words.type;
  return resolve(request, cards);
}

// "0:57508M 2:57508M": index and cap of each card, in the program's order.
std::string summary(const Words& words, const std::vector<Card>& cards = kMixed) {
  const Result<std::vector<CardShare>> shares = resolved(words, cards);
  EXPECT_TRUE(shares.ok()) << shares.error().message;
  if (!shares) return "";
  std::vector<std::string> parts;
  for (const CardShare& share : *shares)
    parts.push_back(std::to_string(share.card.index) + ":" + to_exact_string(share.limit));
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : " ") + part;
  return text;
}

Error refused(const Words& words, const std::vector<Card>& cards = kMixed) {
  const Result<std::vector<CardShare>> shares = resolved(words, cards);
  EXPECT_FALSE(shares.ok());
  return shares.ok() ? Error{} : shares.error();
}

TEST(Resolve, TakesCardsInTheOrderGiven) {
  EXPECT_EQ(summary({"8G"}), "0:8G");
  EXPECT_EQ(summary({"2x8G"}), "0:8G 1:8G");
  EXPECT_EQ(summary({"2"}), "0:143771M 1:15G");
  const std::vector<Card> backwards(kMixed.rbegin(), kMixed.rend());
  EXPECT_EQ(summary({"2x8G"}, backwards), "3:8G 2:8G");
}

TEST(Resolve, SkipsCardsThatAreTooSmall) { EXPECT_EQ(summary({"2x20G"}), "0:20G 2:20G"); }

TEST(Resolve, CutsSharesToTwoMiB) {
  EXPECT_EQ(summary({"40%"}), "0:57508M");    // 57508.4 MiB
  EXPECT_EQ(summary({"0.001"}), "0:142M");    // 143.771 MiB
  EXPECT_EQ(summary({"8GB"}), "0:7628M");     // 7629.39 MiB
  EXPECT_EQ(summary({"100%"}), "0:143770M");  // the card is 143771 MiB
  EXPECT_EQ(summary({"1"}), "0:143771M");     // a whole card is not a share
}

TEST(Resolve, DevicesDecideCardsAndOrder) {
  EXPECT_EQ(summary({nullptr, {"3", "2"}}), "3:15G 2:143771M");
  EXPECT_EQ(summary({"40%", {"3", "2"}}), "3:6G 2:57508M");
  EXPECT_EQ(summary({"2x8G", {"3", "2"}}), "3:8G 2:8G");
  EXPECT_EQ(summary({"8G", {"GPU-11"}}), "2:8G");
}

TEST(Resolve, TypeSelectsCards) {
  EXPECT_EQ(summary({"1G", {}, "t4"}), "1:1G");
  EXPECT_EQ(summary({"allx50%", {}, "T4"}), "1:7680M 3:7680M");
  EXPECT_EQ(refused({"1G", {}, "A100"}).code, ErrorCode::kInfeasible);
  EXPECT_EQ(refused({"1G", {}, "A100"}).evidence, "cards here: H200, T4");
}

TEST(Resolve, GrowingSharesKeepBothEnds) {
  const Result<std::vector<CardShare>> shares = resolved({"8G..all"});
  ASSERT_TRUE(shares);
  EXPECT_EQ(shares->front().from, Bytes::from_gib(8));
  EXPECT_EQ(shares->front().limit, Bytes::from_mib(143770));
  EXPECT_EQ(resolved({"8G..20G", {"1"}})->front().limit, kT4);
}

TEST(Resolve, ZeroNeedsNoCards) { EXPECT_EQ(summary({"0"}, {}), ""); }

TEST(Resolve, SaysWhatCanNeverFitAndWhatWould) {
  const Error size = refused({"200G"});
  EXPECT_EQ(size.code, ErrorCode::kInfeasible);
  EXPECT_EQ(size.message, "--gpu 200G can never fit here");
  EXPECT_EQ(size.evidence, "the largest card is card 0 (H200, 140.4 GiB)");
  EXPECT_EQ(size.hint, "--gpu 140.4G would fit");

  const Error decimal = refused({"200GB"});
  EXPECT_EQ(decimal.message, "--gpu 200GB can never fit here");
  EXPECT_EQ(decimal.evidence, "200GB = 186.26 GiB; the largest card is card 0 (H200, 140.4 GiB)");

  const Error count = refused({"3x20G"});
  EXPECT_EQ(count.evidence,
            "the largest card is card 0 (H200, 140.4 GiB); 2 cards of 4 are large enough");
  EXPECT_EQ(count.hint, "--gpu 2x20G would fit");

  EXPECT_EQ(refused({"5"}).message, "--gpu 5 can never fit here");
  EXPECT_EQ(refused({"5"}).evidence, "4 cards can be used");
  EXPECT_EQ(refused({"5"}).hint, "--gpu 4 would fit");
  EXPECT_EQ(refused({"allx20G"}).hint, "--gpu 2x20G would fit");
  EXPECT_EQ(refused({"200G..300G"}).code, ErrorCode::kInfeasible);
  EXPECT_EQ(refused({"20G", {"1"}}).code, ErrorCode::kInfeasible);
  EXPECT_EQ(refused({"8G", {"7"}}).code, ErrorCode::kInfeasible);
  EXPECT_EQ(refused({"8G", {"7"}}).evidence, "cards here: 0, 1, 2, 3");
  EXPECT_EQ(refused({"8G"}, {}).message, "this machine has no usable GPU");
}

TEST(Resolve, RefusesContradictions) {
  for (const Words& words : std::vector<Words>{{"0", {"1"}},
                                               {"0", {}, "T4"},
                                               {"all", {"1"}},
                                               {"3x8G", {"1", "2"}},
                                               {"1", {"1", "2"}},
                                               {"1x8G", {"1", "2"}},
                                               {"8G", {"1", "1"}},
                                               {"8G", {"1", "GPU-00ab"}},
                                               {"8G", {"0"}, "T4"},
                                               {"8G", {"GPU-00"}},
                                               {"8G", {"x"}},
                                               {"8G", {""}},
                                               {"8G", {"0", "-1"}},
                                               {}}) {
    const Error error = refused(words);
    EXPECT_EQ(error.code, ErrorCode::kInvalid) << error.message;
    EXPECT_FALSE(error.hint.empty()) << error.message;
  }
}

RC_GTEST_PROP(Resolve, NeverGivesMoreThanTheCardNorThanWasAsked, ()) {
  const auto milli = *rc::gen::inRange<std::uint32_t>(1, 1001);
  const auto mib = *rc::gen::inRange<std::uint64_t>(1, 1 << 20);
  const Card card{0, "GPU-0", "X", Bytes::from_mib(mib)};
  Request request;
  request.gpu = GpuRequest{{CardCount::Kind::kOne, 0}, Fraction{milli}};
  const Result<std::vector<CardShare>> shares = resolve(request, {card});
  if (!shares) {
    RC_ASSERT(mib * milli < 2000);  // less than one granule
    return;
  }
  const Bytes limit = shares->front().limit;
  RC_ASSERT(limit.count() % kGranule.count() == 0);
  RC_ASSERT(limit <= card.capacity);
  RC_ASSERT(limit.count() * 1000 <= card.capacity.count() * milli);
  RC_ASSERT((limit + kGranule).count() * 1000 > card.capacity.count() * milli);
}

}  // namespace
}  // namespace mete::core
