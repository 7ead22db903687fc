// SPDX-License-Identifier: Apache-2.0
// Metrics as programs print and append them: whole and in pieces, with progress bars and colours,
// as regular expressions, last lines and JSON find them, and what hostile content costs.
#include "runner/metric_reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace mete::runner {
namespace {

using core::sweep::Metric;
using core::sweep::MetricRule;
using core::sweep::TrialPoint;
using Lines = std::vector<std::string>;
using Points = std::vector<TrialPoint>;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

MetricReader reader_of(const std::vector<MetricRule>& rules) {
  Result<MetricReader> reader = MetricReader::make(rules);
  EXPECT_TRUE(reader.ok()) << reader.error().message;
  return *std::move(reader);
}

Points of_output(const std::vector<MetricRule>& rules, std::string_view text) {
  MetricReader reader = reader_of(rules);
  reader.output(text);
  reader.finish();
  return reader.take();
}

Points of_file(std::string_view text) {
  MetricReader reader = reader_of({});
  reader.lines(text, false);
  reader.finish();
  return reader.take();
}

Lines cut(LineCutter::Mode mode, std::string_view text, std::size_t piece) {
  Lines lines;
  LineCutter cutter(mode);
  const LineCutter::Each each = [&](std::string_view line) { lines.emplace_back(line); };
  for (std::size_t at = 0; at < text.size(); at += piece) cutter.take(text.substr(at, piece), each);
  cutter.end(each);
  return lines;
}

// ---- lines -------------------------------------------------------------------------------------

TEST(LineCutter, LinesAreEqualWhateverThePieces) {
  const std::string_view text =
      "a b\n\nstep 1\r\nlast \x1b[1;31mred\x1b[0m\rnext\n\x1b]0;title\x07x";
  const Lines lines = {"a b", "step 1", "last red", "next", "x"};
  for (std::size_t piece = 1; piece <= text.size(); ++piece)
    EXPECT_EQ(cut(LineCutter::Mode::kTerminal, text, piece), lines) << piece;
}

TEST(LineCutter, ProgressBarsEndTheirLinesByCr) {
  EXPECT_EQ(cut(LineCutter::Mode::kTerminal, "\r 10%\b\b\r 20%", 100), (Lines{" 10%", " 20%"}));
}

TEST(LineCutter, EscapeSequencesOfAllKindsAreLeftOut) {
  const std::string_view text =
      "\x1b(Ba\x1b]8;;http://"
      "x\x1b\\b\x1b]8;;\x1b\\c\x1b[?25ld\x1bPq#0\x1b\\e\x1b]2;t\x1b[1mf\x1b=g";
  EXPECT_EQ(cut(LineCutter::Mode::kTerminal, text, 1), (Lines{"abcdefg"}));
}

TEST(LineCutter, ALineEndEndsASequenceThatIsNotComplete) {
  EXPECT_EQ(cut(LineCutter::Mode::kTerminal, "a\x1b[12\nb\x1b]title\nc", 2),
            (Lines{"a", "b", "c"}));
}

TEST(LineCutter, OnlyTheBeginOfALongLineIsKept) {
  const std::string text = std::string(3 * LineCutter::kMaxLine, 'x') + "\nshort\n";
  for (const LineCutter::Mode mode : {LineCutter::Mode::kTerminal, LineCutter::Mode::kPlain}) {
    const Lines lines = cut(mode, text, 1000);
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_EQ(lines[0], std::string(LineCutter::kMaxLine, 'x'));
    EXPECT_EQ(lines[1], "short");
  }
}

TEST(LineCutter, PlainLinesKeepTheirBytes) {
  EXPECT_EQ(cut(LineCutter::Mode::kPlain, "a\rb\x1b[1m\n\nc", 2), (Lines{"a\rb\x1b[1m", "c"}));
}

// ---- numbers -----------------------------------------------------------------------------------

TEST(NumberOf, OnlyAWholeTextIsANumber) {
  EXPECT_EQ(number_of("0.41"), 0.41);
  EXPECT_EQ(number_of(" +1e-3\t"), 1e-3);
  EXPECT_EQ(number_of("-5."), -5.0);
  EXPECT_EQ(number_of("1e-999"), 0.0);
  for (const char* text : {"", "+", "+-1", "1 2", "0x10", "1,5", "loss", "1e", "infinite"})
    EXPECT_EQ(number_of(text), std::nullopt) << text;
}

TEST(NumberOf, WhatIsNotFiniteIsNaN) {
  for (const char* text : {"nan", "NaN", "-nan", "inf", "-Infinity", "+INF", "1e999", "-1e999"}) {
    const std::optional<double> number = number_of(text);
    ASSERT_TRUE(number) << text;
    EXPECT_TRUE(std::isnan(*number)) << text;
  }
}

TEST(NumbersOfObject, NumbersAndBoolsCountAndNothingElse) {
  EXPECT_EQ(numbers_of_object(
                R"( {"a":1,"b":-2.5e-1,"c":true,"d":false,"e":null,"f":"1","g":[1,{"x":2}],)"
                R"("h":{"y":[3,"]}"]},"i" : 4 } )"),
            (std::vector<Metric>{{"a", 1}, {"b", -0.25}, {"c", 1}, {"d", 0}, {"i", 4}}));
  EXPECT_EQ(numbers_of_object("{}"), std::vector<Metric>());
}

