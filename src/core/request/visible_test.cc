// SPDX-License-Identifier: Apache-2.0
#include "core/request/visible.h"

#include <gtest/gtest.h>

namespace mete::core {
namespace {

const std::vector<Card> kCards{{0, "GPU-00aa", "H200", Bytes::from_gib(140)},
                               {1, "GPU-00ab", "H200", Bytes::from_gib(140)},
                               {2, "GPU-11cc", "T4", Bytes::from_gib(15)}};

std::string indices(const std::optional<std::string>& text) {
  const Result<std::vector<Card>> cards = visible_cards(kCards, text);
  EXPECT_TRUE(cards.ok());
  std::string seen;
  if (cards)
    for (const Card& card : *cards) seen += std::to_string(card.index);
  return seen;
}

TEST(VisibleCards, AreAllWhenNothingIsSaid) { EXPECT_EQ(indices(std::nullopt), "012"); }

TEST(VisibleCards, AreThoseNamedInTheirOrder) {
  EXPECT_EQ(indices("2,0"), "20");
  EXPECT_EQ(indices("GPU-11,GPU-00ab"), "21");
  EXPECT_EQ(indices(" 1 , 0"), "10");
}

TEST(VisibleCards, EndAtTheFirstEntryThatNamesNone) {
  EXPECT_EQ(indices(""), "");
  EXPECT_EQ(indices("-1"), "");
  EXPECT_EQ(indices("1,7,0"), "1");
  EXPECT_EQ(indices("NoDevFiles"), "");
  EXPECT_EQ(indices("99999999999999999999"), "");
}

TEST(VisibleCards, AreNotGuessed) {
  EXPECT_EQ(visible_cards(kCards, "GPU-00").error().code, ErrorCode::kInvalid);
  EXPECT_EQ(visible_cards(kCards, "0,GPU-00aa").error().code, ErrorCode::kInvalid);
  EXPECT_EQ(visible_cards(kCards, "MIG-1").error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace mete::core
