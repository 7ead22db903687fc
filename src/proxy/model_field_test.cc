// SPDX-License-Identifier: Apache-2.0
// Each body is fed whole and byte by byte: both must agree.
#include "proxy/model_field.h"

#include <gtest/gtest.h>

namespace mete::proxy {
namespace {

std::string answer(const ModelField& field) {
  const Result<std::string> model = field.model();
  return model ? *model : "! " + model.error().message;
}

std::string model_of(std::string_view body) {
  ModelField whole;
  whole.feed(body);
  for (const std::size_t size : {1u, 3u, 8u, 9u}) {
    ModelField pieces;
    for (std::size_t at = 0; at < body.size(); at += size) pieces.feed(body.substr(at, size));
    EXPECT_EQ(answer(pieces), answer(whole)) << body;
  }
  return answer(whole);
}

TEST(ModelField, FindsTheModelAnywhere) {
  EXPECT_EQ(model_of(R"({"model":"m"})"), "m");
  EXPECT_EQ(model_of(" {\n\"model\" : \"llama-8b\" , \"n\": 1}\r\n"), "llama-8b");
  EXPECT_EQ(model_of(R"({"messages":[{"role":"user","content":"model"}],"model":"m"})"), "m");
  EXPECT_EQ(model_of(R"({"a":{"model":"x"},"b":[{"model":"y"}],"model":"m","c":{"model":1}})"),
            "m");
  EXPECT_EQ(model_of(R"({"a":-1.5E+3,"b":true,"c":null,"d":[],"e":{},"model":"m"})"), "m");
  EXPECT_EQ(model_of("{\"x\":\"" + std::string(100'000, 'y') + "\",\"model\":\"m\"}"), "m");
}

TEST(ModelField, EscapesAreUndone) {
  EXPECT_EQ(model_of(R"({"\u006dodel":"m"})"), "m");
  EXPECT_EQ(model_of(R"({"mod\u0065l":"a\/b\"c\\d"})"), "a/b\"c\\d");
  EXPECT_EQ(model_of(R"({"model":"\u00e4\u20ac\ud83d\ude00"})"), "ä€😀");
  EXPECT_EQ(model_of(R"({"model":"\ud83dx\ude00"})"), "\xef\xbf\xbdx\xef\xbf\xbd");
  EXPECT_EQ(model_of(R"({"x":"\"model\":\"no\"\\","model":"m"})"), "m");
  EXPECT_EQ(model_of(R"({"model\u0000":"x","model":"m"})"), "m");
}

TEST(ModelField, ASecondModelIsRefused) {
  EXPECT_EQ(model_of(R"({"model":"a","model":"a"})"), "! there are two keys model");
  EXPECT_EQ(model_of(R"({"model":"a","\u006dodel":"b"})"), "! there are two keys model");
}

TEST(ModelField, WhatIsNoModelIsRefused) {
  EXPECT_EQ(model_of(""), "! the body is empty");
  EXPECT_EQ(model_of("  "), "! the body is empty");
  EXPECT_EQ(model_of("{}"), "! the body has no model");
  EXPECT_EQ(model_of(R"({"models":"m"})"), "! the body has no model");
  EXPECT_EQ(model_of(R"({"model":"cheap","Model":"dear"})"), "! there is a key Model: write model")
      << "some readers ignore the case, and take the later one";
  EXPECT_EQ(model_of(R"({"model":1})"), "! model is no text");
  EXPECT_EQ(model_of(R"({"model":null})"), "! model is no text");
  EXPECT_EQ(model_of(R"({"model":{"model":"m"}})"), "! model is no text");
  EXPECT_EQ(model_of(R"({"model":""})"), "! model is empty");
  EXPECT_EQ(model_of("{\"model\":\"" + std::string(257, 'x') + "\"}"),
            "! model has more than 256 bytes");
  EXPECT_EQ(model_of(R"(["model","m"])"), "! the body is no JSON object");
  EXPECT_EQ(model_of(R"("model")"), "! the body is no JSON object");
}

TEST(ModelField, BrokenJsonIsRefused) {
  const char* kBroken = " in the JSON of the body";
  EXPECT_EQ(model_of(R"({"model":"m")"), "! the JSON of the body ends too early");
  EXPECT_EQ(model_of(R"({"model":"m)"), "! the JSON of the body ends too early");
  EXPECT_EQ(model_of(R"({"model":"m"} {})"), "! text follows the JSON of the body");
  EXPECT_EQ(model_of(R"({"model" "m"})"), std::string("! a colon is missing") + kBroken);
  EXPECT_EQ(model_of(R"({"a":[1}})"), std::string("! brackets do not match") + kBroken);
  EXPECT_EQ(model_of(R"({model:"m"})"), std::string("! a key is missing") + kBroken);
  EXPECT_EQ(model_of(R"({"a":"b" "model":"m"})"), std::string("! a comma is missing") + kBroken);
  EXPECT_EQ(model_of(R"({"a":,"model":"m"})"), std::string("! a value is missing") + kBroken);
  EXPECT_EQ(model_of(R"({"a":"\x","model":"m"})"), "! a text has a wrong escape");
  EXPECT_EQ(model_of(R"({"a":"\u00g0","model":"m"})"), "! a text has a wrong \\u");
  EXPECT_EQ(model_of("{\"a\":" + std::string(2000, '[')),
            "! the JSON of the body is nested too deeply");
}

TEST(ModelField, LongKeysAreSkipped) {
  const std::string key(10'000, 'k');
  EXPECT_EQ(model_of("{\"" + key + "\":1,\"model\":\"m\"}"), "m");
  EXPECT_EQ(model_of("{\"model" + key + "\":\"x\",\"model\":\"m\"}"), "m");
}

}  // namespace
}  // namespace mete::proxy
