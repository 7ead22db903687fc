// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

#include <array>

#include "base/mark.h"

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

TEST(Text, AMarkStandsBelowItsCharacter) {
  EXPECT_EQ(marked("a b", 2), "a b\n  ^");
  EXPECT_EQ(marked("", 0), "\n^");
  EXPECT_EQ(marked("ab", 2), "ab\n  ^") << "behind the last";
  EXPECT_EQ(marked("äb", 2), "äb\n ^");
  EXPECT_EQ(marked("äb", 1), "äb\n^") << "inside a character";
  EXPECT_EQ(marked("漢b", 3), "漢b\n  ^");
  EXPECT_EQ(marked("a\tb\nc", 4), "a b c\n    ^");
  EXPECT_EQ(marked("\x1b"
                   "b",
                   1),
            "\\x1bb\n    ^");
  const std::string text = std::string(100, 'x') + "y" + std::string(100, 'z');
  EXPECT_EQ(marked(text, 100),
            std::string(50, 'x') + "y" + std::string(27, 'z') + "\n" + std::string(50, ' ') + "^");
}

TEST(Text, NearestIsOnlyWhatMayHaveBeenMeant) {
  const std::vector<std::string_view> verbs{"cap", "cards", "selftest", "version"};
  EXPECT_EQ(nearest("vresion", verbs), "version");
  EXPECT_EQ(nearest("card", verbs), "cards");
  EXPECT_EQ(nearest("cat", verbs), "cap");
  EXPECT_EQ(nearest("frobnicate", verbs), "");
  EXPECT_EQ(nearest("gpus", {"cpus", "gpu"}), "gpu") << "another ending, not another word";
  EXPECT_EQ(nearest("gpus", {"gpu", "cpus"}), "gpu");
  EXPECT_EQ(nearest("cpu", {"gpu", "cpus"}), "cpus");
}

TEST(AsUtf8, MarksWhatIsNone) {
  for (const char* text : {"", "plain\n\x1b", "Größe", "🙂"}) EXPECT_EQ(as_utf8(text), text);
  EXPECT_EQ(as_utf8("a\xff\xc3"), "a\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(as_utf8(as_utf8("\xf0\x9f\x99")), as_utf8("\xf0\x9f\x99"));
}

TEST(Printable, LeavesWordsAsTheyAre) {
  for (const char* text : {"", "plain text 1~", "Größe", "日本語", "→ 8 GiB …", "🙂"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(printable("a\x1b[2Jb\n\x7f"), "a\\x1b[2Jb\\x0a\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m");  // U+009B: CSI
  EXPECT_EQ(printable("\xc2\x80\xc2\xa0"), "\\xc2\\x80\xc2\xa0");
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "\\x9b31m");
}

TEST(Printable, ShowsWhatWouldTurnTheDirection) {
  EXPECT_EQ(printable("a\u202eb"), "a\\xe2\\x80\\xaeb");
  for (const char* text : {"\u202a", "\u202e", "\u2066", "\u2069", "\u200f", "\u061c", "\u2028"})
    EXPECT_EQ(printable(text).find(text), std::string::npos) << text;
}

TEST(PrintableJson, MeansTheSameAndMovesNoCursor) {
  for (const char* json : {"{}", "{\"name\":\"Größe 日本語 🙂\\n\"}\n", "[\"~\"]"})
    EXPECT_EQ(printable_json(json), json);
  EXPECT_EQ(printable_json("[\"a\u009b31m\u0080\x7f\"]"), "[\"a\\u009b31m\\u0080\\u007f\"]");
  EXPECT_EQ(printable_json("\"\u202e ä \u2066\u061c\u2028\""),
            "\"\\u202e ä \\u2066\\u061c\\u2028\"");
  EXPECT_EQ(printable_json("\"\xff\xc2\""), "\"\\ufffd\\ufffd\"");
}

TEST(Hex, ThereAndBack) {
  EXPECT_EQ(to_hex(std::string_view("\0\x7f\xff", 3)), "007fff");
  EXPECT_EQ(from_hex("007fff"), std::string("\0\x7f\xff", 3));
  EXPECT_EQ(from_hex(""), "");
  for (const char* wrong : {"0", "0g", "0F", " 0", "0x"}) EXPECT_EQ(from_hex(wrong), std::nullopt);
  std::array<std::uint8_t, 2> value{1, 2};
  EXPECT_EQ(hex_of(value), "0102");
  EXPECT_TRUE(take_hex("0a0b", value));
  EXPECT_EQ(value[1], 11);
  EXPECT_FALSE(take_hex("0a", value));
  EXPECT_FALSE(take_hex("0a0z", value));
}

TEST(Printable, ShowsBytesThatAreNoText) {
  EXPECT_EQ(printable("\xff"
                      "a\xe2\x82"),
            "\\xffa\\xe2\\x82");
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(printable("\xe0\x80\x9b"), "\\xe0\\x80\\x9b");  // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(printable(std::string_view("\0x", 2)), "\\x00x");
}

}  // namespace
}  // namespace mete::base
