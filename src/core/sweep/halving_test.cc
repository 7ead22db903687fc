// SPDX-License-Identifier: Apache-2.0
#include "core/sweep/halving.h"

#include <gtest/gtest.h>

#include <limits>

namespace mete::core::sweep {
namespace {

using Kind = Halving::Verdict::Kind;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Kind reported(Halving& halving, std::uint64_t trial, std::uint64_t step, double loss) {
  return halving.report(trial, step, loss).kind;
}

TEST(HalvingRule, IsReadAndWritten) {
  const Result<HalvingRule> rule = parse_halving("metric=val_loss,min=2,max=50,eta=4");
  ASSERT_TRUE(rule.ok()) << rule.error().message;
  EXPECT_EQ(*rule, (HalvingRule{"val_loss", 2, 50, 4}));
  EXPECT_EQ(to_string(*rule), "metric=val_loss,min=2,max=50,eta=4");
  EXPECT_EQ(*parse_halving(""), HalvingRule());
  EXPECT_EQ(*parse_halving(" eta = 2 , min=1"), (HalvingRule{"", 1, 0, 2}));
  EXPECT_EQ(to_string(HalvingRule()), "min=1,eta=3");
  EXPECT_EQ(*parse_halving(to_string(HalvingRule())), HalvingRule());
}

TEST(HalvingRule, ErrorsPointAtTheCharacter) {
  struct Case {
    std::string text;
    std::string message;
    std::string evidence;
  };
  const std::vector<Case> cases = {
      {"mni=1", "there is no key 'mni' (metric, min, max, eta) (character 1)", "mni=1\n^"},
      {"max=9, min=0", "min is at least 1 (character 12)", "max=9, min=0\n           ^"},
      {"min=9,max=3", "max (3) is below min (9) (character 11)", "min=9,max=3\n          ^"},
      {"max=0", "max is at least 1 (character 5)", "max=0\n    ^"},
      {"eta=1", "eta is at least 2 (character 5)", "eta=1\n    ^"},
      {"eta=x", "eta is a whole number (character 5)", "eta=x\n    ^"},
      {"min=99999999999999999999", "min is a whole number (character 5)",
       "min=99999999999999999999\n    ^"},
      {"min=1,min=2", "min is given twice (character 7)", "min=1,min=2\n      ^"},
      {"min", "'=' and a value belong here (character 4)", "min\n   ^"},
      {"min=", "a value belongs here (character 5)", "min=\n    ^"},
      {"min=1,", "a key belongs here (metric, min, max, eta) (character 7)", "min=1,\n      ^"},
  };
  for (const Case& one : cases) {
    const Result<HalvingRule> rule = parse_halving(one.text);
    ASSERT_FALSE(rule.ok()) << one.text;
    EXPECT_EQ(rule.error().code, ErrorCode::kInvalid);
    EXPECT_EQ(rule.error().message, "the ASHA rule is not understood: " + one.message);
    EXPECT_EQ(rule.error().evidence, one.evidence);
  }
  EXPECT_EQ(parse_halving("mni=1").error().hint, "did you mean 'min'?");
  EXPECT_FALSE(parse_halving(std::string(1'001, ' ')).ok());
}

TEST(HalvingRule, HasRungsUpToMax) {
  EXPECT_EQ(rungs_of({"", 1, 81, 3}), (std::vector<std::uint64_t>{1, 3, 9, 27, 81}));
  EXPECT_EQ(rungs_of({"", 2, 100, 4}), (std::vector<std::uint64_t>{2, 8, 32}));
  EXPECT_EQ(rungs_of({"", 5, 5, 2}), (std::vector<std::uint64_t>{5}));
}

// `--asha` alone ended each trial at step 81 and called it ok.
TEST(HalvingRule, WithoutMaxEndsNoTrialThatIsGood) {
  const Result<HalvingRule> rule = parse_halving("");
  ASSERT_TRUE(rule.ok());
  EXPECT_EQ(rungs_of(*rule).size(), 34U) << "3^33 is below 2^53";
  Halving halving(*rule);
  for (std::uint64_t step = 1; step < 100'000; step *= 3)
    EXPECT_EQ(reported(halving, 0, step + 1, 0.5), Kind::kGoOn) << step;
  EXPECT_EQ(reported(halving, 1, 1'000, 0.9), Kind::kStop);
}

TEST(HalvingRule, RungsDoNotOverflow) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  const std::vector<std::uint64_t> rungs = rungs_of({"", 1, kMost, 2});
  ASSERT_EQ(rungs.size(), 64U);
  EXPECT_EQ(rungs.back(), std::uint64_t{1} << 63);
  EXPECT_EQ(rungs_of({"", kMost - 1, kMost, kMost}), (std::vector<std::uint64_t>{kMost - 1}));
  EXPECT_EQ(rungs_of({"", 3, kMost, kMost}), (std::vector<std::uint64_t>{3}));
  EXPECT_TRUE(rungs_of({"", 0, 81, 3}).empty()) << "such a rule cannot be read";
  EXPECT_TRUE(rungs_of({"", 1, 81, 1}).empty());
}

// Ten trials on the rungs 1, 3, 9, 27, 81, each report with its verdict.
TEST(Halving, DecidesTheWrittenOutExample) {
  struct Step {
    std::uint64_t trial, step;
    double loss;
    Kind kind;
    std::size_t place, results, kept;
  };
  const std::vector<Step> steps = {
      {0, 1, 0.90, Kind::kGoOn, 1, 1, 1},      {1, 1, 0.80, Kind::kGoOn, 1, 2, 1},
      {2, 1, 1.00, Kind::kStop, 3, 3, 1},      {3, 1, 0.70, Kind::kGoOn, 1, 4, 1},
      {4, 1, 0.85, Kind::kStop, 3, 5, 1},      {5, 1, 0.75, Kind::kGoOn, 2, 6, 2},
      {6, 1, 0.95, Kind::kStop, 6, 7, 2},      {7, 1, 0.60, Kind::kGoOn, 1, 8, 2},
      {8, 1, 0.74, Kind::kGoOn, 3, 9, 3},      {9, 1, 0.72, Kind::kGoOn, 3, 10, 3},
      {0, 3, 0.70, Kind::kGoOn, 1, 1, 1},      {1, 3, 0.65, Kind::kGoOn, 1, 2, 1},
      {3, 3, 0.68, Kind::kStop, 2, 3, 1},      {5, 3, 0.50, Kind::kGoOn, 1, 4, 1},
      {7, 3, 0.55, Kind::kStop, 2, 5, 1},      {8, 3, 0.60, Kind::kStop, 3, 6, 2},
      {9, 3, 0.52, Kind::kGoOn, 2, 7, 2},      {0, 9, 0.60, Kind::kGoOn, 1, 1, 1},
      {1, 9, 0.61, Kind::kStop, 2, 2, 1},      {5, 9, 0.40, Kind::kGoOn, 1, 3, 1},
      {9, 9, 0.41, Kind::kStop, 2, 4, 1},      {0, 27, 0.50, Kind::kGoOn, 1, 1, 1},
      {5, 27, 0.30, Kind::kGoOn, 1, 2, 1},     {0, 81, 0.45, Kind::kFinished, 1, 1, 1},
      {5, 81, 0.20, Kind::kFinished, 1, 2, 1},
  };
  Halving halving(HalvingRule{"", 1, 81, 3});
  for (const Step& one : steps) {
    const Halving::Verdict verdict = halving.report(one.trial, one.step, one.loss);
    const std::string where =
        "trial " + std::to_string(one.trial) + " step " + std::to_string(one.step);
    EXPECT_EQ(verdict.kind, one.kind) << where;
    EXPECT_EQ(verdict.rung, one.step) << where;
    EXPECT_EQ(verdict.place, one.place) << where;
    EXPECT_EQ(verdict.results, one.results) << where;
    EXPECT_EQ(verdict.kept, one.kept) << where;
  }
}

TEST(Halving, EarlierOfEqualResultsIsBetter) {
  Halving halving(HalvingRule{"", 1, 4, 2});
  EXPECT_EQ(reported(halving, 0, 1, 0.5), Kind::kGoOn);
  const Halving::Verdict second = halving.report(1, 1, 0.5);
  EXPECT_EQ(second.kind, Kind::kStop);
  EXPECT_EQ(second.place, 2U);
}

TEST(Halving, NanIsWorseThanEverything) {
  Halving halving(HalvingRule{"", 1, 4, 2});
  EXPECT_EQ(reported(halving, 0, 1, kNan), Kind::kGoOn) << "the best of one";
  EXPECT_EQ(reported(halving, 1, 1, kNan), Kind::kStop) << "the earlier one is better";
  const Halving::Verdict infinite = halving.report(2, 1, std::numeric_limits<double>::infinity());
  EXPECT_EQ(infinite.place, 1U);
  EXPECT_EQ(reported(halving, 3, 1, kNan), Kind::kStop);
}

TEST(Halving, OneReportMayPassSeveralRungs) {
  Halving halving(HalvingRule{"", 1, 100, 3});
  EXPECT_EQ(halving.report(0, 10, 0.5).rung, 9U);
  for (const std::uint64_t rung : {1U, 3U, 9U})
    EXPECT_EQ(halving.recorded().at(rung), (std::vector<Halving::Entry>{{0, 0.5}}));
  EXPECT_EQ(halving.recorded().count(27), 0U);
  EXPECT_EQ(reported(halving, 1, 3, 0.6), Kind::kStop);
  // Trial 2 is second of three at step 1, second of three at step 3, and second of two at step 9.
  const Halving::Verdict weak = halving.report(2, 9, 0.55);
  EXPECT_EQ(weak.kind, Kind::kStop);
  EXPECT_EQ(weak.rung, 1U);
  EXPECT_EQ(halving.recorded().at(9).size(), 2U);
}

TEST(Halving, IsFinishedAtMaxAlthoughMaxIsNoRung) {
  Halving halving(HalvingRule{"", 1, 100, 3});
  EXPECT_EQ(reported(halving, 0, 99, 0.5), Kind::kGoOn);
  EXPECT_EQ(halving.words(halving.report(0, 100, 0.5)), "ended at step 100, the max of --asha");
  EXPECT_EQ(reported(halving, 1, 1'000, 0.9), Kind::kFinished)
      << "weak, but there is no more to do";
}

TEST(Halving, RepeatsTheVerdictOfAPassedRung) {
  Halving halving(HalvingRule{"", 2, 54, 3});
  EXPECT_EQ(halving.report(0, 1, 9.0).rung, 0U) << "before the first rung";
  EXPECT_EQ(reported(halving, 0, 2, 0.5), Kind::kGoOn);
  EXPECT_EQ(reported(halving, 1, 2, 0.6), Kind::kStop);
  const Halving before = halving;
  EXPECT_EQ(reported(halving, 0, 2, 7.0), Kind::kGoOn) << "the first result counts";
  EXPECT_EQ(reported(halving, 0, 5, 7.0), Kind::kGoOn);
  EXPECT_EQ(reported(halving, 1, 5, 0.1), Kind::kStop);
  EXPECT_EQ(halving, before);
}

TEST(Halving, GoesOnFromASnapshot) {
  const HalvingRule rule{"", 1, 27, 3};
  Halving whole(rule);
  for (std::uint64_t i = 0; i < 40; ++i)
    whole.report(i % 13, 1 + i, static_cast<double>(i * 7 % 11));
  Halving again(rule);
  again.restore(whole.recorded());
  EXPECT_EQ(again, whole);
  for (std::uint64_t i = 0; i < 40; ++i) {
    const Halving::Verdict a = whole.report(i % 17, i, static_cast<double>(i * 5 % 7));
    const Halving::Verdict b = again.report(i % 17, i, static_cast<double>(i * 5 % 7));
    EXPECT_EQ(Halving::words(a), Halving::words(b)) << i;
  }
  EXPECT_EQ(again, whole);
}

TEST(Halving, ExplainsItself) {
  EXPECT_EQ(Halving::words({Kind::kStop, 9, 5, 8, 2}),
            "weak at step 9: place 5 of 8, the best 2 go on");
  EXPECT_EQ(Halving::words({Kind::kStop, 3, 2, 2, 1}),
            "weak at step 3: place 2 of 2, only the best goes on");
  EXPECT_EQ(Halving::words({Kind::kGoOn, 9, 1, 8, 2}),
            "goes on at step 9: place 1 of 8, the best 2 go on");
  EXPECT_EQ(Halving::words({}), "before the first rung");
}

}  // namespace
}  // namespace mete::core::sweep
