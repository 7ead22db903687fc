// SPDX-License-Identifier: Apache-2.0
// Ranges: which values they have, that a number in [0, 1) and its value belong together, and what
// is refused. Several expected texts are written down to the last digit, since they must be equal
// on every machine.
#include "core/sweep/range.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/sweep/maths.h"

namespace mete::core::sweep {
namespace {

RangeScale scale(const Range& range) {
  Result<RangeScale> made = RangeScale::make(range);
  EXPECT_TRUE(made.ok()) << range.min << " to " << range.max << ": "
                         << (made ? "" : made.error().message);
  return made ? *std::move(made) : *RangeScale::make({.min = 0, .max = 1});
}
std::vector<std::string> texts(const Range& range) {
  const RangeScale made = scale(range);
  std::vector<std::string> texts;
  for (std::uint64_t i = 0; i < made.count().value_or(0); ++i)
    texts.push_back(made.value_of(i).text);
  return texts;
}
std::string refusal_of(const Range& range) {
  const Result<RangeScale> made = RangeScale::make(range);
  return made ? "" : made.error().message;
}
using Texts = std::vector<std::string>;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

TEST(SweepRange, StepsHaveCleanTexts) {
  EXPECT_EQ(texts({.min = 0, .max = 1, .step = 0.1}),
            (Texts{"0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1"}));
  EXPECT_EQ(texts({.min = -0.3, .max = 0.3, .step = 0.1}),
            (Texts{"-0.3", "-0.2", "-0.1", "0", "0.1", "0.2", "0.3"}));
  EXPECT_EQ(texts({.min = 1e-5, .max = 5e-5, .step = 1e-5}),
            (Texts{"1e-05", "2e-05", "3e-05", "4e-05", "5e-05"}));
  EXPECT_EQ(texts({.min = 0.25, .max = 1, .step = 0.5}), (Texts{"0.25", "0.75"}));
  EXPECT_EQ(texts({.min = 1e20, .max = 3e20, .step = 1e20}), (Texts{"1e+20", "2e+20", "3e+20"}));
  EXPECT_EQ(texts({.min = 0, .max = 1, .step = 1}), (Texts{"0", "1"}));
  EXPECT_EQ(texts({.min = 0, .max = 1, .step = 1.0 / 3}),
            (Texts{"0", "0.3333333333333333", "0.6666666666666666", "1"}));
}

TEST(SweepRange, EveryStepHasTheValueOfItsDecimals) {
  const RangeScale made = scale({.min = 0, .max = 1000, .step = 0.001});
  ASSERT_EQ(made.count(), 1'000'001);
  for (std::uint64_t i = 0; i < *made.count(); i += 7)
    ASSERT_EQ(made.value_of(i).number, static_cast<double>(i) / 1000);
}

TEST(SweepRange, TheLastStepMayMissTheMaximumByRounding) {
  EXPECT_EQ(scale({.min = 0, .max = 0.3, .step = 0.1}).count(), 4);
  EXPECT_EQ(scale({.min = 0, .max = 0.99, .step = 0.1}).count(), 10);
  EXPECT_EQ(scale({.min = 0, .max = 1 - 1e-8, .step = 0.1}).count(), 10);
  const double nearly = 1 - 5e-11;
  EXPECT_EQ(scale({.min = 0, .max = nearly, .step = 0.1}).value_of(10).number, nearly)
      << "within the tolerance, and not above the maximum";
}

TEST(SweepRange, WholeNumbersHaveBothEnds) {
  EXPECT_EQ(texts({.min = 1, .max = 4, .integer = true}), (Texts{"1", "2", "3", "4"}));
  EXPECT_EQ(texts({.min = -1.5, .max = 1.5, .integer = true}), (Texts{"-1", "0", "1"}));
  EXPECT_EQ(texts({.min = 1.2, .max = 2.9, .integer = true}), (Texts{"2"}));
  EXPECT_EQ(texts({.min = 16, .max = 64, .integer = true, .step = 16}),
            (Texts{"16", "32", "48", "64"}));
  EXPECT_EQ(texts({.min = 0.5, .max = 6, .integer = true, .step = 2}), (Texts{"1", "3", "5"}));
  EXPECT_EQ(scale({.min = 1, .max = 4, .integer = true}).value_of(0).kind, Value::Kind::kInteger);
  EXPECT_EQ(scale({.min = 1, .max = 4, .step = 1}).value_of(0).kind, Value::Kind::kReal);
}

TEST(SweepRange, WholeNumbersGetEqualParts) {
  const RangeScale made = scale({.min = 3, .max = 6, .integer = true});
  for (int i = 0; i < 4000; ++i)
    EXPECT_EQ(made.value_at((i + 0.5) / 4000).number, 3 + i / 1000) << i;
}

TEST(SweepRange, WholeNumbersOfALogRangeGetWhatRoundsToThem) {
  const RangeScale made = scale({.min = 1, .max = 100, .log = true, .integer = true});
  EXPECT_EQ(made.value_at(0).text, "1");
  EXPECT_EQ(made.value_at(1).text, "100");
  const double width = std::log(100.5 / 0.5);
  for (int n = 1; n <= 100; ++n) {
    EXPECT_EQ(made.value_at(std::log((n - 0.499) / 0.5) / width).number, n);
    EXPECT_EQ(made.value_at(std::log((n + 0.499) / 0.5) / width).number, n);
  }
}

TEST(SweepRange, ALogRangeIsEvenInTheLogarithm) {
  const RangeScale made = scale({.min = 1e-4, .max = 1, .log = true});
  EXPECT_FALSE(made.count().has_value());
  EXPECT_EQ(made.value_at(0).number, 1e-4);
  EXPECT_NEAR(made.value_at(0.25).number, 1e-3, 1e-16);
  EXPECT_NEAR(made.value_at(0.5).number, 1e-2, 1e-15);
  EXPECT_LE(made.value_at(1).number, 1);
  EXPECT_GT(made.value_at(1).number, 0.999999);
}

TEST(SweepRange, ALinearRangeIsEven) {
  const RangeScale made = scale({.min = -1, .max = 3});
  EXPECT_EQ(made.value_at(0).text, "-1");
  EXPECT_EQ(made.value_at(0.25).text, "0");
  EXPECT_EQ(made.value_at(0.7).text, "1.7999999999999998");
  EXPECT_LE(made.value_at(1).number, 3);
}

TEST(SweepRange, ValuesAreEqualOnEveryMachine) {
  const RangeScale lr = scale({.min = 1e-5, .max = 0.1, .log = true});
  EXPECT_EQ(lr.value_at(0.1).text, "2.511886431509579e-05");
  EXPECT_EQ(lr.value_at(0.37).text, "0.0003019951720402016");
  EXPECT_EQ(lr.value_at(0.9).text, "0.03981071705534976");
}

// Ranges with a number of values, from small to as large as there may be.
std::vector<Range> countable() {
  return {{.min = 0, .max = 1, .step = 0.1},
          {.min = -7.3, .max = 20.9, .step = 0.7},
          {.min = 1e-9, .max = 1e-3, .step = 1e-9},
          {.min = 0, .max = 1, .step = 1.0 / 3},
          {.min = 0, .max = 1, .step = 0x1p-48},
          {.min = 1e6, .max = 1e6 + 1, .step = 1e-8},
          {.min = -1e300, .max = 1e300, .step = 3e298},
          {.min = 1e-300, .max = 1e-298, .step = 1e-300},
          {.min = 1, .max = 1e9, .integer = true},
          {.min = -100, .max = 100, .integer = true, .step = 7},
          {.min = -0x1p49, .max = 0x1p49 - 1, .integer = true},
          {.min = 0x1p53 - 1000, .max = 0x1p53, .integer = true},
          {.min = 1, .max = 10, .log = true, .integer = true},
          {.min = 1, .max = 1'000'000, .log = true, .integer = true},
          {.min = 1, .max = kMaxLogWhole, .log = true, .integer = true},
          {.min = kMaxLogWhole - 5, .max = kMaxLogWhole, .log = true, .integer = true}};
}

TEST(SweepRange, EveryValueComesBackFromItsNumber) {
  for (const Range& range : countable()) {
    const RangeScale made = scale(range);
    ASSERT_TRUE(made.count().has_value());
    const std::uint64_t count = *made.count();
    for (std::uint64_t i = 0; i < 2000; ++i) {
      // The first ones, the last ones, and some between.
      for (const std::uint64_t index :
           {i, count - 1 - std::min(i, count - 1), mix(1, i, 0) % count}) {
        if (index >= count) continue;
        const Value value = made.value_of(index);
        const double unit = made.unit_of(value.number);
        ASSERT_GE(unit, 0);
        ASSERT_LT(unit, 1);
        ASSERT_EQ(made.value_at(unit), value) << range.min << " to " << range.max << " " << index;
        ASSERT_GE(value.number, range.min);
        ASSERT_LE(value.number, range.max);
        if (index + 1 < count) {
          ASSERT_LT(value.number, made.value_of(index + 1).number);
        }
      }
    }
  }
}

TEST(SweepRange, ContinuousValuesComeBackNearly) {
  for (const Range& range : std::vector<Range>{{.min = -3, .max = 8},
                                               {.min = 1e-6, .max = 1, .log = true},
                                               {.min = 1e-300, .max = 1e300, .log = true}}) {
    const RangeScale made = scale(range);
    for (int i = 0; i < 1000; ++i) {
      const double unit = (i + 0.5) / 1000;
      EXPECT_NEAR(made.unit_of(made.value_at(unit).number), unit, 1e-12);
    }
  }
}

TEST(SweepRange, WhatIsOutOfRangeCountsAsTheNearest) {
  const RangeScale linear = scale({.min = 1, .max = 3});
  EXPECT_EQ(linear.unit_of(0), 0);
  EXPECT_LT(linear.unit_of(9), 1);
  EXPECT_GT(linear.unit_of(9), 0.999);
  EXPECT_EQ(linear.unit_of(std::nan("")), 0);
  EXPECT_EQ(linear.value_at(-1).text, "1");
  EXPECT_EQ(linear.value_at(std::nan("")).text, "1");
  EXPECT_LE(linear.value_at(kInfinite).number, 3);
  const RangeScale whole = scale({.min = 1, .max = 4, .integer = true});
  EXPECT_EQ(whole.unit_of(-kInfinite), 0.125);
  EXPECT_EQ(whole.unit_of(kInfinite), 0.875);
  EXPECT_EQ(whole.unit_of(2.4), 0.375);
  const RangeScale log = scale({.min = 1, .max = 4, .log = true, .integer = true});
  EXPECT_EQ(log.value_at(log.unit_of(0)).text, "1");
  EXPECT_EQ(log.value_at(log.unit_of(100)).text, "4");
}

TEST(SweepRange, RefusesZeroWidth) {
  EXPECT_EQ(refusal_of({.min = 0.1, .max = 0.1}), "the range has zero width");
  EXPECT_EQ(refusal_of({.min = 3, .max = 3, .integer = true}), "the range has zero width");
  const Result<RangeScale> made = RangeScale::make({.min = 0.1, .max = 0.1});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().evidence, "0.1 to 0.1");
  EXPECT_EQ(made.error().hint, "write one value instead of a range");
}

TEST(SweepRange, RefusesALogRangeThroughZero) {
  for (const double min : {0.0, -0.0, -1.0})
    EXPECT_EQ(refusal_of({.min = min, .max = 1, .log = true}),
              "the minimum of a log range is not above zero");
  EXPECT_EQ(refusal_of({.min = 5e-324, .max = 1, .log = true}), "");
}

TEST(SweepRange, RefusesWrongLimits) {
  EXPECT_EQ(refusal_of({.min = 2, .max = 1}), "the minimum of the range is above its maximum");
  EXPECT_EQ(refusal_of({.min = std::nan(""), .max = 1}), "a limit of the range is not finite");
  EXPECT_EQ(refusal_of({.min = 0, .max = kInfinite}), "a limit of the range is not finite");
  EXPECT_EQ(refusal_of({.min = -1e308, .max = 1e308}), "the range is too wide");
}

TEST(SweepRange, RefusesWrongSteps) {
  for (const double step : {0.0, -0.1, std::nan(""), kInfinite}) {
    EXPECT_EQ(refusal_of({.min = 0, .max = 1, .step = step}), "the step is not above zero");
    EXPECT_EQ(refusal_of({.min = 0, .max = 9, .integer = true, .step = step}),
              "the step is not above zero");
  }
  EXPECT_EQ(refusal_of({.min = 0, .max = 1, .step = 1.5}), "the step is larger than the range");
  EXPECT_EQ(refusal_of({.min = 0, .max = 3, .integer = true, .step = 4}),
            "the step is larger than the range");
  EXPECT_EQ(refusal_of({.min = 0, .max = 1, .step = 1e-15}),
            "the step is too small for numbers of this size");
  EXPECT_EQ(refusal_of({.min = 0, .max = 1, .step = 5e-324}),
            "the step is too small for numbers of this size");
  EXPECT_EQ(refusal_of({.min = 1, .max = 9, .log = true, .step = 1}), "a log range has no step");
  EXPECT_EQ(refusal_of({.min = 1, .max = 9, .integer = true, .step = 0.5}),
            "the step of a range of whole numbers is not whole");
  const Result<RangeScale> made = RangeScale::make({.min = 0, .max = 1, .step = -0.5});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().evidence, "0 to 1 in steps of -0.5");
}

TEST(SweepRange, RefusesWholeNumbersThatAreNotThereOrTooMany) {
  EXPECT_EQ(refusal_of({.min = 0.2, .max = 0.8, .integer = true}),
            "no whole number is in the range");
  EXPECT_EQ(refusal_of({.min = 0, .max = 0x1p54, .integer = true}),
            "a range of whole numbers is within -2^53 and 2^53");
  EXPECT_EQ(refusal_of({.min = 0, .max = 0x1p50, .integer = true}),
            "the range has more than 2^50 whole numbers");
  EXPECT_EQ(refusal_of({.min = -0x1p53, .max = 0x1p53, .integer = true, .step = 0x1p10}), "");
  EXPECT_EQ(refusal_of({.min = 1, .max = 2 * kMaxLogWhole, .log = true, .integer = true}),
            "a log range of whole numbers goes up to 2^40");
}

}  // namespace
}  // namespace mete::core::sweep
