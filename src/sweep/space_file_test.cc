// SPDX-License-Identifier: Apache-2.0
// Space files, --grid and --metric. read() is a file that must be accepted; bad() and hint() are
// the message and the hint for one that must be refused; values() are the texts of a listed
// parameter with a letter for the kind of each: i(nteger), r(eal), b(ool), t(ext).
#include "sweep/space_file.h"

#include <gtest/gtest.h>

namespace mete::sweep {
namespace {

using core::sweep::Parameter;
using core::sweep::Range;
using core::sweep::Value;

SpaceFile read(const std::string& text) {
  Result<SpaceFile> file = read_space_file(text, "s.yaml");
  if (!file) ADD_FAILURE() << file.error().message << "\n" << file.error().evidence;
  return file ? *std::move(file) : SpaceFile{};
}
Error error_of(const std::string& text) {
  const Result<SpaceFile> file = read_space_file(text, "s.yaml");
  return file ? Error::invalid("accepted") : file.error();
}
std::string bad(const std::string& text) { return error_of(text).message; }
std::string hint(const std::string& text) { return error_of(text).hint; }

std::string values(const Parameter& parameter) {
  std::string all;
  for (const Value& value : std::get<std::vector<Value>>(parameter.domain))
    all += (all.empty() ? "" : " ") + std::string(1, "tirb"[static_cast<int>(value.kind)]) + ":" +
           value.text;
  return all;
}
std::string values(const std::string& list) {
  return values(read("params: {a: " + list + "}").params.at(0));
}
Range range(const std::string& spec) {
  return std::get<Range>(read("params: {a: " + spec + "}").params.at(0).domain);
}

TEST(SpaceFile, HasAllThatASweepNeeds) {
  const SpaceFile file = read(
      "params:\n"
      "  lr: {min: 1.0e-5, max: 1.0e-1, log: true}\n"
      "  bs: [16, 32, 64]                       # a list: these values\n"
      "  layers: {min: 1, max: 8, int: true}\n"
      "  momentum: {min: 0, max: 0.99, step: 0.01, when: opt == \"sgd\"}\n"
      "  opt: {values: [sgd, adam]}\n"
      "  epochs: 20                             # a scalar: fixed\n"
      "sampler: tpe\n"
      "trials: 100\n"
      "seed: 7\n"
      "keep: bs * layers <= 256\n"
      "metrics: {val_loss: \"val_loss=([0-9.eE+-]+)\", acc: last}\n"
      "minimize: val_loss\n");
  ASSERT_EQ(file.params.size(), 6u);
  EXPECT_EQ(file.params[0], (Parameter{"lr", Range{1e-5, 1e-1, true}}));
  EXPECT_EQ(values(file.params[1]), "i:16 i:32 i:64");
  EXPECT_EQ(file.params[2], (Parameter{"layers", Range{1, 8, false, true}}));
  EXPECT_EQ(std::get<Range>(file.params[3].domain), (Range{0, 0.99, false, false, 0.01}));
  EXPECT_EQ(file.params[3].when->text(), "opt == \"sgd\"");
  EXPECT_EQ(values(file.params[4]), "t:sgd t:adam");
  EXPECT_EQ(values(file.params[5]), "i:20");
  EXPECT_EQ(file.sampler, core::sweep::Method::kTpe);
  EXPECT_EQ(file.trials, 100u);
  EXPECT_EQ(file.seed, 7u);
  EXPECT_EQ(file.keep->text(), "bs * layers <= 256");
  EXPECT_EQ(file.metrics, (std::vector<core::sweep::MetricRule>{
                              {"val_loss", "val_loss=([0-9.eE+-]+)"}, {"acc", ""}}));
  EXPECT_EQ(file.goal, (core::sweep::Goal{"val_loss", false}));
}

TEST(SpaceFile, WhatIsNotInTheFileIsAbsent) {
  const SpaceFile file = read("maximize: acc\n");
  EXPECT_EQ(file.goal, (core::sweep::Goal{"acc", true}));
  EXPECT_TRUE(file.params.empty() && file.metrics.empty());
  EXPECT_FALSE(file.keep || file.sampler || file.trials || file.seed);
  EXPECT_FALSE(read("params: {a: 1}").goal);
}

TEST(SpaceFile, ScalarsKeepTheirText) {
  EXPECT_EQ(values("[1e-3, 0.10, 1.0e-5, +5, -3, .5]"), "r:1e-3 r:0.10 r:1.0e-5 i:+5 i:-3 r:.5");
  EXPECT_EQ(values("['32', \"1e-3\", 'true', !!str 8]"), "t:32 t:1e-3 t:true t:8");
  EXPECT_EQ(values("[true, FALSE]"), "b:true b:false");
  EXPECT_EQ(values("[false, True]"), "b:false b:true");
  EXPECT_EQ(values("[yes, no, on, off, y, .inf, nan, 0x10, 007]"),
            "t:yes t:no t:on t:off t:y t:.inf t:nan t:0x10 t:007");
  EXPECT_EQ(values("[a b, '', 'null', é]"), "t:a b t: t:null t:é");
}

TEST(SpaceFile, JsonIsReadToo) {
  const SpaceFile file = read(
      "{\n\t\"params\": {\"lr\": [1e-3, 1E-4], \"opt\": {\"values\": [\"sgd\", "
      "\"a\\\"b\\u00e9\"],\n"
      "\t\t\"when\": \"lr < 1\"}, \"r\": {\"min\": 0, \"max\": 1, \"int\": false}},\n"
      "\t\"trials\": 5, \"metrics\": {\"loss\": \"l: (\\\\d+)\"}, \"minimize\": \"loss\"}\n");
  EXPECT_EQ(values(file.params.at(0)), "r:1e-3 r:1E-4");
  EXPECT_EQ(values(file.params.at(1)), "t:sgd t:a\"bé");
  EXPECT_EQ(file.params.at(1).when->text(), "lr < 1");
  EXPECT_EQ(file.metrics.at(0).pattern, "l: (\\d+)");
}

TEST(SpaceFile, ALongJsonLineIsReadToo) {
  std::string list;
  for (int i = 0; i < 20'000; ++i) list += (i == 0 ? "" : ",") + std::to_string(i);
  const SpaceFile file = read("{\"params\":{\"a\":[" + list + "],\"b\":[1]}}");
  EXPECT_EQ(std::get<std::vector<Value>>(file.params.at(0).domain).size(), 20'000u);
}

TEST(SpaceFile, AListIsValuesAndNeverARange) {
  EXPECT_EQ(values("[0.5, 5, 10]"), "r:0.5 i:5 i:10");
  EXPECT_EQ(values("{values: [1, 2], when: true}"), "i:1 i:2");
  EXPECT_EQ(values("{values: 3}"), "i:3");
}

TEST(SpaceFile, RangesHaveTheirEndsAndFlags) {
  EXPECT_EQ(range("{min: -1, max: 1e3}"), (Range{-1, 1000}));
  EXPECT_EQ(range("{max: 9, min: 1, int: true, step: 2, log: false}"),
            (Range{1, 9, false, true, 2.0}));
}

TEST(SpaceFile, ExpressionsMayUseParametersThatFollow) {
  const SpaceFile file = read(
      "keep: late > 1 and batch-size < 9\n"
      "params:\n  a: {values: [1, 2], when: late == 2}\n  late: [1, 2]\n  batch-size: [8, 16]\n");
  EXPECT_EQ(file.keep->names(), (std::vector<std::string>{"late", "batch-size"}));
  EXPECT_EQ(file.params[0].when->names(), std::vector<std::string>{"late"});
}

TEST(SpaceFile, NamesUnknownKeysAndTheNearestOne) {
  EXPECT_EQ(bad("params: {a: 1}\nsampelr: tpe\n"), "s.yaml:2: there is no key 'sampelr'");
  EXPECT_EQ(hint("sampelr: tpe\n"), "did you mean sampler?");
  EXPECT_EQ(hint("parameters: {a: 1}\n"), "did you mean params?");
  EXPECT_EQ(hint("zzzz: 1\n"),
            "keys here are params, sampler, trials, seed, keep, metrics, minimize, maximize");
  EXPECT_EQ(bad("params:\n  a:\n    min: 1\n    mx: 2\n"), "s.yaml:4: there is no key 'mx'");
  EXPECT_EQ(hint("params: {a: {low: 1, max: 2}}"), "did you mean min?");
  EXPECT_EQ(hint("params: {a: {choices: [1]}}"), "did you mean values?");
}

TEST(SpaceFile, NamesTheLineOfABadParameter) {
  const std::string head = "params:\n  ok: [1]\n";
  EXPECT_EQ(bad(head + "  a:\n"), "s.yaml:3: 'a' has no value");
  EXPECT_EQ(bad(head + "  a: null\n"), "s.yaml:3: 'a' has no value");
  EXPECT_EQ(bad(head + "  a: [1, ~]\n"), "s.yaml:3: parameter 'a' has an empty value");
  EXPECT_EQ(bad(head + "  a: [1, [2]]\n"), "s.yaml:3: parameter 'a': a value is a list itself");
  EXPECT_EQ(bad(head + "  a:\n  - {b: 1}\n"), "s.yaml:4: parameter 'a': a value is a map itself");
  EXPECT_EQ(bad(head + "  a: {values: {b: 1}}\n"), "s.yaml:3: parameter 'a': values is a list");
  EXPECT_EQ(bad(head + "  ok: [2]\n"), "s.yaml:3: 'ok' is there twice");
  EXPECT_EQ(bad(head + "  a: {min: 1, min: 2}\n"), "s.yaml:3: 'min' is there twice");
  EXPECT_EQ(bad(head + "  a: {min: 1}\n"), "s.yaml:3: parameter 'a' has no max");
  EXPECT_EQ(bad(head + "  a: {max: 1, log: true}\n"), "s.yaml:3: parameter 'a' has no min");
  EXPECT_EQ(bad(head + "  a: {}\n"), "s.yaml:3: parameter 'a' has no min");
  for (const std::string extra : {"min: 1", "max: 1", "log: true", "int: true", "step: 1"})
    EXPECT_EQ(bad(head + "  a: {values: [1], " + extra + "}\n"),
              "s.yaml:3: parameter 'a' has values and " + extra.substr(0, extra.find(':')));
  EXPECT_EQ(bad(head + "  a: {min: x, max: 1}\n"), "s.yaml:3: parameter 'a': min is a number");
  EXPECT_EQ(bad(head + "  a: {min: '0', max: 1}\n"), "s.yaml:3: parameter 'a': min is a number");
  EXPECT_EQ(bad(head + "  a: {min: [0], max: 1}\n"), "s.yaml:3: parameter 'a': min is a number");
  EXPECT_EQ(bad(head + "  a: {min: 0, max: .inf}\n"), "s.yaml:3: parameter 'a': max is a number");
  EXPECT_EQ(bad(head + "  a: {min: 0, max: true}\n"), "s.yaml:3: parameter 'a': max is a number");
  EXPECT_EQ(bad(head + "  a: {min: 0, max: 1, log: yes}\n"),
            "s.yaml:3: parameter 'a': log is true or false");
  EXPECT_EQ(bad(head + "  a: !!int 3\n"),
            "s.yaml:3: parameter 'a': 'tag:yaml.org,2002:int' is not understood");
}

TEST(SpaceFile, NamesTheLineOfWhatTheSpaceRefuses) {
  const std::string head = "params:\n  ok: [1]\n";
  const auto begins = [](const std::string& text) { return bad(text).substr(0, 23); };
  EXPECT_EQ(begins(head + "  a: {min: 1, max: 1}\n"), "s.yaml:3: parameter 'a'");
  EXPECT_EQ(begins(head + "  b: 1\n  a: {min: 0, max: 1, log: true}\n"), "s.yaml:4: parameter 'a'");
  EXPECT_EQ(begins(head + "  a: []\n"), "s.yaml:3: parameter 'a'");
  EXPECT_EQ(begins(head + "  a: [1, 1]\n"), "s.yaml:3: parameter 'a'");
  EXPECT_EQ(bad(head + "  a b: 1\n"), "s.yaml:3: 'a b' cannot be the name of a parameter");
  const Error circle = error_of(
      "seed: 1\nparams:\n  a: {values: [1], when: b == 1}\n  b: {values: [1], when: a == 1}\n");
  EXPECT_EQ(circle.message.substr(0, 10), "s.yaml:2: ");
  EXPECT_NE(circle.evidence.find("a needs b"), std::string::npos) << circle.evidence;
}

TEST(SpaceFile, PointsIntoAnExpression) {
  const Error when = error_of("params:\n  a: 1\n  b: {values: [1], when: aa > 1 +}\n");
  EXPECT_EQ(when.message.substr(0, 31), "s.yaml:3: parameter 'b': when: ") << when.message;
  const Error keep = error_of("params: {bs: [1, 2]}\nkeep: b < 2\n");
  EXPECT_EQ(keep.message.substr(0, 16), "s.yaml:2: keep: ") << keep.message;
  EXPECT_EQ(keep.evidence, "b < 2\n^");
  EXPECT_EQ(bad("params: {a: 1}\nkeep: [a]\n"), "s.yaml:2: keep is an expression");
  EXPECT_EQ(bad("keep: a > 1\n").substr(0, 16), "s.yaml:1: keep: ") << "there are no parameters";
}

TEST(SpaceFile, NamesWhatIsWrongOutsideOfParams) {
  EXPECT_EQ(bad("sampler: sobl\n"), "s.yaml:1: there is no sampler 'sobl'");
  EXPECT_EQ(hint("sampler: sobl\n"), "did you mean sobol?");
  EXPECT_EQ(hint("sampler: zzzzzz\n"), "samplers are grid, random, sobol, halton, lhs, tpe");
  EXPECT_EQ(bad("\ntrials: -1\n"), "s.yaml:2: trials: '-1' is not a number");
  EXPECT_EQ(bad("trials: 1.5\n"), "s.yaml:1: trials: '1.5' is not a number");
  EXPECT_EQ(bad("seed: [1]\n"), "s.yaml:1: seed is one word");
  EXPECT_EQ(bad("seed: 18446744073709551616\n"),
            "s.yaml:1: seed: '18446744073709551616' is too large a number");
  EXPECT_EQ(bad("minimize: a\nmaximize: b\n"),
            "s.yaml:2: minimize and maximize exclude each other");
  EXPECT_EQ(bad("minimize: [a]\n"), "s.yaml:1: minimize is one word");
  EXPECT_EQ(bad("metrics: [a]\n"), "s.yaml:1: metrics is a map");
  EXPECT_EQ(bad("metrics:\n  a: [b]\n"), "s.yaml:2: metric 'a' has one pattern");
  EXPECT_EQ(bad("metrics:\n  a: last\n  a: last\n"), "s.yaml:3: 'a' is there twice");
  EXPECT_EQ(bad("metrics:\n  a: ''\n"), "s.yaml:2: metric 'a' has no pattern");
  EXPECT_EQ(bad("metrics:\n  a b: last\n"), "s.yaml:2: 'a b' cannot be the name of a metric");
  std::string many = "metrics:\n";
  for (std::size_t i = 0; i <= core::sweep::kMaxMetrics; ++i)
    many += "  m" + std::to_string(i) + ": last\n";
  EXPECT_EQ(bad(many), "s.yaml:1: there are too many metrics");
  EXPECT_EQ(bad("params: [a]\n"), "s.yaml:1: params is a map of parameters");
  EXPECT_EQ(bad("seed: 1\nparams: {}\n"), "s.yaml:2: params is a map of parameters");
}

TEST(SpaceFile, RefusesWhatIsNoSpace) {
  EXPECT_EQ(bad(""), "s.yaml:1: the file says nothing");
  EXPECT_EQ(bad("# only\n"), "s.yaml:1: the file says nothing");
  EXPECT_EQ(bad("- a\n"), "s.yaml:1: a space file is a map of keys and values");
  EXPECT_EQ(bad("seed: 1\nparams: {a: [1\n"), "s.yaml:3: this is no YAML");
  EXPECT_EQ(bad(",a be\b"), "s.yaml:1: this is no YAML") << "LoadAll of yaml-cpp 0.7 never ends";
  EXPECT_EQ(bad("seed: 1\n---\nseed: 2\n"), "s.yaml:2: a second document begins");
  EXPECT_EQ(bad("? [a]\n: 1\n").substr(0, 34), "s.yaml:1: the file has a key that ");
  EXPECT_EQ(bad(std::string(kMaxSpaceFile + 1, ' ')), "s.yaml:1: the file is too long");
}

TEST(SpaceFile, RefusesAliasesAndAnchors) {
  const std::string message = "anchors and aliases of YAML are not read here";
  EXPECT_EQ(bad("seed: 1\nparams: {a: &x [1], b: *x}\n"), "s.yaml:2: " + message);
  EXPECT_EQ(bad("seed: &x 1\n"), "s.yaml:1: " + message);
  EXPECT_EQ(bad("params: &x {a: 1}\n"), "s.yaml:1: " + message);
  EXPECT_EQ(values("['&x', '*y']"), "t:&x t:*y");
}

TEST(SpaceFile, IsBounded) {
  std::string many = "params:\n";
  for (std::size_t i = 0; i <= core::sweep::kMaxParameters; ++i)
    many += "  p" + std::to_string(i) + ": 1\n";
  EXPECT_EQ(bad(many), "s.yaml:1: the space has too many parameters");
  std::string deep(100'000, '[');
  EXPECT_EQ(bad("params: {a: " + deep), "s.yaml:1: this is no YAML");
  std::string values = "params: {a: [";
  for (std::size_t i = 0; i < 1'100'000; ++i) values += "1,";
  EXPECT_EQ(bad(values + "]}"), "s.yaml:1: the file has too many values");
}

TEST(GridOption, HasTheWordsAsTheyAre) {
  const Result<Parameter> lr = parse_grid("lr=1e-3,1e-4");
  ASSERT_TRUE(lr);
  EXPECT_EQ(lr->name, "lr");
  EXPECT_EQ(values(*lr), "r:1e-3 r:1e-4");
  EXPECT_EQ(values(*parse_grid("a= 32 , adam,true,yes,x=y,it's")),
            "i:32 t:adam b:true t:yes t:x=y t:it's");
  EXPECT_EQ(values(*parse_grid("a=1")), "i:1");
}

TEST(GridOption, ACommaInsideQuotesDoesNotDivide) {
  EXPECT_EQ(values(*parse_grid("a=\"1,2\",'3' ,\"\",'\"'")), "t:1,2 t:3 t: t:\"");
}

TEST(GridOption, PointsAtTheMistake) {
  const auto bad_grid = [](const char* option) {
    const Result<Parameter> grid = parse_grid(option);
    return grid ? std::string("accepted") : grid.error().message + "\n" + grid.error().evidence;
  };
  EXPECT_EQ(bad_grid("lr"), "--grid 'lr' has no values\n");
  EXPECT_EQ(bad_grid("lr="), "--grid: a value is missing\nlr=\n   ^");
  EXPECT_EQ(bad_grid("lr=1,,2"), "--grid: a value is missing\nlr=1,,2\n     ^");
  EXPECT_EQ(bad_grid("lr=1,"), "--grid: a value is missing\nlr=1,\n     ^");
  EXPECT_EQ(bad_grid("lr='1,2"), "--grid: this quote is not closed\nlr='1,2\n   ^");
  EXPECT_EQ(bad_grid("lr='1'2"),
            "--grid: a comma or the end belongs behind the quotes\nlr='1'2\n      ^");
  EXPECT_EQ(bad_grid("1r=1").substr(0, 44), "--grid: '1r' cannot be the name of a paramet");
  EXPECT_EQ(bad_grid("a=1,1").substr(0, 21), "--grid: parameter 'a'");
}

TEST(MetricOption, IsAPatternOrTheLastNumber) {
  EXPECT_EQ(*parse_metric("val_loss=val_loss: ([0-9.]+)=x"),
            (core::sweep::MetricRule{"val_loss", "val_loss: ([0-9.]+)=x"}));
  EXPECT_EQ(*parse_metric("acc=last"), (core::sweep::MetricRule{"acc", ""}));
  EXPECT_EQ(parse_metric("val/loss=last")->name, "val/loss");
}

TEST(MetricOption, RefusesWhatIsNoMetric) {
  EXPECT_EQ(parse_metric("acc").error().message, "--metric 'acc' has no pattern");
  EXPECT_EQ(parse_metric("acc=").error().message, "--metric: metric 'acc' has no pattern");
  EXPECT_EQ(parse_metric("=last").error().message, "--metric: a metric has no name");
  EXPECT_FALSE(parse_metric("a b=last"));
  EXPECT_FALSE(parse_metric(std::string(65, 'a') + "=last"));
  EXPECT_TRUE(parse_metric(std::string(64, 'a') + "=last"));
  EXPECT_FALSE(parse_metric("a=" + std::string(1'001, 'a')));
}

}  // namespace
}  // namespace mete::sweep
