// SPDX-License-Identifier: Apache-2.0
#include "core/sweep/importance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "core/sweep/maths.h"

namespace mete::core::sweep {
namespace {

Parameter range(const std::string& name) { return {name, Range{}}; }

// `n` results at random points; noise is in [-0.5, 0.5).
std::vector<Scored> results(const Space& space, std::size_t n,
                            const std::function<double(const Point&, double noise)>& loss) {
  std::vector<Scored> scored;
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<double> unit;
    for (std::size_t k = 0; k < space.parameters().size(); ++k)
      unit.push_back(unit_of_bits(mix(11, k, i)));
    const Point point = space.at(unit);
    scored.push_back({point, loss(point, unit_of_bits(mix(11, 1'000, i)) - 0.5)});
  }
  return scored;
}

Importance of(std::size_t parameter, const std::vector<Importance>& all) {
  for (const Importance& one : all)
    if (one.parameter == parameter) return one;
  ADD_FAILURE() << "no parameter " << parameter;
  return {};
}

double number(const Point& point, std::size_t parameter) { return point[parameter]->number; }

// y = 4a + 2b: the variances are 16/12 and 4/12.
TEST(Importance, SharesTheVarianceOfASum) {
  const Space space = *Space::make({range("c"), range("b"), range("a"), range("d")});
  const auto scored = results(space, 1'000, [](const Point& p, double noise) {
    return 4 * number(p, 2) + 2 * number(p, 1) + 0.2 * noise;
  });
  const std::vector<Importance> all = importance(space, scored);
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].parameter, 2U);
  EXPECT_NEAR(all[0].pct, 80, 3);
  EXPECT_LT(all[0].plus_minus_pct, 3);
  EXPECT_GT(all[0].plus_minus_pct, 0);
  EXPECT_GT(*all[0].correlation, 0.8);
  EXPECT_EQ(all[1].parameter, 1U);
  EXPECT_NEAR(all[1].pct, 20, 3);
  EXPECT_LT(all[2].pct, 1) << "irrelevant";
  EXPECT_LT(all[3].pct, 1);
}

TEST(Importance, DirectionChangesOnlyTheCorrelation) {
  const Space space = *Space::make({range("a"), range("b")});
  const auto up = results(space, 200, [](const Point& p, double noise) {
    return 4 * number(p, 0) + number(p, 1) + noise;
  });
  std::vector<Scored> down = up;
  for (Scored& one : down) one.loss = -*one.loss;
  const Importance a = of(0, importance(space, up));
  const Importance b = of(0, importance(space, down));
  EXPECT_NEAR(a.pct, b.pct, 0.1);
  EXPECT_NEAR(*a.correlation, -*b.correlation, 1e-12);
}

TEST(Importance, FindsAValueOfAList) {
  const Space space =
      *Space::make({range("lr"),
                    {"opt", std::vector<Value>{of_text("adam"), of_text("sgd"), of_text("lion")}},
                    {"fixed", std::vector<Value>{of_integer(1)}}});
  const auto scored = results(space, 300, [](const Point& p, double noise) {
    return (p[1]->text == "sgd" ? 3 : 0) + 0.5 * number(p, 0) + 0.2 * noise;
  });
  const std::vector<Importance> all = importance(space, scored);
  ASSERT_EQ(all.size(), 2U) << "one value cannot matter";
  EXPECT_EQ(all[0].parameter, 1U);
  EXPECT_GT(all[0].pct, 90);
  EXPECT_FALSE(all[0].correlation) << "a text";
  EXPECT_TRUE(all[1].correlation);
}

// Neither alone explains much of (a - 1/2)(b - 1/2).
TEST(Importance, InteractionsBelongToNoParameter) {
  const Space space = *Space::make({range("a"), range("b")});
  const auto scored = results(space, 1'500, [](const Point& p, double) {
    return (number(p, 0) - 0.5) * (number(p, 1) - 0.5);
  });
  for (const Importance& one : importance(space, scored)) EXPECT_LT(one.pct, 15);
}

TEST(Importance, HandlesParametersThatAreNotInUse) {
  std::vector<Parameter> parameters = {
      {"opt", std::vector<Value>{of_text("adam"), of_text("sgd")}}, range("momentum"), range("lr")};
  const std::vector<std::string> names = {"opt", "momentum", "lr"};
  parameters[1].when = *Expression::parse("opt == \"sgd\"", names);
  const Space space = *Space::make(std::move(parameters));
  const auto scored = results(space, 800, [](const Point& p, double noise) {
    return (p[1] ? 1 + 4 * p[1]->number : 3) + 0.1 * noise;
  });
  const std::vector<Importance> all = importance(space, scored);
  EXPECT_EQ(all[0].parameter, 1U);
  EXPECT_GT(all[0].pct, 50) << "the rest is its interaction with opt";
  EXPECT_GT(*all[0].correlation, 0.95) << "of the trials that use it";
  EXPECT_LT(of(0, all).pct, 40);
  EXPECT_LT(of(2, all).pct, 1);
}

TEST(Importance, DivergedTrialsDoNotExplainEverything) {
  const Space space = *Space::make({range("a"), range("b")});
  std::vector<Scored> scored = results(space, 500, [](const Point& p, double noise) {
    return 4 * number(p, 0) + 0.5 * number(p, 1) + 0.1 * noise;
  });
  for (std::size_t i = 0; i < scored.size(); i += 100) scored[i].loss = 1e300;
  scored[1].loss = std::numeric_limits<double>::infinity();
  scored[2].loss = std::numeric_limits<double>::quiet_NaN();
  scored[3].loss = std::nullopt;
  EXPECT_GT(of(0, importance(space, scored)).pct, 60);
}

TEST(Importance, NeedsEightResultsThatDiffer) {
  const Space space = *Space::make({range("a")});
  const auto loss = [](const Point& p, double) { return number(p, 0); };
  EXPECT_TRUE(importance(space, results(space, 7, loss)).empty());
  EXPECT_EQ(importance(space, results(space, 8, loss)).size(), 1U);
  EXPECT_TRUE(
      importance(space, results(space, 50, [](const Point&, double) { return 3; })).empty());
  EXPECT_TRUE(importance(space, {}).empty());
  std::vector<Scored> failed = results(space, 8, loss);
  failed[0].loss = std::nullopt;
  EXPECT_TRUE(importance(space, failed).empty());
}

TEST(Importance, EqualPointsExplainNothing) {
  const Space space = *Space::make({range("a")});
  auto scored = results(space, 40, [](const Point&, double noise) { return noise; });
  for (Scored& one : scored) one.point = scored[0].point;
  const std::vector<Importance> all = importance(space, scored);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].pct, 0);
}

TEST(Importance, EqualResultsGiveEqualAnswers) {
  std::vector<Parameter> many;
  for (int i = 0; i < 20; ++i) many.push_back(range("p" + std::to_string(i)));
  const Space space = *Space::make(std::move(many));
  const auto scored = results(space, 3'000, [](const Point& p, double noise) {
    return number(p, 3) * 2 + number(p, 17) + noise;
  });
  const std::vector<Importance> one = importance(space, scored);
  const std::vector<Importance> other = importance(space, scored);
  ASSERT_EQ(one.size(), 20U);
  EXPECT_EQ(one[0].parameter, 3U);
  EXPECT_EQ(one[1].parameter, 17U);
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].parameter, other[i].parameter);
    EXPECT_EQ(one[i].pct, other[i].pct);
    EXPECT_EQ(one[i].plus_minus_pct, other[i].plus_minus_pct);
  }
}

}  // namespace
}  // namespace mete::core::sweep
