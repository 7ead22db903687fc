// SPDX-License-Identifier: Apache-2.0
// How words become values, and values words; and the hash of points, whose numbers are written down
// here since they must be equal on every machine.
#include "core/sweep/value.h"

#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <set>

namespace mete::core::sweep {
namespace {

using Kind = Value::Kind;

TEST(SweepValue, GuessesIntegers) {
  for (const char* word : {"0", "32", "-3", "+3", "9223372036854775807", "-0"}) {
    EXPECT_EQ(guess(word).kind, Kind::kInteger) << word;
    EXPECT_EQ(guess(word).text, word);
  }
  EXPECT_EQ(guess("32").number, 32);
  EXPECT_EQ(guess("-3").number, -3);
  EXPECT_EQ(guess("+3").number, 3);
}

TEST(SweepValue, GuessesReals) {
  for (const char* word : {"1e-3", "0.5", ".5", "5.", "-2.5E+3", "+.5", "99999999999999999999"}) {
    EXPECT_EQ(guess(word).kind, Kind::kReal) << word;
    EXPECT_EQ(guess(word).text, word);
  }
  EXPECT_EQ(guess("1e-3").number, 1e-3);
  EXPECT_EQ(guess("-2.5E+3").number, -2500);
  EXPECT_EQ(guess("+.5").number, 0.5);
}

TEST(SweepValue, GuessesBools) {
  EXPECT_EQ(guess("true"), of_bool(true));
  EXPECT_EQ(guess("true").number, 1);
  EXPECT_EQ(guess("false"), of_bool(false));
  EXPECT_EQ(guess("false").number, 0);
}

TEST(SweepValue, GuessesThatEverythingElseIsText) {
  for (const char* word :
       {"",     "adam", "nan",   "inf", "-inf",  "NaN",    "Infinity", "True", "007",
        "00.5", "0x10", "1_000", "1e",  "1e999", "1e-999", "-",        "+",    "--3",
        "+-3",  "-+3",  ".",     "3 ",  " 3",    "1.2.3",  "3x"}) {
    EXPECT_EQ(guess(word).kind, Kind::kText) << word;
    EXPECT_EQ(guess(word).text, word);
  }
}

TEST(SweepValue, TextStaysText) {
  EXPECT_EQ(of_text("3").kind, Kind::kText);
  EXPECT_NE(of_text("3"), of_integer(3));
  EXPECT_EQ(of_text("3").text, of_integer(3).text);
}

TEST(SweepValue, ValuesWithEqualNumbersAndOtherWordsDiffer) {
  EXPECT_NE(guess("1e-3"), guess("0.001"));
  EXPECT_EQ(guess("0.001"), of_real(0.001));
}

TEST(SweepValue, IntegersHaveTheirDigits) {
  EXPECT_EQ(of_integer(-7).text, "-7");
  EXPECT_EQ(of_integer(std::numeric_limits<std::int64_t>::min()).text, "-9223372036854775808");
}

TEST(SweepValue, RealsHaveTheShortestTextThatReadsBack) {
  EXPECT_EQ(of_real(0.1).text, "0.1");
  EXPECT_EQ(of_real(0.1 + 0.2).text, "0.30000000000000004");
  EXPECT_EQ(of_real(1e-5).text, "1e-05");
  EXPECT_EQ(of_real(3).text, "3");
  EXPECT_EQ(of_real(-0.0).text, "0");
  EXPECT_FALSE(std::signbit(of_real(-0.0).number));
  double x = 1e-300;
  for (int i = 0; i < 2000; ++i, x *= 1.99) {
    const Value value = of_real(x);
    double back = 0;
    std::from_chars(value.text.data(), value.text.data() + value.text.size(), back);
    EXPECT_EQ(back, x);
    EXPECT_EQ(value.number, x);
  }
}

TEST(SweepValue, HashesAreEqualOnEveryMachine) {
  EXPECT_EQ(hash({}), 0xa8c7f832281a39c5);
  EXPECT_EQ(hash({of_integer(32), std::nullopt, of_text("adam")}), 0xb5304e2730af88ad);
}

TEST(SweepValue, HashesTellPointsApart) {
  const std::vector<Point> points = {{},
                                     {std::nullopt},
                                     {std::nullopt, std::nullopt},
                                     {of_text("")},
                                     {of_text("1")},
                                     {of_integer(1)},
                                     {of_real(1)},
                                     {of_text("ab"), of_text("c")},
                                     {of_text("a"), of_text("bc")},
                                     {of_text("c"), of_text("ab")},
                                     {of_text("ab"), std::nullopt, of_text("c")}};
  std::set<std::uint64_t> hashes;
  for (const Point& point : points) hashes.insert(hash(point));
  EXPECT_EQ(hashes.size(), points.size());
}

}  // namespace
}  // namespace mete::core::sweep
