// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

namespace mete::base {
namespace {

TEST(Text, SplitKeepsEverythingBetweenSeparators) {
  EXPECT_EQ(split("3,2", ','), (std::vector<std::string_view>{"3", "2"}));
  EXPECT_EQ(split("a,,", ','), (std::vector<std::string_view>{"a", "", ""}));
  EXPECT_EQ(split("", ','), (std::vector<std::string_view>{""}));
}

TEST(Text, JoinPutsSeparatorsBetween) {
  EXPECT_EQ(join({"a", "b"}, ", "), "a, b");
  EXPECT_EQ(join({}, ", "), "");
  EXPECT_EQ(join({"", ""}, ":"), ":");
}

TEST(Text, TrimTakesSpaceFromBothEnds) {
  EXPECT_EQ(trim(" \ta b\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
}

TEST(Text, QuoteCannotMoveTheCursor) {
  EXPECT_EQ(quote("a\x1b[2J\n"), "'a\\x1b[2J\\x0a'");
  EXPECT_EQ(quote("\xc3\xa4"), "'\\xc3\\xa4'");
  EXPECT_EQ(quote(std::string(100, 'x')), "'" + std::string(80, 'x') + "...'");
}

TEST(Text, ParsesOnlyDigits) {
  EXPECT_EQ(*parse_uint("0042"), 42u);
  EXPECT_EQ(*parse_uint("18446744073709551615"), UINT64_MAX);
  for (const char* bad : {"", "+1", "-1", " 1", "1 ", "0x1", "18446744073709551616"})
    EXPECT_FALSE(parse_uint(bad)) << bad;
}

TEST(Text, ParsesThousandthsExactly) {
  EXPECT_EQ(*parse_milli("0.4"), (Milli{0, 400}));
  EXPECT_EQ(*parse_milli("0.001"), (Milli{0, 1}));
  EXPECT_EQ(*parse_milli(".05"), (Milli{0, 50}));
  EXPECT_EQ(*parse_milli("12"), (Milli{12, 0}));
  for (const char* bad : {"", ".", "1.", "0.0001", "1.2.3", "1e3", "-0.5"})
    EXPECT_FALSE(parse_milli(bad)) << bad;
}

TEST(Text, CountsEditsWithSwaps) {
  EXPECT_EQ(edit_distance("cap", "cap"), 0u);
  EXPECT_EQ(edit_distance("cpa", "cap"), 1u);
  EXPECT_EQ(edit_distance("", "cap"), 3u);
  EXPECT_EQ(edit_distance("selftets", "selftest"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(Text, NearestIsOnlyWhatMayHaveBeenMeant) {
  const std::vector<std::string_view> verbs{"cap", "cards", "selftest", "version"};
  EXPECT_EQ(nearest("vresion", verbs), "version");
  EXPECT_EQ(nearest("card", verbs), "cards");
  EXPECT_EQ(nearest("cat", verbs), "cap");
  EXPECT_EQ(nearest("frobnicate", verbs), "");
}

}  // namespace
}  // namespace mete::base
