// SPDX-License-Identifier: Apache-2.0
#include "wire/fields.h"

#include <gtest/gtest.h>

namespace mete::wire {
namespace {

std::string nested(std::size_t depth, const std::string& open, const std::string& close) {
  std::string text;
  for (std::size_t i = 0; i < depth; ++i) text += open;
  text += "1";
  for (std::size_t i = 0; i < depth; ++i) text += close;
  return text;
}

TEST(ParseJson, RefusesWhatIsNoJson) {
  for (const char* text : {"", " ", "{", "{\"a\":}", "{} x", "nul", "\xff\xfe", "{\"a\":\"\xff\"}",
                           "{'a':1}", "[1,]", "01", "+1", "{\"a\":\"\n\"}"})
    EXPECT_EQ(parse_json(text).error().code, ErrorCode::kCorrupt) << text;
}

TEST(ParseJson, RefusesDeepNestingAndTakesOurOwn) {
  EXPECT_TRUE(parse_json(nested(30, "[", "]")).ok());
  EXPECT_FALSE(parse_json(nested(40, "[", "]")).ok());
  EXPECT_FALSE(parse_json(nested(40, "{\"a\":", "}")).ok());
  EXPECT_FALSE(parse_json(nested(500'000, "[", "]")).ok());
  EXPECT_FALSE(parse_json(std::string(500'000, '[')).ok());
  EXPECT_TRUE(parse_json(nested(31, "{\"a\":", "}")).ok());
  EXPECT_TRUE(parse_json(nested(31, "[", "]")).ok());
  std::string edge;  // an empty object at the deepest allowed level
  for (int i = 0; i < 32; ++i) edge += "[";
  edge += "{}";
  for (int i = 0; i < 32; ++i) edge += "]";
  EXPECT_TRUE(parse_json(edge).ok());
}

TEST(ParseJson, RefusesObjectsOfTooManyKeys) {
  const auto object = [](int count) {
    std::string text = "{";
    for (int i = 0; i < count; ++i)
      text += (i == 0 ? "\"k" : ",\"k") + std::to_string(i) + "\":{\"a\":1,\"b\":2}";
    return text + "}";
  };
  EXPECT_TRUE(parse_json(object(200)).ok());
  EXPECT_FALSE(parse_json(object(300)).ok());
  EXPECT_FALSE(parse_json(object(100'000)).ok()) << "and at once: looking them up is quadratic";
  std::string many = "[";  // many small objects are fine
  for (int i = 0; i < 10'000; ++i) many += "{\"a\":1,\"b\":2},";
  many.back() = ']';
  EXPECT_TRUE(parse_json(many).ok());
}

TEST(WriteJson, TextThatIsNotUtf8IsReplaced) {
  const std::string text = write_json({{"name", "a\xff\xc3("}});
  EXPECT_EQ(text, "{\"name\":\"a\xef\xbf\xbd\xef\xbf\xbd(\"}");
  EXPECT_TRUE(parse_json(text).ok());
}

TEST(Fields, TheFirstThingThatIsWrongIsRemembered) {
  const Json json = *parse_json(R"({"n":-1,"t":5})");
  Fields fields(json, "the thing");
  EXPECT_EQ(fields.number("n"), 0u);
  EXPECT_EQ(fields.text("t"), "");
  ASSERT_FALSE(fields.ok());
  EXPECT_EQ(fields.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(fields.error().message.find("the thing: 'n' must be"), 0u) << fields.error().message;
}

TEST(Fields, NumbersThatDoNotFitAreWrongNeverCut) {
  const Json json = *parse_json(
      R"({"big":4294967296,"huge":18446744073709551615,"low":-2147483649,"real":1.5,"ok":-7,"over":1e30})");
  const auto wrong = [&json](auto read) {
    Fields fields(json, "the thing");
    EXPECT_FALSE(read(fields).has_value());
    return !fields.ok();
  };
  EXPECT_TRUE(wrong([](Fields& f) { return f.number_if<std::uint32_t>("big"); }));
  EXPECT_TRUE(wrong([](Fields& f) { return f.number_if<std::int64_t>("huge"); }));
  EXPECT_TRUE(wrong([](Fields& f) { return f.number_if<std::int32_t>("low"); }));
  EXPECT_TRUE(wrong([](Fields& f) { return f.number_if("real"); }));
  EXPECT_TRUE(wrong([](Fields& f) { return f.number_if("over"); }));
  EXPECT_TRUE(wrong([](Fields& f) { return f.number_if("ok"); }));
  Fields fields(json, "the thing");
  EXPECT_EQ(fields.number_if<int>("ok"), -7);
  EXPECT_EQ(fields.number_if("huge"), UINT64_MAX);
  EXPECT_EQ(fields.number_if("absent"), std::nullopt);
  EXPECT_TRUE(fields.ok());
}

TEST(Fields, NumbersOfAListFitTheirType) {
  const Json json = *parse_json(R"({"list":[0,4294967295,4294967296,18446744073709551615]})");
  Fields wide(json, "the thing");
  std::vector<std::uint64_t> all;
  EXPECT_TRUE(wide.get("list", all));
  EXPECT_EQ(all, (std::vector<std::uint64_t>{0, 4'294'967'295, 4'294'967'296, UINT64_MAX}));
  EXPECT_TRUE(wide.ok());
  Fields narrow(json, "the thing");
  std::vector<std::uint32_t> some;
  EXPECT_TRUE(narrow.get("list", some));
  EXPECT_FALSE(narrow.ok());
}

TEST(Fields, WrongKindsAreRefused) {
  const Json json =
      *parse_json(R"({"text":1,"flag":"yes","list":{},"texts":["a",1],"time":"now"})");
  const auto wrong = [&json](auto read) {
    Fields fields(json, "the thing");
    read(fields);
    return !fields.ok();
  };
  EXPECT_TRUE(wrong([](Fields& f) { (void)f.text_if("text"); }));
  EXPECT_TRUE(wrong([](Fields& f) { (void)f.flag("flag"); }));
  EXPECT_TRUE(wrong([](Fields& f) { (void)f.list("list"); }));
  EXPECT_TRUE(wrong([](Fields& f) { (void)f.texts("texts"); }));
  EXPECT_TRUE(wrong([](Fields& f) { (void)f.time_if("time"); }));
  EXPECT_TRUE(wrong([](Fields& f) { (void)f.text("absent"); }));
}

TEST(Fields, WhatIsNoObjectReadsAsEmptyAndIsWrong) {
  for (const char* text : {"[]", "1", "\"a\"", "null"}) {
    const Json json = *parse_json(text);
    Fields fields(json, "the thing");
    EXPECT_FALSE(fields.ok());
    EXPECT_FALSE(fields.has("a"));
    EXPECT_TRUE(fields.child("a").is_null());
  }
}

}  // namespace
}  // namespace mete::wire