TEST(NumbersOfObject, NaNAndInfinityAsPythonAndOthersWriteThem) {
  EXPECT_EQ(numbers_of_object(R"({"a":NaN,"b":Infinity,"c":-Infinity,"d":"nan","e":"inf"})"),
            (std::vector<Metric>{{"a", kNaN}, {"b", kNaN}, {"c", kNaN}, {"d", kNaN}, {"e", kNaN}}));
  EXPECT_EQ(numbers_of_object(R"({"a":1e400})"), (std::vector<Metric>{{"a", kNaN}}));
}

TEST(NumbersOfObject, NamesMayHaveEscapes) {
  EXPECT_EQ(
      numbers_of_object(R"({"a\"b":1,"\u00fc\u20ac\ud83d\ude00":2,"\ud83d":3,"\n":4})"),
      (std::vector<Metric>{{"a\"b", 1}, {"\u00fc\u20ac\U0001F600", 2}, {"\ufffd", 3}, {"\n", 4}}));
}

TEST(NumbersOfObject, EverythingElseIsNoObject) {
  const std::string deep = "{\"a\":" + std::string(1000, '[') + std::string(1000, ']') + "}";
  for (const std::string& text : std::vector<std::string>{"",
                                                          "3",
                                                          "[1]",
                                                          "null",
                                                          "{",
                                                          "{\"a\"",
                                                          "{\"a\":",
                                                          "{\"a\":1",
                                                          "{\"a\":1,}",
                                                          "{\"a\" 1}",
                                                          "{a:1}",
                                                          "{\"a\":1}}",
                                                          "{\"a\":1}{\"b\":2}",
                                                          "{\"a\":+1}",
                                                          "{\"a\":.5}",
                                                          "{\"a\":-}",
                                                          "{\"a\":nan}",
                                                          "{\"a\":1.2.3}",
                                                          "{\"a\":[1}",
                                                          "{\"a\":[1]]}",
                                                          "{\"\\x\":1}",
                                                          "{\"\\u12\":1}",
                                                          "{\"\\ud83d\\u12\":1}",
                                                          "{\"a",
                                                          "{\"a\":[\"",
                                                          "{\"a\":tru}",
                                                          std::string("{\"a\":\0}", 7),
                                                          deep})
    EXPECT_EQ(numbers_of_object(text), std::nullopt) << text;
}

// ---- rules on the output -----------------------------------------------------------------------

TEST(MetricReader, TheLastMatchOfALineCounts) {
  EXPECT_EQ(of_output({{"loss", "loss=([0-9.]+)"}}, "loss=0.9 loss=0.5\nother\nloss=0.4"),
            (Points{{1, {{"loss", 0.5}}}, {2, {{"loss", 0.4}}}}));
}

TEST(MetricReader, SeveralMetricsOfALineAreOnePoint) {
  EXPECT_EQ(of_output({{"loss", "loss=(\\S+)"}, {"acc", "acc=(\\S+)"}}, "loss=0.5 acc=0.75,\n"),
            (Points{{1, {{"loss", 0.5}, {"acc", 0.75}}}}));
}

TEST(MetricReader, WithoutStepsTheValuesOfEachMetricAreNumbered) {
  EXPECT_EQ(
      of_output({{"loss", "loss=(\\S+)"}, {"acc", "acc=(\\S+)"}}, "loss=3\nloss=2\nloss=1 acc=5\n"),
      (Points{{1, {{"loss", 3}}}, {2, {{"loss", 2}}}, {3, {{"loss", 1}}}, {1, {{"acc", 5}}}}));
}

TEST(MetricReader, AStepCountsForItsLineAndThoseAfterIt) {
  EXPECT_EQ(
      of_output({{"loss", "loss=(\\S+)"}, {"step", "Epoch (\\d+)"}},
                "loss=9\nEpoch 3/10\nloss=2\nloss=1 Epoch 4\nEpoch -1\nloss=0"),
      (Points{{1, {{"loss", 9}}}, {3, {{"loss", 2}}}, {4, {{"loss", 1}}}, {4, {{"loss", 0}}}}));
}

