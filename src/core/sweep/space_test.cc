// SPDX-License-Identifier: Apache-2.0
// Spaces: what is refused, with which evidence; the points of grids and of numbers in [0, 1); and
// conditions, also in chains. The properties are checked over a space with every kind of domain.
#include "core/sweep/space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "core/sweep/maths.h"

namespace mete::core::sweep {
namespace {

const std::vector<std::string> kNames = {"a", "b", "c", "d", "opt", "lr", "momentum", "bs"};

Expression expression(const std::string& text, const std::vector<std::string>& names = kNames) {
  Result<Expression> parsed = Expression::parse(text, names);
  EXPECT_TRUE(parsed.ok()) << text << ": " << (parsed ? "" : parsed.error().message);
  return parsed ? *std::move(parsed) : *Expression::parse("true", {});
}
Parameter listed(const std::string& name, const std::vector<std::string>& words,
                 const std::string& when = "") {
  std::vector<Value> values;
  for (const std::string& word : words) values.push_back(guess(word));
  Parameter parameter{name, values};
  if (!when.empty()) parameter.when = expression(when);
  return parameter;
}
Parameter ranged(const std::string& name, const Range& range, const std::string& when = "") {
  Parameter parameter{name, range};
  if (!when.empty()) parameter.when = expression(when);
  return parameter;
}
Space space(std::vector<Parameter> parameters, std::optional<Expression> keep = {}) {
  Result<Space> made = Space::make(std::move(parameters), std::move(keep));
  EXPECT_TRUE(made.ok()) << (made ? "" : made.error().message);
  return made ? *std::move(made) : Space();
}
Error refusal(std::vector<Parameter> parameters, std::optional<Expression> keep = {}) {
  const Result<Space> made = Space::make(std::move(parameters), std::move(keep));
  EXPECT_FALSE(made.ok());
  return made ? Error{} : made.error();
}
// "1 adam -": a - for what is not in use.
std::string shown(const std::optional<Point>& point) {
  if (!point) return "none";
  std::string words;
  for (const std::optional<Value>& value : *point)
    words += (words.empty() ? "" : " ") + (value ? value->text : "-");
  return words;
}
std::vector<std::string> grid(const Space& space) {
  std::vector<std::string> points;
  for (std::uint64_t i = 0; i < space.size().value_or(0); ++i)
    points.push_back(shown(space.grid(i)));
  return points;
}
using Words = std::vector<std::string>;

// momentum only for sgd; nesterov only with momentum.
Space conditional() {
  return space({listed("momentum", {"0", "0.9"}, "opt == 'sgd'"), listed("opt", {"adam", "sgd"}),
                listed("b", {"x", "y"}, "momentum > 0")});
}

TEST(SweepSpace, AGridHasTheLastParameterFastest) {
  const Space two = space({listed("lr", {"1e-3", "1e-4"}), listed("bs", {"32", "64", "128"})});
  EXPECT_EQ(two.size(), 6);
  EXPECT_EQ(grid(two), (Words{"1e-3 32", "1e-3 64", "1e-3 128", "1e-4 32", "1e-4 64", "1e-4 128"}));
  EXPECT_FALSE(two.grid(6).has_value());
}

TEST(SweepSpace, AGridHasRangesWithValues) {
  const Space all = space({ranged("a", {.min = 0, .max = 0.2, .step = 0.1}),
                           ranged("b", {.min = 1, .max = 2, .log = true, .integer = true})});
  EXPECT_EQ(grid(all), (Words{"0 1", "0 2", "0.1 1", "0.1 2", "0.2 1", "0.2 2"}));
}

TEST(SweepSpace, AParameterThatIsNotInUseHasOnlyItsFirstValueInAGrid) {
  EXPECT_EQ(conditional().size(), 8);
  EXPECT_EQ(grid(conditional()), (Words{"- adam -", "none", "0 sgd -", "none", "none", "none",
                                        "0.9 sgd x", "0.9 sgd y"}));
}

TEST(SweepSpace, AnAbsentParameterDisablesWhatNeedsIt) {
  const Space all = conditional();
  EXPECT_EQ(shown(all.at(std::vector<double>{0.9, 0.1, 0.9})), "- adam -");
  EXPECT_EQ(shown(all.at(std::vector<double>{0.9, 0.9, 0.9})), "0.9 sgd y");
  EXPECT_EQ(shown(all.at(std::vector<double>{0.1, 0.9, 0.9})), "0 sgd -");
}

TEST(SweepSpace, SettledPointsLoseWhatIsNotInUse) {
  const Space all = conditional();
  EXPECT_EQ(shown(all.settled({guess("0.9"), guess("adam"), guess("x")})), "- adam -");
  EXPECT_EQ(shown(all.settled({guess("0.9"), guess("sgd"), guess("x")})), "0.9 sgd x");
  EXPECT_EQ(shown(all.settled({guess("0"), guess("sgd"), guess("x")})), "0 sgd -");
  EXPECT_EQ(shown(all.settled({std::nullopt, guess("sgd"), guess("x")})), "- sgd -");
}

TEST(SweepSpace, NamedPointsHaveWhatIsInUse) {
  const Space all = conditional();
  const auto pairs = named(all, *all.grid(2));
  ASSERT_EQ(pairs.size(), 2);
  EXPECT_EQ(pairs[0], std::pair(std::string("momentum"), guess("0")));
  EXPECT_EQ(pairs[1], std::pair(std::string("opt"), guess("sgd")));
}

TEST(SweepSpace, KeepIsAskedApart) {
  const Space all = space({listed("bs", {"32", "64"}), listed("lr", {"0.1", "0.2"})},
                          expression("bs * lr < 10 or bs == 32"));
  EXPECT_EQ(grid(all).size(), 4);
  EXPECT_TRUE(all.keeps(*all.grid(0)));
  EXPECT_TRUE(all.keeps(*all.grid(2))) << "6.4";
  EXPECT_FALSE(all.keeps(*all.grid(3))) << "12.8";
  EXPECT_TRUE(conditional().keeps(Point(3))) << "no keep";
}

TEST(SweepSpace, ASpaceMayHaveOnePoint) {
  const Space one = space({listed("lr", {"0.1"})});
  EXPECT_EQ(one.size(), 1);
  EXPECT_EQ(grid(one), Words{"0.1"});
  EXPECT_EQ(one.value_at(0, 0.99).text, "0.1");
}

TEST(SweepSpace, SizesOverflowToNothing) {
  std::vector<Parameter> parameters;
  for (int i = 0; i < 63; ++i) parameters.push_back(listed("p" + std::to_string(i), {"0", "1"}));
  EXPECT_EQ(space(parameters).size(), std::uint64_t{1} << 63);
  parameters.push_back(listed("last", {"0", "1"}));
  EXPECT_FALSE(space(parameters).size().has_value());
  EXPECT_FALSE(space(parameters).grid(0).has_value());
  EXPECT_FALSE(space({listed("a", {"1"}), ranged("b", {})}).size().has_value()) << "continuous";
  EXPECT_FALSE(space({ranged("b", {})}).values_of(0).has_value());
}

TEST(SweepSpace, HugeGridsAreComputedPointByPoint) {
  std::vector<Parameter> parameters;
  for (int i = 0; i < 6; ++i)
    parameters.push_back(ranged("p" + std::to_string(i), {.min = 0, .max = 999, .integer = true}));
  const Space huge = space(parameters);
  EXPECT_EQ(huge.size(), 1'000'000'000'000'000'000);
  EXPECT_EQ(shown(huge.grid(123'456'789'012'345'678)), "123 456 789 12 345 678");
  EXPECT_EQ(shown(huge.grid(999'999'999'999'999'999)), "999 999 999 999 999 999");
}

// Every kind of domain, the listed values with all kinds of values.
Space every_kind() {
  Parameter mixed{"mixed", std::vector{of_text("3"), of_integer(3), of_bool(true), of_text("true"),
                                       of_real(3), of_text(""), guess("1e-3"), guess("0.001")}};
  std::vector<std::string> many;
  for (int i = 0; i < 5000; ++i) many.push_back("v" + std::to_string(i * 7919 % 5000));
  return space({mixed, listed("many", many), listed("one", {"x"}),
                ranged("steps", {.min = 0, .max = 1, .step = 0.1}),
                ranged("whole", {.min = -3, .max = 40, .integer = true}),
                ranged("log", {.min = 1, .max = 5000, .log = true, .integer = true})});
}

TEST(SweepSpace, EveryValueComesBackFromItsNumber) {
  const Space all = every_kind();
  for (std::size_t i = 0; i < all.parameters().size(); ++i)
    for (std::uint64_t index = 0; index < *all.values_of(i); ++index) {
      const Value value = all.value_of(i, index);
      ASSERT_EQ(all.value_at(i, all.unit_of(i, value)), value)
          << all.parameters()[i].name << " " << index;
    }
}

TEST(SweepSpace, PointsOfNumbersComeBack) {
  const Space all = every_kind();
  for (std::uint64_t n = 0; n < 500; ++n) {
    std::vector<double> unit, back;
    for (std::size_t i = 0; i < all.parameters().size(); ++i)
      unit.push_back(unit_of_bits(mix(7, n, i)));
    const Point point = all.at(unit);
    for (std::size_t i = 0; i < point.size(); ++i) back.push_back(all.unit_of(i, *point[i]));
    EXPECT_EQ(all.at(back), point);
  }
}

TEST(SweepSpace, ListedValuesGetEqualParts) {
  const Space all = space({listed("a", {"x", "y", "z", "w"})});
  std::map<std::string, int> count;
  for (int i = 0; i < 4000; ++i) ++count[all.value_at(0, i / 4000.0).text];
  EXPECT_EQ(count,
            (std::map<std::string, int>{{"x", 1000}, {"y", 1000}, {"z", 1000}, {"w", 1000}}));
  EXPECT_EQ(all.value_at(0, 1).text, "w");
  EXPECT_EQ(all.value_at(0, -1).text, "x");
  EXPECT_EQ(all.value_at(0, std::nan("")).text, "x");
  EXPECT_EQ(all.unit_of(0, guess("y")), 0.375);
  EXPECT_EQ(all.unit_of(0, guess("elsewhere")), 0.5);
}

TEST(SweepSpace, GridPointsAreDistinct) {
  const Space all = space({listed("a", {"0", "1", "2"}), listed("b", {"0", "1"}, "a > 0"),
                           listed("c", {"0", "1"}, "b == 1 or a == 2"), listed("d", {"0", "1"})});
  std::set<std::string> seen;
  std::size_t points = 0;
  for (const std::string& words : grid(all)) {
    if (words == "none") continue;
    ++points;
    EXPECT_TRUE(seen.insert(words).second) << words;
  }
  EXPECT_EQ(points, 2 * (1 + (1 + 2) + (2 + 2)));
}

TEST(SweepSpace, ParametersKeepTheirOrder) {
  const Space all =
      space({listed("c", {"1"}, "b == 1"), listed("b", {"1"}, "a == 1"), listed("a", {"1", "2"})});
  EXPECT_EQ(all.names(), (Words{"c", "b", "a"}));
  EXPECT_EQ(grid(all), (Words{"1 1 1", "- - 2"}));
}

TEST(SweepSpace, RefusesWrongNames) {
  EXPECT_EQ(refusal({}).message, "the space has no parameters");
  EXPECT_EQ(refusal({listed("a", {"1"}), listed("b", {"1"}), listed("a", {"2"})}).message,
            "two parameters have the name 'a'");
  for (const char* name : {"", "1a", "-a", "a b", "a.b", "ä", "a=", "{a}"})
    EXPECT_EQ(refusal({listed(name, {"1"})}).hint,
              "letters, digits, _ and -, and a letter or _ first")
        << name;
  EXPECT_EQ(space({listed("_a-B9", {"1"})}).names(), Words{"_a-B9"});
  EXPECT_EQ(refusal({listed(std::string(kMaxParameterName + 1, 'a'), {"1"})}).message,
            "the name of a parameter is too long");
}

TEST(SweepSpace, RefusesTooManyParameters) {
  std::vector<Parameter> parameters;
  for (std::size_t i = 0; i < kMaxParameters; ++i)
    parameters.push_back(listed("p" + std::to_string(i), {"1"}));
  EXPECT_EQ(space(parameters).size(), 1);
  parameters.push_back(listed("last", {"1"}));
  EXPECT_EQ(refusal(parameters).evidence, "257; at most 256");
}

TEST(SweepSpace, RefusesWrongValues) {
  EXPECT_EQ(refusal({listed("lr", {})}).message, "parameter 'lr': it has no values");
  const Error twice = refusal({listed("lr", {"0.1", "0.2", "0.1"})});
  EXPECT_EQ(twice.message, "parameter 'lr': a value is there twice");
  EXPECT_EQ(twice.evidence, "'0.1'");
  Value infinite = of_real(1);
  infinite.number = std::numeric_limits<double>::infinity();
  EXPECT_EQ(refusal({{"lr", std::vector{infinite}}}).message,
            "parameter 'lr': a value is not finite");
  EXPECT_EQ(refusal({{"lr", std::vector{of_text(std::string("a\0b", 3))}}}).message,
            "parameter 'lr': a value has a NUL byte");
  const std::string most(kMaxValueText, 'x');
  EXPECT_EQ(space({listed("lr", {most})}).size(), 1);
  EXPECT_EQ(refusal({listed("lr", {most + "x"})}).message, "parameter 'lr': a value is too long");
}

TEST(SweepSpace, RefusesTooManyValues) {
  std::vector<Value> values;
  for (std::size_t i = 0; i < kMaxValues; ++i)
    values.push_back(of_integer(static_cast<std::int64_t>(i)));
  EXPECT_EQ(space({{"a", values}}).size(), kMaxValues);
  values.push_back(of_integer(-1));
  EXPECT_EQ(refusal({{"a", values}}).evidence, "100001; at most 100000");
}

TEST(SweepSpace, RefusesARangeOfZeroWidth) {
  const Error error = refusal({listed("a", {"1"}), ranged("lr", {.min = 0.1, .max = 0.1})});
  EXPECT_EQ(error.code, ErrorCode::kInvalid);
  EXPECT_EQ(error.message, "parameter 'lr': the range has zero width");
  EXPECT_EQ(error.evidence, "0.1 to 0.1");
}

TEST(SweepSpace, RefusesALogRangeThroughZero) {
  EXPECT_EQ(refusal({ranged("lr", {.min = 0, .max = 1, .log = true})}).message,
            "parameter 'lr': the minimum of a log range is not above zero");
}

TEST(SweepSpace, RefusesAConditionOnAMissingParameter) {
  const Error error = refusal({listed("a", {"1"}, "momentum > 0"), listed("momentun", {"1"})});
  EXPECT_EQ(error.message,
            "condition of parameter 'a': the expression is not understood: there is no parameter "
            "'momentum' (character 1)");
  EXPECT_EQ(error.evidence, "momentum > 0\n^");
  EXPECT_EQ(error.hint, "did you mean momentun?");
}

TEST(SweepSpace, RefusesToKeepByAMissingParameter) {
  const Error error = refusal({listed("a", {"1"})}, expression("a == 1 and b > 0"));
  EXPECT_EQ(error.message,
            "keep: the expression is not understood: there is no parameter 'b' (character 12)");
}

TEST(SweepSpace, RefusesConditionsInACircle) {
  EXPECT_EQ(refusal({listed("a", {"1"}, "a == 1")}).evidence, "a needs a");
  const Error two = refusal({listed("a", {"1"}, "b == 1"), listed("b", {"1"}, "a == 1")});
  EXPECT_EQ(two.message, "the conditions of the parameters form a circle");
  EXPECT_TRUE(two.evidence == "a needs b, b needs a" || two.evidence == "b needs a, a needs b")
      << two.evidence;
  // d leads into the circle and is not in it; opt is in no circle.
  const Error three = refusal({listed("d", {"1"}, "opt == 1 and a == 1"), listed("opt", {"1"}),
                               listed("a", {"1"}, "b == 1"), listed("b", {"1"}, "c == 1"),
                               listed("c", {"1"}, "opt == 1 or a == 1")});
  EXPECT_EQ(std::count(three.evidence.begin(), three.evidence.end(), ','), 2) << three.evidence;
  EXPECT_EQ(three.evidence.find("d needs"), std::string::npos);
  EXPECT_NE(three.evidence.find("c needs a"), std::string::npos);
}

TEST(SweepSpace, ALongCircleIsCut) {
  std::vector<std::string> names;
  for (int i = 0; i < 200; ++i) names.push_back("p" + std::to_string(i));
  std::vector<Parameter> parameters;
  for (std::size_t i = 0; i < names.size(); ++i)
    parameters.push_back({names[i], std::vector{of_integer(1)},
                          expression(names[(i + 1) % names.size()] + " == 1", names)});
  const std::string evidence = refusal(parameters).evidence;
  EXPECT_EQ(std::count(evidence.begin(), evidence.end(), ','), 8) << evidence;
  EXPECT_TRUE(evidence.ends_with(", … (200 parameters)")) << evidence;
}

TEST(SweepSpace, AHyphenMeansWhatTheSpaceHas) {
  // Read where a-b was not known: a minus b.
  const Space all = space({listed("a-b", {"1", "2"}), listed("a", {"5"}), listed("b", {"0"})},
                          expression("a-b == 1"));
  EXPECT_TRUE(all.keeps(*all.grid(0)));
  EXPECT_FALSE(all.keeps(*all.grid(1)));
}

TEST(SweepSpace, LongChainsOfConditionsAreOrdered) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kMaxParameters; ++i) names.push_back("p" + std::to_string(i));
  std::vector<Parameter> parameters;
  for (std::size_t i = 0; i < names.size(); ++i) {
    parameters.push_back({names[i], std::vector{of_integer(1)}});
    if (i + 1 < names.size()) parameters[i].when = expression(names[i + 1] + " == 1", names);
  }
  const Space all = space(parameters);
  const std::optional<Point> point = all.grid(0);
  ASSERT_TRUE(point.has_value());
  EXPECT_EQ(named(all, *point).size(), kMaxParameters);
}

TEST(SweepSpace, EqualSpacesHaveEqualParametersAndKeep) {
  const std::vector<Parameter> two = {listed("a", {"1", "2"}), ranged("b", {})};
  EXPECT_EQ(space(two), space(two));
  EXPECT_FALSE(space(two) == space({two[0]}));
  EXPECT_FALSE(space(two) == space(two, expression("a > 1")));
  EXPECT_FALSE(space({listed("a", {"1", "2"})}) == space({listed("a", {"2", "1"})}));
}

TEST(Space, RefusesConditionsThatTakeTooLong) {
  std::vector<Parameter> parameters;
  const std::vector<std::string> names{"p"};
  parameters.push_back({"p", std::vector<Value>{of_integer(1), of_integer(2)}, {}});
  std::string sum = "p";
  while (sum.size() < 1'900) sum += "+p";
  for (int i = 0; i < 10; ++i)
    parameters.push_back({"q" + std::to_string(i), std::vector<Value>{of_integer(1), of_integer(2)},
                          *Expression::parse(sum + " > 0", names)});
  const Result<Space> space = Space::make(std::move(parameters));
  ASSERT_FALSE(space.ok());
  EXPECT_EQ(space.error().message, "the conditions of the space are too long");
}

}  // namespace
}  // namespace mete::core::sweep
