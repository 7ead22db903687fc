// SPDX-License-Identifier: Apache-2.0
// TPE against random search on functions with known shapes, each in the median of 20 seeds; then
// what it does with failed trials, running trials, conditions, `keep`, and spaces that end. Last,
// that the density under it is one, and that its samples follow it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "core/sweep/maths.h"
#include "core/sweep/parzen.h"
#include "core/sweep/sampler.h"

namespace mete::core::sweep {
namespace {

using Loss = std::function<double(const Point&)>;

Parameter ranged(std::string name, double min, double max, bool log = false, bool integer = false) {
  return {std::move(name), Range{.min = min, .max = max, .log = log, .integer = integer}};
}
Parameter listed(std::string name, std::initializer_list<std::string_view> words) {
  std::vector<Value> values;
  for (const std::string_view word : words) values.push_back(guess(word));
  return {std::move(name), std::move(values)};
}

// Conditions of parameters by their names.
Space space_of(std::vector<Parameter> parameters,
               std::vector<std::pair<std::string, std::string>> conditions = {},
               std::string_view keep = "") {
  std::vector<std::string> names;
  for (const Parameter& parameter : parameters) names.push_back(parameter.name);
  for (Parameter& parameter : parameters)
    for (const auto& [name, condition] : conditions)
      if (parameter.name == name) parameter.when = *Expression::parse(condition, names);
  std::optional<Expression> expression;
  if (!keep.empty()) expression = *Expression::parse(keep, names);
  Result<Space> space = Space::make(std::move(parameters), std::move(expression));
  EXPECT_TRUE(space.ok()) << space.error().message;
  return *std::move(space);
}
Space cube(std::size_t dimensions, double min, double max) {
  std::vector<Parameter> parameters;
  for (std::size_t i = 0; i < dimensions; ++i)
    parameters.push_back(ranged(std::string("x").append(std::to_string(i)), min, max));
  return space_of(std::move(parameters));
}

double at(const Point& point, std::size_t i) { return point[i]->number; }
double square(double x) { return x * x; }

double branin(const Point& p) {
  const double x = at(p, 0), y = at(p, 1);
  const double bend = y - 5.1 / (4 * M_PI * M_PI) * x * x + 5 / M_PI * x - 6;
  return bend * bend + 10 * (1 - 1 / (8 * M_PI)) * std::cos(x) + 10;
}

double hartmann6(const Point& p) {
  constexpr double kHeight[4] = {1, 1.2, 3, 3.2};
  constexpr double kSlope[4][6] = {{10, 3, 17, 3.5, 1.7, 8},
                                   {0.05, 10, 17, 0.1, 8, 14},
                                   {3, 3.5, 1.7, 10, 17, 8},
                                   {17, 8, 0.05, 10, 0.1, 14}};
  constexpr double kPlace[4][6] = {{0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886},
                                   {0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991},
                                   {0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650},
                                   {0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381}};
  double sum = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    double distance = 0;
    for (std::size_t j = 0; j < 6; ++j) distance += kSlope[i][j] * square(at(p, j) - kPlace[i][j]);
    sum -= kHeight[i] * std::exp(-distance);
  }
  return sum;
}

double rosenbrock(const Point& p) {
  double sum = 0;
  for (std::size_t i = 0; i + 1 < p.size(); ++i)
    sum += 100 * square(at(p, i + 1) - square(at(p, i))) + square(1 - at(p, i));
  return sum;
}

// Like the training of a network: optimizers with own parameters, and a width for each layer.
Space network() {
  return space_of({listed("opt", {"adam", "sgd", "rms"}), ranged("lr", 1e-5, 1, true),
                   ranged("beta", 0.5, 0.999), ranged("momentum", 0, 1),
                   ranged("layers", 1, 3, false, true), ranged("w1", 8, 1024, true, true),
                   ranged("w2", 8, 1024, true, true), ranged("w3", 8, 1024, true, true)},
                  {{"beta", "opt == 'adam'"},
                   {"momentum", "opt == 'sgd'"},
                   {"w2", "layers >= 2"},
                   {"w3", "layers >= 3"}});
}
double network_loss(const Point& p) {
  const double lr = std::log10(at(p, 1));
  double loss = 0.05 * square(at(p, 4) - 2);
  if (p[0]->text == "adam")
    loss += 0.1 + 0.3 * square(lr + 3) + 2 * square(at(p, 2) - 0.9);
  else if (p[0]->text == "sgd")
    loss += 0.15 + 0.3 * square(lr + 1) + 1.5 * square(at(p, 3) - 0.8);
  else
    loss += 0.4 + 0.3 * square(lr + 2.5);
  for (std::size_t i = 0; i < static_cast<std::size_t>(at(p, 4)); ++i)
    loss += 0.05 * square(std::log2(at(p, 5 + i)) - 7 + static_cast<double>(i));
  return loss;
}

// The best of `trials`, of which `parallel` run at a time.
double best_of(const Space& space, const Loss& loss, const Sampling& sampling,
               std::size_t parallel = 1) {
  std::vector<Scored> scored;
  std::vector<Point> running;
  double best = INFINITY;
  for (std::uint64_t n = 0; scored.size() < sampling.trials;) {
    while (running.size() < parallel)
      if (std::optional<Point> point = draw(space, sampling, n++, scored, running))
        running.push_back(*std::move(point));
    const double result = loss(running.front());
    best = std::min(best, result);
    scored.push_back({running.front(), result});
    running.erase(running.begin());
  }
  return best;
}

double median_of(const Space& space, const Loss& loss, Method method, std::uint64_t trials,
                 std::size_t parallel = 1) {
  std::vector<double> bests;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    bests.push_back(best_of(space, loss, {method, seed, trials}, parallel));
  std::sort(bests.begin(), bests.end());
  return (bests[9] + bests[10]) / 2;
}

void expect_a_third_of_the_trials(const Space& space, const Loss& loss) {
  const double random = median_of(space, loss, Method::kRandom, 150);
  EXPECT_LE(median_of(space, loss, Method::kTpe, 50), random);
  EXPECT_LE(median_of(space, loss, Method::kTpe, 50, 4), random) << "4 at a time";
}

TEST(Tpe, NeedsAThirdOfTheTrialsOnBranin) {
  expect_a_third_of_the_trials(space_of({ranged("x", -5, 10), ranged("y", 0, 15)}), branin);
}
TEST(Tpe, NeedsAThirdOfTheTrialsOnHartmann6) {
  expect_a_third_of_the_trials(cube(6, 0, 1), hartmann6);
}
TEST(Tpe, NeedsAThirdOfTheTrialsOnRosenbrock4) {
  expect_a_third_of_the_trials(cube(4, -5, 10), rosenbrock);
  expect_a_third_of_the_trials(cube(4, -2.048, 2.048), rosenbrock);
}
TEST(Tpe, NeedsAThirdOfTheTrialsInAConditionalSpace) {
  expect_a_third_of_the_trials(network(), network_loss);
}

// Results for the random points 0 … count - 1.
std::vector<Scored> results_of(const Space& space, const Loss& loss, std::uint64_t count) {
  std::vector<Scored> scored;
  for (std::uint64_t n = 0; n < count; ++n) {
    Point point = *draw(space, {Method::kRandom, 1}, n);
    scored.push_back({point, loss(point)});
  }
  return scored;
}

TEST(Tpe, DrawsLikeRandomUntilItHasTenResults) {
  const Space space = cube(3, 0, 1);
  std::vector<Scored> scored = results_of(space, rosenbrock, 9);
  scored.push_back({scored[0].point, std::nullopt});
  scored.push_back({scored[0].point, NAN});
  for (const std::uint64_t n : {0, 9, 500})
    EXPECT_EQ(draw(space, {Method::kTpe, 5}, n, scored), draw(space, {Method::kRandom, 5}, n));
  scored.push_back({scored[0].point, 0.0});
  EXPECT_NE(draw(space, {Method::kTpe, 5}, 9, scored), draw(space, {Method::kRandom, 5}, 9));
}

TEST(Tpe, SameResultsSameSuggestionAndAnotherNumberAnotherOne) {
  const Space space = network();
  const std::vector<Scored> scored = results_of(space, network_loss, 40);
  EXPECT_EQ(suggest(space, 1, 40, scored, {}), suggest(space, 1, 40, scored, {}));
  EXPECT_NE(suggest(space, 1, 40, scored, {}), suggest(space, 1, 41, scored, {}));
  EXPECT_NE(suggest(space, 1, 40, scored, {}), suggest(space, 2, 40, scored, {}));
}

// This number is what a seed means: if it changes, so do the sweeps of all users.
TEST(Tpe, SuggestsTheSameBitsEverywhere) {
  const Space space = space_of({ranged("a", 0, 1), ranged("b", 1, 100, false, true),
                                listed("c", {"x", "y", "z"}), listed("d", {"8", "2", "4"})});
  const std::vector<Scored> scored = results_of(
      space,
      [](const Point& p) {
        return square(at(p, 0) - 0.5) + at(p, 1) / 100 + (p[2]->text == "y" ? 0 : 1) + at(p, 3);
      },
      40);
  const Point point = suggest(space, 1, 40, scored, {});
  EXPECT_EQ(at(point, 0), 0x1.334349560dbeep-1);
  EXPECT_EQ(point[1]->text, "41");
  EXPECT_EQ(point[2]->text, "y");
  EXPECT_EQ(point[3]->text, "2");
}

TEST(Tpe, RunningTrialsPushSuggestionsAway) {
  const Space space = cube(2, 0, 1);
  const std::vector<Scored> scored = results_of(
      space, [](const Point& p) { return square(at(p, 0) - 0.3) + square(at(p, 1) - 0.7); }, 60);
  const auto distance = [](const Point& a, const Point& b) {
    return std::hypot(at(a, 0) - at(b, 0), at(a, 1) - at(b, 1));
  };
  double alone = 0, together = 0;
  for (std::uint64_t n = 0; n < 200; ++n) {
    const Point first = suggest(space, 1, 2 * n, scored, {});
    const std::vector<Point> running(3, first);
    alone += distance(first, suggest(space, 1, 2 * n + 1, scored, {}));
    together += distance(first, suggest(space, 1, 2 * n + 1, scored, running));
  }
  EXPECT_GT(together, 1.2 * alone);
}

TEST(Tpe, FailedTrialsCountAsBad) {
  const Space space = cube(1, 0, 1);
  const auto loss = [](const Point& p) -> std::optional<double> {
    if (at(p, 0) > 0.5) return std::nullopt;
    return at(p, 0);
  };
  std::vector<Scored> scored;
  for (std::uint64_t n = 0; n < 60; ++n) {
    const Point point = *draw(space, {Method::kRandom, 1}, n);
    scored.push_back({point, loss(point)});
  }
  std::size_t failing = 0;
  for (std::uint64_t n = 0; n < 100; ++n)
    failing += at(suggest(space, 1, n, scored, {}), 0) > 0.5 ? 1 : 0;
  EXPECT_LE(failing, 5u);
}

TEST(Tpe, LearnsAParameterFromTheTrialsThatUseIt) {
  const Space space = space_of({listed("opt", {"adam", "sgd"}), ranged("momentum", 0, 1)},
                               {{"momentum", "opt == 'sgd'"}});
  const auto loss = [](const Point& p) { return p[1] ? square(at(p, 1) - 0.8) : 1.0; };
  const std::vector<Scored> scored = results_of(space, loss, 60);
  std::size_t near = 0;
  for (std::uint64_t n = 0; n < 100; ++n) {
    const Point point = suggest(space, 1, n, scored, {});
    EXPECT_EQ(point[1].has_value(), point[0]->text == "sgd");
    near += point[1] && std::abs(at(point, 1) - 0.8) < 0.15 ? 1 : 0;
  }
  EXPECT_GE(near, 80u);
}

TEST(Tpe, EqualResultsAreNoReasonToStop) {
  const Space space = network();
  const std::vector<Scored> scored = results_of(
      space, [](const Point&) { return 1.0; }, 50);
  std::set<std::uint64_t> seen;
  for (std::uint64_t n = 0; n < 50; ++n) seen.insert(hash(suggest(space, 1, n, scored, {})));
  EXPECT_EQ(seen.size(), 50u);
}

TEST(Tpe, InfiniteLossesAreTheWorst) {
  const Space space = cube(2, 0, 1);
  const std::vector<Scored> scored = results_of(
      space, [](const Point& p) { return at(p, 0) > 0.3 ? INFINITY : -at(p, 0); }, 60);
  for (std::uint64_t n = 0; n < 20; ++n) {
    const Point point = suggest(space, 1, n, scored, {});
    EXPECT_TRUE(at(point, 0) >= 0 && at(point, 0) <= 1);
  }
}

TEST(Tpe, ASpaceOfOnePointHasOneSuggestion) {
  const Space space = space_of({listed("a", {"1"}), listed("b", {"x"})});
  const Point only = space.at(std::vector<double>{0, 0});
  const std::vector<Scored> scored(20, Scored{only, 1.0});
  EXPECT_EQ(suggest(space, 1, 20, scored, {}), only);
  EXPECT_EQ(draw(space, {Method::kTpe}, 20, scored, std::vector<Point>{only}), only);
}

TEST(Tpe, GoesThroughAFiniteSpaceWithoutRepeats) {
  const Space space = space_of({listed("a", {"1", "2", "4", "8"}), listed("b", {"x", "y", "z"}),
                                listed("c", {"true", "false"}), ranged("i", 1, 3, false, true)},
                               {}, "not (a == 8 and i == 3)");
  std::vector<Scored> scored;
  std::set<std::uint64_t> seen;
  for (std::uint64_t n = 0; n < 200 && scored.size() < 66; ++n) {
    const std::optional<Point> point = draw(space, {Method::kTpe, 1}, n, scored);
    const bool learns = scored.size() >= kTpeStart;
    ASSERT_TRUE(point || !learns);
    if (!point) continue;
    const bool is_new = seen.insert(hash(*point)).second;
    EXPECT_TRUE(is_new || !learns);
    if (is_new) scored.push_back({*point, at(*point, 0)});
  }
  EXPECT_EQ(scored.size(), 66u);
}

TEST(Tpe, FindsPointsThatANarrowKeepAllows) {
  const Space space =
      space_of({ranged("a", 0, 1), ranged("b", 0, 1)}, {}, "a + b > 0.95 and a + b < 1.05");
  std::vector<Scored> scored;
  for (std::uint64_t n = 0; scored.size() < 10; ++n)
    if (std::optional<Point> point = draw(space, {Method::kTpe, 1}, n, scored))
      scored.push_back({*point, at(*point, 0)});
  std::size_t refused = 0;
  for (std::uint64_t n = 1'000; n < 1'050; ++n) {
    const std::optional<Point> point = draw(space, {Method::kTpe, 1}, n, scored);
    if (!point)
      ++refused;
    else
      scored.push_back({*point, at(*point, 0)});
  }
  EXPECT_EQ(refused, 0u);
}

TEST(Tpe, NothingIsDrawnWhereKeepHoldsForNothing) {
  const Space space = space_of({ranged("a", 0, 1)}, {}, "a > 2");
  const Point point = space.at(std::vector<double>{0.5});
  std::vector<Scored> scored(12, Scored{point, 1.0});
  EXPECT_EQ(draw(space, {Method::kTpe, 1}, 12, scored), std::nullopt);
}

TEST(Parzen, IsADensity) {
  const std::vector<Axis> axes = {{0, 0}, {0, 0}, {3, 0}};
  const std::vector<Place> places = {{0.1, 0.9, 0}, {0.2, NAN, 2}, {0.95, 0.5, 2}};
  const Parzen parzen(axes, places, {1, 2, 3}, 1);
  constexpr int kSteps = 200;
  double sum = 0;
  for (int i = 0; i < kSteps; ++i)
    for (int j = 0; j < kSteps; ++j)
      for (int choice = 0; choice < 3; ++choice)
        sum += std::exp(parzen.log_density(
            {(i + 0.5) / kSteps, (j + 0.5) / kSteps, static_cast<double>(choice)}));
  EXPECT_NEAR(sum / (kSteps * kSteps * 3), 1, 0.001);
}

TEST(Parzen, SamplesItsDensity) {
  const std::vector<Axis> axes = {{0, 0}, {4, 0}};
  const std::vector<Place> places = {{0.02, 1}, {0.6, 3}};
  const Parzen parzen(axes, places, {3, 1}, 1);
  constexpr std::size_t kParts = 10;
  std::vector<double> share(kParts * 4), wanted(kParts * 4);
  Dice dice(1, 2);
  constexpr int kSamples = 200'000;
  for (int n = 0; n < kSamples; ++n) {
    const Place place = parzen.sample(dice);
    const auto part = static_cast<std::size_t>(place[0] * kParts);
    share[part * 4 + static_cast<std::size_t>(place[1])] += 1.0 / kSamples;
  }
  for (std::size_t fine = 0; fine < kParts * 100; ++fine)
    for (std::size_t choice = 0; choice < 4; ++choice)
      wanted[fine / 100 * 4 + choice] +=
          std::exp(parzen.log_density(
              {(static_cast<double>(fine) + 0.5) / (kParts * 100), static_cast<double>(choice)})) /
          (kParts * 100 * 4);
  for (std::size_t i = 0; i < share.size(); ++i) EXPECT_NEAR(share[i], wanted[i], 0.004) << i;
}

TEST(Parzen, StandsManyAxes) {
  std::vector<Axis> axes(256);
  std::vector<Place> places(20, Place(256, 0.5));
  const Parzen parzen(axes, places, std::vector<double>(20, 1), 1);
  EXPECT_TRUE(std::isfinite(parzen.log_density(Place(256, 0.5))));
  EXPECT_TRUE(std::isfinite(parzen.log_density(Place(256, 0))));
  EXPECT_GT(parzen.log_density(Place(256, 0.5)), parzen.log_density(Place(256, 0)));
}

}  // namespace
}  // namespace mete::core::sweep
