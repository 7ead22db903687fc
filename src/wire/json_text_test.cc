// SPDX-License-Identifier: Apache-2.0
#include "wire/json_text.h"

#include <gtest/gtest.h>

#include "wire/fields.h"

namespace mete::wire {
namespace {

std::string in_quotes(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

const std::string kWrong = "\xef\xbf\xbd";

TEST(JsonText, CommasAreWhereTheyBelong) {
  JsonText out;
  out.open();
  out.put("a", 1);
  out.key("b").open_list();
  out.close_list();
  out.key("c").open_list();
  out.value("x");
  out.value(true);
  out.open();
  out.close();
  out.raw("{\"y\":2}");
  out.close_list();
  out.put("d", std::map<std::string, std::string>{{"k\"", "v"}, {"l", ""}});
  out.put_if("absent", std::optional<int>());
  out.put_if("absent", std::string_view());
  out.put("e", std::vector<std::string>{"p", "q"});
  out.close();
  EXPECT_EQ(out.take(),
            R"({"a":1,"b":[],"c":["x",true,{},{"y":2}],"d":{"k\"":"v","l":""},"e":["p","q"]})");
}

TEST(JsonText, NumbersAreWhole) {
  JsonText out;
  out.open_list();
  out.value(INT64_MIN);
  out.value(UINT64_MAX);
  out.value(Bytes::from_gib(8));
  out.value(std::uint8_t{7});
  out.close_list();
  EXPECT_EQ(out.take(), "[-9223372036854775808,18446744073709551615,8589934592,7]");
}

TEST(JsonText, ControlCharactersAreEscaped) {
  EXPECT_EQ(in_quotes(std::string_view("\"\\\b\f\n\r\t\x01\x1f\0/\x7f", 12)),
            R"("\"\\\b\f\n\r\t\u0001\u001f\u0000/)"
            "\x7f\"");
}

// Equal to what nlohmann::json writes, as all documents had it before, for every text.
TEST(JsonText, EscapesAsTheLibraryDoes) {
  for (int first = 0; first < 128; ++first) {
    const std::string text = {'a', static_cast<char>(first), 'b'};
    EXPECT_EQ(in_quotes(text), Json(text).dump()) << first;
  }
  for (const char* text : {"", "caf\xc3\xa9", "\xf0\x9f\x9a\x80", "\xed\x9f\xbf", "\xee\x80\x80"})
    EXPECT_EQ(in_quotes(text), Json(text).dump());
}

TEST(JsonText, WhatIsNotUtf8IsReplaced) {
  EXPECT_EQ(in_quotes("caf\xe9!"), "\"caf" + kWrong + "!\"");
  EXPECT_EQ(in_quotes("\xff\xfe"), "\"" + kWrong + kWrong + "\"");
  EXPECT_EQ(in_quotes("\xc0\x80"), "\"" + kWrong + kWrong + "\"") << "two bytes for NUL";
  EXPECT_EQ(in_quotes("\xe0\x9f\xbf"), "\"" + kWrong + kWrong + kWrong + "\"")
      << "more than needed";
  EXPECT_EQ(in_quotes("\xed\xa0\x80"), "\"" + kWrong + kWrong + kWrong + "\"") << "a surrogate";
  EXPECT_EQ(in_quotes("\xf4\x90\x80\x80").size(), 2 + 4 * kWrong.size()) << "beyond U+10FFFF";
  EXPECT_EQ(in_quotes("\xe2\x82\"").substr(1, 3), kWrong) << "cut by what follows";
  EXPECT_EQ(in_quotes("x\xf0\x9f\x9a"), "\"x" + kWrong + kWrong + kWrong + "\"")
      << "cut at the end";
  EXPECT_TRUE(is_utf8("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x9a\x80"));
  for (const char* text : {"\xe9", "a\x80", "\xc1\xbf", "\xf8\x80", "\xe2\x82"})
    EXPECT_FALSE(is_utf8(text));
}

// Eight bytes are checked together: each byte in each position among plain ones.
TEST(JsonText, LongTextsAreEscapedByTheSameRules) {
  for (int odd = 0; odd < 256; ++odd)
    for (std::size_t at = 0; at < 20; ++at) {
      std::string text(20, at % 2 == 0 ? ' ' : '~');
      text[at] = static_cast<char>(odd);
      std::string expected = in_quotes(text.substr(0, at));
      expected.pop_back();
      expected += in_quotes(text.substr(at, 1)).substr(1);
      expected.pop_back();
      expected += in_quotes(text.substr(at + 1)).substr(1);
      ASSERT_EQ(in_quotes(text), expected) << odd << " at " << at;
    }
}

TEST(JsonText, AnyTwoBytesCanBeRead) {
  for (int first = 0; first < 256; ++first)
    for (int second = 0; second < 256; ++second) {
      const std::string text = {static_cast<char>(first), static_cast<char>(second)};
      const std::string json = in_quotes(text);
      const Result<Json> read = parse_json(json);
      ASSERT_TRUE(read.ok()) << first << " " << second;
      EXPECT_EQ(*read == text, is_utf8(text));
    }
}

TEST(JsonText, TimesAreThoseOfBase) {
  for (const std::int64_t ms :
       {0LL, 1LL, 951'782'399'999LL, 951'782'400'000LL, 951'868'800'000LL, 1'800'000'000'123LL,
        4'107'542'400'000LL, 253'402'300'799'999LL, 253'402'300'800'000LL, -1LL}) {
    std::string text;
    append_time(text, {ms});
    EXPECT_EQ(text, to_string(WallTime{ms}));
  }
  // Each day of 800 years, a second before it ends.
  for (std::int64_t day = 0; day < 800 * 366; ++day) {
    std::string text;
    append_time(text, {day * 86'400'000 - 1'000 + 86'400'000});
    ASSERT_EQ(text, to_string(WallTime{day * 86'400'000 - 1'000 + 86'400'000}));
  }
}

TEST(JsonText, ExactTextReadsBack) {
  for (const std::string text :
       {"", "plain", "caf\xc3\xa9", "caf\xe9", "\xff", "{\"hex\":\"00\"}"}) {
    JsonText out;
    out.exact(text);
    EXPECT_EQ(exact_text(*parse_json(out.take())), text);
  }
}

}  // namespace
}  // namespace mete::wire