TEST(MetricReader, TheLastLineThatIsANumber) {
  EXPECT_EQ(of_output({{"loss", ""}}, "begin\n0.5\n 0.25 \nnot 3\nnan\n7 of 9\n"),
            (Points{{1, {{"loss", 0.5}}}, {2, {{"loss", 0.25}}}, {3, {{"loss", kNaN}}}}));
}

TEST(MetricReader, ColoursAndProgressBarsDoNotHideAValue) {
  EXPECT_EQ(of_output({{"loss", "loss: (\\S+)"}}, "\r10% loss: \x1b[32m0.5\x1b[0m\r20% loss: 0.4"),
            (Points{{1, {{"loss", 0.5}}}, {2, {{"loss", 0.4}}}}));
}

TEST(MetricReader, LinesOfTwoStreamsDoNotMix) {
  MetricReader reader = reader_of({{"loss", "loss=(\\S+)"}});
  reader.output("loss=0.");
  reader.output("warning\n", true);
  reader.output("25\n");
  EXPECT_EQ(reader.take(), (Points{{1, {{"loss", 0.25}}}}));
}

TEST(MetricReader, BytesThatAreNotUtf8AreNoObstacle) {
  EXPECT_EQ(of_output({{"loss", "loss=(\\S+)"}}, "\xff\xfe loss=2 \x80\n"),
            (Points{{1, {{"loss", 2}}}}));
}

TEST(MetricReader, AGroupThatIsNeverANumberIsMentioned) {
  MetricReader reader = reader_of({{"loss", "loss=(.*)"}});
  reader.output("loss=0.5 acc=0.9\n");
  EXPECT_TRUE(reader.take().empty());
  EXPECT_NE(reader.remarks().find("'loss' matched"), std::string::npos) << reader.remarks();
  reader.output("loss=0.5\n");
  EXPECT_EQ(reader.remarks(), "");
}

