// SPDX-License-Identifier: Apache-2.0
// filled() is one word of a command, filled for a trial with lr=1e-3 and bs=32, where `momentum` is
// a parameter that is not in use.
#include "core/sweep/fill.h"

#include <gtest/gtest.h>

namespace mete::core::sweep {
namespace {

using Texts = std::vector<std::string>;

const Texts kNames{"lr", "bs", "momentum", "batch-size"};
const Params kParams{{"lr", guess("1e-3")}, {"bs", guess("32")}};

std::string filled(const std::string& word, const Params& params = kParams) {
  return fill_command(Texts{word}, kNames, params, false).at(0);
}
Result<void> checked(const std::string& word) { return check_command(Texts{word}, kNames); }

TEST(SweepFill, PutsTheTextOfAValueInPlaceOfItsName) {
  EXPECT_EQ(filled("{lr}"), "1e-3");
  EXPECT_EQ(filled("--lr={lr}"), "--lr=1e-3");
  EXPECT_EQ(filled("run-{lr}-{bs}{bs}.txt"), "run-1e-3-3232.txt");
  EXPECT_EQ(filled("{batch-size}", {{"batch-size", guess("8")}}), "8");
  EXPECT_EQ(filled(""), "");
}

TEST(SweepFill, AParameterThatIsNotInUseIsReplacedByNothing) {
  EXPECT_EQ(filled("--momentum={momentum}"), "--momentum=");
  EXPECT_EQ(fill_command(Texts{"a", "{momentum}", "b"}, kNames, kParams, false),
            (Texts{"a", "", "b"}));
}

TEST(SweepFill, DoubledBracesAreBraces) {
  EXPECT_EQ(filled("{{lr}}"), "{lr}");
  EXPECT_EQ(filled("{{{lr}}}"), "{1e-3}");
  EXPECT_EQ(filled("{{"), "{");
  EXPECT_EQ(filled("{{lr}"), "{lr}");
  EXPECT_EQ(filled("{{a}} {{b}}"), "{a} {b}");
  EXPECT_EQ(filled(R"({{"a": {{"b": {lr}}}}})"), R"({"a": {"b": 1e-3}})");
}

TEST(SweepFill, OtherBracesStayAsTheyAre) {
  for (const std::string word :
       {"${HOME}", "${lr}", "$${lr}", "${{lr}}", "{1..3}", "{a,b}", "{}", "{ lr }", "{lr", "lr}",
        "{", "}", "}}", "{lr:3}", "{-lr}", "{lr.x}", R"({"a": 1})", R"({"a": {"b": {"c": 1}}})",
        "awk '{print $1}'"})
    EXPECT_EQ(filled(word), word);
  EXPECT_EQ(filled(R"({"a": {"lr": {lr}}})"), R"({"a": {"lr": 1e-3}})");
  EXPECT_EQ(filled("$HOME/{lr}"), "$HOME/1e-3");
}

TEST(SweepFill, BracesInAValueMeanNothing) {
  EXPECT_EQ(filled("{lr}", {{"lr", of_text("{bs}}}{{")}, {"bs", guess("32")}}), "{bs}}}{{");
}

TEST(SweepFill, AFlagIsAddedForEachParameterInUse) {
  const Params params{{"lr", guess("1e-3")},     {"amp", of_bool(true)},
                      {"bias", of_bool(false)},  {"batch-size", guess("-8")},
                      {"word", of_text("true")}, {"empty", of_text("")}};
  EXPECT_EQ(fill_command(Texts{"train", "{lr}"}, kNames, params, true),
            (Texts{"train", "1e-3", "--lr", "1e-3", "--amp", "--batch-size", "-8", "--word", "true",
                   "--empty", ""}));
}

TEST(SweepFill, RefusesAnUnknownParameterAndMarksIt) {
  const Result<void> result = check_command(Texts{"python", "--rate={lrr}"}, kNames);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(result.error().message,
            "the command uses a parameter that the space does not have: 'lrr'");
  EXPECT_EQ(result.error().evidence, "--rate={lrr}\n       ^");
  EXPECT_EQ(result.error().hint, "did you mean {lr}? {{lrr}} keeps the braces");
  EXPECT_EQ(checked("awk {print}").error().hint, "{{print}} keeps the braces");
  EXPECT_FALSE(checked("{{a}}{LR}"));
  EXPECT_FALSE(check_command(Texts{"{lr}"}, {}));
}

TEST(SweepFill, AcceptsACommandWithKnownParametersAlone) {
  for (const char* word : {"{lr}", "{momentum}", "{batch-size}", "${x}", "{{x}}", "{1..3}", "{a,b}",
                           "{}", R"({"a": {"b": 1}})", ""})
    EXPECT_TRUE(checked(word)) << word;
}

TEST(SweepFill, NamesOfTheEnvironmentAreUpperCase) {
  EXPECT_EQ(environment_name("lr"), "LR");
  EXPECT_EQ(environment_name("batch-size_2"), "BATCH_SIZE_2");
}

TEST(SweepFill, JsonHasNumbersBoolsAndTextsAsSuch) {
  EXPECT_EQ(to_json({}), "{}");
  EXPECT_EQ(to_json({{"lr", guess("1e-3")},
                     {"bs", guess("32")},
                     {"amp", of_bool(true)},
                     {"bias", of_bool(false)},
                     {"opt", of_text("adam")},
                     {"n", of_text("32")}}),
            R"({"lr":1e-3,"bs":32,"amp":true,"bias":false,"opt":"adam","n":"32"})");
}

TEST(SweepFill, JsonNumbersAreValidJson) {
  EXPECT_EQ(to_json({{"a", guess("+5")}}), R"({"a":5})");
  EXPECT_EQ(to_json({{"a", guess("1.")}}), R"({"a":1})");
  EXPECT_EQ(to_json({{"a", guess(".5")}}), R"({"a":0.5})");
  EXPECT_EQ(to_json({{"a", guess("-.5E+2")}}), R"({"a":-50})");
  EXPECT_EQ(to_json({{"a", guess("-0.50E+2")}}), R"({"a":-0.50E+2})");
  EXPECT_EQ(to_json({{"a", guess("9007199254740993")}}), R"({"a":9007199254740993})");
  EXPECT_EQ(to_json({{"a", of_real(0.1)}}), R"({"a":0.1})");
}

TEST(SweepFill, JsonTextsAreEscaped) {
  EXPECT_EQ(to_json({{"a", of_text("\"\\/\n\t\x01\x7f")}}), R"({"a":"\"\\/\n\t\u0001\u007f"})");
  EXPECT_EQ(to_json({{"a", of_text("é\xff")}}), R"({"a":"é\ufffd"})");
}

}  // namespace
}  // namespace mete::core::sweep
