// SPDX-License-Identifier: Apache-2.0
// Samplers against what defines them: published points of Sobol and Halton, even intervals, one
// sample for each row of a Latin hypercube, each point of a grid once. A few points are pinned to
// the last bit.
#include "core/sweep/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/sweep/maths.h"
#include "core/sweep/sequence.h"

namespace mete::core::sweep {
namespace {

Parameter listed(std::string name, std::initializer_list<std::string_view> words) {
  std::vector<Value> values;
  for (const std::string_view word : words) values.push_back(guess(word));
  return {std::move(name), std::move(values)};
}
Parameter ranged(std::string name, Range range) { return {std::move(name), range}; }
Range whole(double min, double max) { return {.min = min, .max = max, .integer = true}; }

Space space_of(std::vector<Parameter> parameters, std::string_view keep = "") {
  std::vector<std::string> names;
  for (const Parameter& parameter : parameters) names.push_back(parameter.name);
  std::optional<Expression> expression;
  if (!keep.empty()) expression = *Expression::parse(keep, names);
  Result<Space> space = Space::make(std::move(parameters), std::move(expression));
  EXPECT_TRUE(space.ok()) << space.error().message;
  return *std::move(space);
}

std::string text_of(const std::optional<Point>& point) {
  if (!point) return "none";
  std::string text;
  for (const std::optional<Value>& value : *point)
    text += (text.empty() ? "" : " ") + (value ? value->text : "-");
  return text;
}

std::vector<std::string> texts(const Space& space, const Sampling& sampling, std::uint64_t count) {
  std::vector<std::string> texts;
  for (std::uint64_t n = 0; n < count; ++n) texts.push_back(text_of(draw(space, sampling, n)));
  return texts;
}

using Units = std::vector<double>;

// The first points of Joe and Kuo's sequence, as other implementations publish them.
TEST(Sobol, DrawsThePublishedPoints) {
  const std::vector<Units> published = {
      {0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5},
      {0.75, 0.25, 0.25, 0.25, 0.75, 0.75, 0.25, 0.75, 0.75, 0.75},
      {0.25, 0.75, 0.75, 0.75, 0.25, 0.25, 0.75, 0.25, 0.25, 0.25},
      {0.375, 0.375, 0.625, 0.875, 0.375, 0.125, 0.375, 0.875, 0.875, 0.625},
      {0.875, 0.875, 0.125, 0.375, 0.875, 0.625, 0.875, 0.375, 0.375, 0.125},
      {0.625, 0.125, 0.875, 0.625, 0.625, 0.875, 0.125, 0.125, 0.125, 0.375},
      {0.125, 0.625, 0.375, 0.125, 0.125, 0.375, 0.625, 0.625, 0.625, 0.875},
      {0.1875, 0.3125, 0.9375, 0.4375, 0.5625, 0.3125, 0.4375, 0.9375, 0.9375, 0.3125}};
  for (std::uint64_t n = 0; n < published.size(); ++n)
    EXPECT_EQ(unit_point({Method::kSobol}, 10, n), published[n]) << n;
}

TEST(Sobol, HasEachIntervalOnceInEveryDimension) {
  for (const std::optional<std::uint64_t> seed :
       {std::optional<std::uint64_t>(), std::optional<std::uint64_t>(3)}) {
    for (std::size_t dimension = 0; dimension < kSobolDimensions; ++dimension) {
      const std::uint64_t shift = seed ? mix(*seed, 1, dimension) >> 11 : 0;
      std::set<std::uint64_t> intervals;
      for (std::uint64_t n = 0; n < 256; ++n)
        intervals.insert((sobol_bits(dimension, n) ^ shift) >> (53 - 8));
      EXPECT_EQ(intervals.size(), 256u) << dimension;
    }
  }
}

// Each rectangle of area 2^-8 whose sides are 2^-i and 2^-(8 - i) has one of 256 points. They are a
// block of the sequence; the origin belongs to the first one.
TEST(Sobol, FirstTwoDimensionsAreANet) {
  for (const std::optional<std::uint64_t> seed :
       {std::optional<std::uint64_t>(), std::optional<std::uint64_t>(99)})
    for (int i = 0; i <= 8; ++i) {
      std::set<std::pair<double, double>> rectangles;
      for (std::uint64_t n = 255; n < 511; ++n) {
        const Units unit = unit_point({Method::kSobol, seed}, 2, n);
        rectangles.emplace(std::floor(std::ldexp(unit[0], i)),
                           std::floor(std::ldexp(unit[1], 8 - i)));
      }
      EXPECT_EQ(rectangles.size(), 256u) << i;
    }
}

TEST(Sobol, DiffersBetweenAllDimensions) {
  std::set<std::vector<std::uint64_t>> sequences;
  for (std::size_t dimension = 0; dimension < kSobolDimensions; ++dimension) {
    std::vector<std::uint64_t> sequence;
    for (std::uint64_t n = 1; n < 4'096; ++n) sequence.push_back(sobol_bits(dimension, n));
    sequences.insert(sequence);
  }
  EXPECT_EQ(sequences.size(), kSobolDimensions);
}

TEST(Halton, DrawsThePublishedPoints) {
  const std::vector<Units> published = {{1.0 / 2, 1.0 / 3, 1.0 / 5},  {1.0 / 4, 2.0 / 3, 2.0 / 5},
                                        {3.0 / 4, 1.0 / 9, 3.0 / 5},  {1.0 / 8, 4.0 / 9, 4.0 / 5},
                                        {5.0 / 8, 7.0 / 9, 1.0 / 25}, {3.0 / 8, 2.0 / 9, 6.0 / 25},
                                        {7.0 / 8, 5.0 / 9, 11.0 / 25}};
  for (std::uint64_t n = 0; n < published.size(); ++n)
    EXPECT_EQ(unit_point({Method::kHalton}, 3, n), published[n]) << n;
}

TEST(Halton, UsesThePrimesInOrder) {
  EXPECT_EQ(halton(0, 1), 1.0 / 2);
  EXPECT_EQ(halton(9, 1), 1.0 / 29);
  EXPECT_EQ(halton(99, 1), 1.0 / 541);
  EXPECT_EQ(halton(255, 1), 1.0 / 1619);
  EXPECT_LT(halton(255, ~std::uint64_t{0}), 1);
}

TEST(Halton, HasEachIntervalOnceInEveryBase) {
  for (const auto& [dimension, base] : {std::pair<std::size_t, std::uint64_t>{1, 3}, {2, 5}}) {
    std::set<double> intervals;
    const auto count = static_cast<double>(base * base * base);
    for (std::uint64_t n = 0; n < base * base * base; ++n)
      intervals.insert(std::floor(halton(dimension, n) * count + 1e-9));
    EXPECT_EQ(intervals.size(), base * base * base);
  }
}

TEST(Halton, ASeedMovesAllPointsOfADimensionAlike) {
  const Units plain = unit_point({Method::kHalton}, 4, 0);
  const Units moved = unit_point({Method::kHalton, 5}, 4, 0);
  for (std::uint64_t n = 1; n < 100; ++n)
    for (std::size_t i = 0; i < 4; ++i) {
      const double by = unit_point({Method::kHalton, 5}, 4, n)[i] - moved[i] -
                        (unit_point({Method::kHalton}, 4, n)[i] - plain[i]);
      EXPECT_NEAR(by, std::round(by), 1e-12);
    }
}

TEST(Latin, HasOneSampleInEachRowOfEachDimension) {
  for (const std::uint64_t trials : {1, 2, 3, 7, 24, 100, 1'000}) {
    const Sampling sampling{Method::kLatin, 11, trials};
    std::vector<std::set<double>> rows(8);
    for (std::uint64_t n = 0; n < trials; ++n) {
      const Units unit = unit_point(sampling, rows.size(), n);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        EXPECT_TRUE(unit[i] >= 0 && unit[i] < 1);
        rows[i].insert(std::floor(unit[i] * static_cast<double>(trials)));
      }
    }
    for (const std::set<double>& dimension : rows) EXPECT_EQ(dimension.size(), trials);
  }
}

TEST(Latin, DimensionsAreIndependentAndTheNextHypercubeDiffers) {
  const Sampling sampling{Method::kLatin, 11, 1'000};
  double product = 0;
  std::uint64_t same = 0;
  for (std::uint64_t n = 0; n < 1'000; ++n) {
    const Units unit = unit_point(sampling, 2, n);
    product += (unit[0] - 0.5) * (unit[1] - 0.5) * 12 / 1'000;
    same += unit_point(sampling, 1, n)[0] == unit_point(sampling, 1, n + 1'000)[0] ? 1 : 0;
  }
  EXPECT_LT(std::abs(product), 0.1);
  EXPECT_EQ(same, 0u);
}

TEST(Shuffle, IsAPermutationOfEverySize) {
  for (std::uint64_t size = 1; size < 300; ++size)
    for (const std::uint64_t key : {0, 1}) {
      std::set<std::uint64_t> random, spread_out;
      for (std::uint64_t i = 0; i < size; ++i) {
        random.insert(shuffled(key, size, i));
        spread_out.insert(spread(key, size, i));
      }
      EXPECT_EQ(random.size(), size);
      EXPECT_EQ(*random.rbegin(), size - 1);
      EXPECT_EQ(spread_out.size(), size);
      EXPECT_EQ(*spread_out.rbegin(), size - 1);
    }
}

TEST(Shuffle, EveryOrderOfThreeComesAboutEquallyOften) {
  std::map<std::vector<std::uint64_t>, int> seen;
  for (std::uint64_t key = 0; key < 6'000; ++key)
    ++seen[{shuffled(mix(1, 1, key), 3, 0), shuffled(mix(1, 1, key), 3, 1),
            shuffled(mix(1, 1, key), 3, 2)}];
  EXPECT_EQ(seen.size(), 6u);
  for (const auto& [order, count] : seen) EXPECT_NEAR(count, 1'000, 200);
}

TEST(Shuffle, SpreadNumbersAreFarApartFromTheStart) {
  for (std::uint64_t key = 0; key < 50; ++key) {
    std::set<std::uint64_t> parts;
    for (std::uint64_t i = 0; i < 8; ++i) parts.insert(spread(key, 1'024, i) / 128);
    EXPECT_EQ(parts.size(), 8u);
  }
}

TEST(Grid, GoesThroughAllPointsTheLastParameterFastest) {
  const Space space = space_of({listed("a", {"1", "2"}), listed("b", {"x", "y", "z"})});
  const Sampling grid{Method::kGrid};
  EXPECT_EQ(draws(space, grid), 6u);
  EXPECT_EQ(texts(space, grid, 7),
            (std::vector<std::string>{"1 x", "1 y", "1 z", "2 x", "2 y", "2 z", "none"}));
}

TEST(Grid, LeavesOutWhatIsNotKept) {
  const Space space = space_of({listed("a", {"1", "2"}), listed("b", {"3", "4"})}, "a + b != 5");
  EXPECT_EQ(texts(space, {Method::kGrid}, 4),
            (std::vector<std::string>{"1 3", "none", "none", "2 4"}));
}

TEST(Grid, ScatteredHasEveryPointOnce) {
  const Space space =
      space_of({listed("a", {"1", "2", "3"}), ranged("b", whole(1, 10)), listed("c", {"fixed"}),
                listed("d", {"x", "y"}), ranged("e", whole(1, 7))});
  Sampling sampling{Method::kGrid};
  sampling.scattered = true;
  for (const std::uint64_t seed : {0, 1, 2}) {
    sampling.seed = seed;
    const std::vector<std::string> drawn = texts(space, sampling, 420);
    EXPECT_EQ(std::set<std::string>(drawn.begin(), drawn.end()).size(), 420u);
    EXPECT_EQ(std::count(drawn.begin(), drawn.end(), "none"), 0);
  }
  EXPECT_EQ(text_of(draw(space, sampling, 420)), "none");
}

TEST(Grid, ScatteredSoonHasEachValue) {
  const Space space = space_of({ranged("a", whole(1, 10)), ranged("b", whole(1, 10)),
                                ranged("c", whole(1, 5)), ranged("d", whole(1, 10))});
  Sampling sampling{Method::kGrid};
  sampling.scattered = true;
  for (std::uint64_t round = 0; round < 10; ++round) {
    std::vector<std::set<std::string>> values(4);
    for (std::uint64_t n = 10 * round; n < 10 * round + 10; ++n) {
      const Point point = *draw(space, sampling, n);
      for (std::size_t i = 0; i < 4; ++i) values[i].insert(point[i]->text);
    }
    EXPECT_EQ(values[0].size(), 10u);
    EXPECT_EQ(values[1].size(), 10u);
    EXPECT_EQ(values[2].size(), 5u);
    EXPECT_EQ(values[3].size(), 10u);
  }
}

TEST(Grid, ABillionBillionPointsCostNothing) {
  const Space space = space_of(
      {ranged("a", whole(1, 1e6)), ranged("b", whole(1, 1e6)), ranged("c", whole(1, 1e6))});
  Sampling sampling{Method::kGrid};
  EXPECT_EQ(draws(space, sampling), 1'000'000'000'000'000'000u);
  EXPECT_EQ(text_of(draw(space, sampling, 999'999'999'999'999'999u)), "1000000 1000000 1000000");
  sampling.scattered = true;
  std::set<std::string> seen;
  for (std::uint64_t n = 0; n < 1'000; ++n) seen.insert(text_of(draw(space, sampling, n)));
  EXPECT_EQ(seen.size(), 1'000u);
}

TEST(Sampler, RefusesWhatItCannotDraw) {
  const Space continuous = space_of({listed("a", {"1"}), ranged("lr", {0, 1})});
  const Result<void> grid = check(continuous, {Method::kGrid});
  ASSERT_FALSE(grid.ok());
  EXPECT_EQ(grid.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(grid.error().message, "a grid needs values, and lr is a continuous range");
  EXPECT_EQ(draw(continuous, {Method::kGrid}, 0), std::nullopt);

  std::vector<Parameter> many;
  for (int i = 0; i < 64; ++i)
    many.push_back(listed(std::string("p").append(std::to_string(i)), {"1", "2"}));
  const Result<void> huge = check(space_of(many), {Method::kGrid});
  ASSERT_FALSE(huge.ok());
  EXPECT_EQ(huge.error().message, "the grid has more than 2^63 points");

  EXPECT_FALSE(check(continuous, {Method::kLatin}).ok());
  EXPECT_TRUE(check(continuous, {Method::kLatin, {}, 10}).ok());
  for (const Method method : {Method::kRandom, Method::kSobol, Method::kHalton, Method::kTpe}) {
    EXPECT_TRUE(check(continuous, {method}).ok());
    EXPECT_EQ(draws(continuous, {method}), std::nullopt);
  }
}

TEST(Sampler, NamesOfMethodsReadBack) {
  for (const std::string_view name : kMethods) EXPECT_EQ(to_string(*parse_method(name)), name);
  EXPECT_EQ(parse_method("latin"), std::nullopt);
}

TEST(Sampler, SameSeedSamePointsAndAnotherSeedOthers) {
  const Space space = space_of({ranged("a", {0, 1}), ranged("b", whole(1, 1'000'000)),
                                ranged("c", {.min = 1e-5, .max = 1, .log = true})});
  for (const Method method :
       {Method::kRandom, Method::kSobol, Method::kHalton, Method::kLatin, Method::kTpe}) {
    const std::vector<std::string> one = texts(space, {method, 1, 20}, 20);
    EXPECT_EQ(one, texts(space, {method, 1, 20}, 20));
    const std::vector<std::string> two = texts(space, {method, 2, 20}, 20);
    for (std::size_t n = 0; n < 20; ++n) EXPECT_NE(one[n], two[n]) << to_string(method);
    EXPECT_EQ(std::set<std::string>(one.begin(), one.end()).size(), 20u);
  }
}

TEST(Sampler, WorksWithTheMostParametersThereAre) {
  for (const Method method :
       {Method::kRandom, Method::kSobol, Method::kHalton, Method::kLatin, Method::kTpe})
    for (const std::uint64_t n : {0, 1, 1'000'000})
      for (const double unit : unit_point({method, 4, 10}, kMaxParameters, n))
        EXPECT_TRUE(unit >= 0 && unit < 1);
}

TEST(Sampler, ConditionsAndKeepHoldForAllMethods) {
  std::vector<Parameter> parameters = {listed("opt", {"sgd", "adam"}), ranged("momentum", {0, 1}),
                                       ranged("width", whole(1, 100))};
  const std::vector<std::string> names = {"opt", "momentum", "width"};
  parameters[1].when = *Expression::parse("opt == 'sgd'", names);
  const Space space = space_of(parameters, "width <= 50");
  for (const Method method : {Method::kRandom, Method::kSobol, Method::kHalton, Method::kLatin}) {
    std::size_t kept = 0;
    for (std::uint64_t n = 0; n < 100; ++n) {
      const std::optional<Point> point = draw(space, {method, 1, 100}, n);
      if (!point) continue;
      ++kept;
      EXPECT_EQ((*point)[1].has_value(), (*point)[0]->text == "sgd");
      EXPECT_LE((*point)[2]->number, 50);
    }
    EXPECT_TRUE(kept >= 35 && kept <= 65) << to_string(method) << ' ' << kept;
  }
}

// These numbers are what a seed means: if one changes, so do the sweeps of all users.
TEST(Sampler, DrawsTheSameBitsEverywhere) {
  EXPECT_EQ(unit_point({Method::kRandom, 42}, 3, 7),
            (Units{0x1.46333ef321226p-2, 0x1.213af0adb7d3ap-1, 0x1.f5d031510de61p-1}));
  EXPECT_EQ(unit_point({Method::kSobol, 42}, 3, 7),
            (Units{0x1.4442e95cfbb18p-2, 0x1.8f74531cb7ef6p-1, 0x1.cb274eea90f9cp-3}));
  EXPECT_EQ(unit_point({Method::kHalton, 42}, 3, 7),
            (Units{0x1.c442e95cfbb18p-2, 0x1.ed2189c7a8c24p-2, 0x1.b4efd06b0b0c4p-2}));
  EXPECT_EQ(unit_point({Method::kLatin, 42, 24}, 3, 7),
            (Units{0x1.708442aaaaaabp-3, 0x1.616274aaaaaabp-1, 0x1.ff26aeaaaaaabp-2}));
  const Space space = space_of({ranged("a", whole(1, 10)), ranged("b", whole(1, 10))});
  Sampling scattered{Method::kGrid};
  scattered.scattered = true;
  EXPECT_EQ(texts(space, scattered, 6),
            (std::vector<std::string>{"5 7", "6 2", "3 9", "8 4", "1 8", "9 3"}));
}

}  // namespace
}  // namespace mete::core::sweep