TEST(MetricReader, APatternThatMatchesNothingEverywhereEnds) {
  EXPECT_TRUE(of_output({{"loss", "(x*)"}}, std::string(100'000, 'a')).empty());
}

// ---- METE_METRICS ------------------------------------------------------------------------------

TEST(MetricReader, StepsOfTheFile) {
  EXPECT_EQ(
      of_file("{\"step\":3,\"val_loss\":0.41}\n{\"val_loss\":0.4}\n{\"step\":5.0,\"a\":true}"),
      (Points{{3, {{"val_loss", 0.41}}}, {3, {{"val_loss", 0.4}}}, {5, {{"a", 1}}}}));
}

TEST(MetricReader, AnEpochIsTheStepOnlyWhereThereIsNoStep) {
  EXPECT_EQ(of_file("{\"epoch\":2,\"a\":1}\n{\"step\":700,\"epoch\":3,\"a\":2}\n{\"epoch\":4}\n"),
            (Points{{2, {{"a", 1}}}, {700, {{"a", 2}, {"epoch", 3}}}, {700, {{"epoch", 4}}}}));
}

TEST(MetricReader, AStepThatIsNoStepIsIgnored) {
  EXPECT_EQ(of_file("{\"step\":-1,\"a\":1}\n{\"step\":NaN,\"a\":2}\n{\"step\":\"x\",\"a\":3}\n"
                    "{\"step\":1e300,\"a\":4}"),
            (Points{{1, {{"a", 1}}}, {2, {{"a", 2}}}, {3, {{"a", 3}}}, {4, {{"a", 4}}}}));
}

TEST(MetricReader, AMemberTwiceHasItsLastValue) {
  EXPECT_EQ(of_file("{\"a\":1,\"b\":2,\"a\":3}"), (Points{{1, {{"a", 3}, {"b", 2}}}}));
}

TEST(MetricReader, MalformedLinesAreCountedAndTheOthersRead) {
  MetricReader reader = reader_of({});
  reader.lines("loss 0.5\n{\"a\":1}\n\n  \r\n[1]\n{\"a\":2}\r\n", false);
  EXPECT_EQ(reader.take(), (Points{{1, {{"a", 1}}}, {2, {{"a", 2}}}}));
  EXPECT_EQ(reader.remarks(), "2 lines of METE_METRICS are no JSON objects");
  reader.lines("{\"a\":", true);
  reader.finish();
  EXPECT_EQ(reader.remarks(), "3 lines of METE_METRICS are no JSON objects");
}

TEST(MetricReader, ACompleteObjectAtTheEndNeedsNoLineEnd) {
  MetricReader reader = reader_of({});
  reader.lines("{\"step\":1,", true);
  EXPECT_TRUE(reader.take().empty());
  reader.lines("\"a\":1}", true);
  EXPECT_EQ(reader.take(), (Points{{1, {{"a", 1}}}}));
  reader.lines("\n{\"a\":2}", false);
  EXPECT_TRUE(reader.take().empty());
  reader.lines("\n", true);
  EXPECT_EQ(reader.take(), (Points{{1, {{"a", 2}}}}));
  EXPECT_EQ(reader.remarks(), "");
}

TEST(MetricReader, AFileThatBeginsAgainLosesItsIncompleteLine) {
  MetricReader reader = reader_of({});
  reader.lines("{\"a\":1", true);
  reader.lines_again();
  reader.lines("{\"a\":2}\n", true);
  EXPECT_EQ(reader.take(), (Points{{1, {{"a", 2}}}}));
  EXPECT_EQ(reader.remarks(), "");
}

TEST(MetricReader, NamesInAFileDoNotCrowdOutThoseOfRules) {
  MetricReader reader = reader_of({{"loss", "loss=(\\S+)"}});
  std::string line = "{";
  for (int i = 0; i < 100; ++i) line += "\"m" + std::to_string(i) + "\":1,";
  line.back() = '}';
  reader.lines(line + "\n", true);
  reader.output("loss=2\n");
  const Points points = reader.take();
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].metrics.size(), core::sweep::kMaxMetrics - 1);
  EXPECT_EQ(points[1], (TrialPoint{1, {{"loss", 2}}}));
  EXPECT_EQ(reader.names().size(), core::sweep::kMaxMetrics);
  EXPECT_NE(reader.remarks().find("such as 'm15'"), std::string::npos) << reader.remarks();
}

TEST(MetricReader, NamesThatAreTooLongOrMoveTheCursorAreLeftOut) {
  const std::string longest(core::sweep::kMaxMetricName, 'x');
  EXPECT_EQ(of_file("{\"\":1,\"" + longest + "\":2,\"" + longest + "x\":3,\"\\u001b[2J\":4}"),
            (Points{{1, {{longest, 2}}}}));
}

// ---- rules -------------------------------------------------------------------------------------

std::string refusal(const std::vector<MetricRule>& rules) {
  const Result<void> checked = check_metric_rules(rules);
  return checked ? "" : checked.error().message;
}

TEST(CheckMetricRules, WhatIsRefused) {
  EXPECT_EQ(
      refusal({{"loss", "loss=(.*?);"}, {"acc", ""}, {"step", "(?i)(?:it|step) (?P<n>\\d+)"}}), "");
  EXPECT_NE(refusal({{"loss", "loss=(\\S+"}}).find("missing )"), std::string::npos);
  EXPECT_NE(refusal({{"loss", "(?=x)(y)"}}).find("'loss'"), std::string::npos);
  EXPECT_NE(refusal({{"loss", "loss=\\S+"}}).find("has no group"), std::string::npos);
  EXPECT_NE(refusal({{"loss", "(?:x)"}}).find("has no group"), std::string::npos);
  EXPECT_NE(refusal({{"loss", ""}, {"loss", "(x)"}}).find("two patterns"), std::string::npos);
  EXPECT_NE(refusal({{"", "(x)"}}).find("cannot be called"), std::string::npos);
  EXPECT_NE(refusal({{"a\nb", "(x)"}}).find("cannot be called"), std::string::npos);
  EXPECT_NE(refusal({{std::string(65, 'x'), "(x)"}}).find("cannot be called"), std::string::npos);
  EXPECT_NE(refusal({{"loss", "(x)" + std::string(998, 'y')}}).find("longer than"),
            std::string::npos);
}

TEST(CheckMetricRules, APatternThatNeedsMuchMemoryIsRefused) {
  EXPECT_NE(refusal({{"loss", "((((x{100}){10}|\\pL{100}){10}y){10})"}}), "");
  EXPECT_NE(refusal({{"loss", "(\\pL{1000}\\pN{1000}\\pL{1000})"}}).find("too large"),
            std::string::npos);
}

TEST(CheckMetricRules, AtMostSixteenMetricsAndTheStep) {
  std::vector<MetricRule> rules = {{"step", "step=(\\d+)"}};
  for (int i = 0; i < 16; ++i) rules.push_back({"m" + std::to_string(i), "(x)"});
  EXPECT_EQ(refusal(rules), "");
  rules.push_back({"m16", "(x)"});
  EXPECT_NE(refusal(rules).find("at most 16"), std::string::npos);
}

}  // namespace
}  // namespace mete::runner
