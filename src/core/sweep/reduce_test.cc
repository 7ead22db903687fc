// SPDX-License-Identifier: Apache-2.0
#include "core/sweep/reduce.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "core/sweep/maths.h"

namespace mete::core::sweep {
namespace {

using Numbers = std::vector<double>;
constexpr std::array kAll = {Correlation::kPearson, Correlation::kSpearman, Correlation::kKendall};

double correlated(Correlation kind, const Numbers& x, const Numbers& y) {
  return correlate(kind, x, y).value_or(99);
}

TEST(Correlate, HasThePublishedValues) {
  // The examples of the documentation of SciPy 1.11.
  EXPECT_NEAR(correlated(Correlation::kPearson, {1, 2, 3, 4, 5, 6, 7}, {10, 9, 2.5, 6, 4, 3, 2}),
              -0.828503883588428, 1e-14);
  EXPECT_NEAR(correlated(Correlation::kSpearman, {1, 2, 3, 4, 5}, {5, 6, 7, 8, 7}),
              0.8207826816681233, 1e-14);
  EXPECT_NEAR(correlated(Correlation::kKendall, {12, 2, 1, 12, 2}, {1, 4, 7, 1, 0}),
              -0.47140452079103173, 1e-14);
  // Spearman's example of IQ and hours of television: -29 / 165.
  EXPECT_NEAR(correlated(Correlation::kSpearman, {106, 100, 86, 101, 99, 103, 97, 113, 112, 110},
                         {7, 27, 2, 50, 28, 29, 20, 12, 6, 17}),
              -29.0 / 165, 1e-14);
  // By hand: 1-2, 1-3, 2-3 agree but one: (2 - 1) / 3.
  EXPECT_NEAR(correlated(Correlation::kKendall, {1, 2, 3}, {1, 3, 2}), 1.0 / 3, 1e-15);
}

TEST(Correlate, ReachesBothEnds) {
  for (const Correlation kind : kAll) {
    EXPECT_NEAR(correlated(kind, {1, 2, 3, 4}, {10, 20, 30, 40}), 1, 1e-15);
    EXPECT_NEAR(correlated(kind, {1, 2, 3, 4}, {4, 3, 2, 1}), -1, 1e-15);
    EXPECT_NEAR(correlated(kind, {0, 0, 1, 1}, {5, 5, 3, 3}), -1, 1e-15) << "with ties";
    EXPECT_NEAR(correlated(kind, {-1e308, 0, 1e308}, {-1e308, 0, 1e308}), 1, 1e-15);
    EXPECT_NEAR(correlated(kind, {0, 5e-324, 1e-323}, {1, 2, 3}), 1, 1e-15);
  }
  EXPECT_EQ(correlated(Correlation::kSpearman, {1, 2, 3}, {1, 10, 1e9}), 1) << "the ranks count";
}

TEST(Correlate, NeedsThreePairsThatVary) {
  for (const Correlation kind : kAll) {
    EXPECT_FALSE(correlate(kind, Numbers{}, Numbers{}));
    EXPECT_FALSE(correlate(kind, Numbers{1, 2}, Numbers{1, 2}));
    EXPECT_FALSE(correlate(kind, Numbers{1, 2, 3}, Numbers{5, 5, 5}));
    EXPECT_FALSE(correlate(kind, Numbers{0, -0.0, 0}, Numbers{1, 2, 3}));
  }
}

TEST(Correlate, LeavesOutWhatIsNotFinite) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  for (const Correlation kind : kAll)
    EXPECT_NEAR(correlated(kind, {1, nan, 2, 3, 9}, {1, 7, 2, 3, -infinite}), 1, 1e-15);
}

// tau-b from its definition, pair by pair.
double kendall_of_pairs(const Numbers& x, const Numbers& y) {
  double sum = 0;
  double differ_x = 0;
  double differ_y = 0;
  const auto sign = [](double d) { return d > 0 ? 1.0 : d < 0 ? -1.0 : 0.0; };
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      sum += sign(x[i] - x[j]) * sign(y[i] - y[j]);
      differ_x += x[i] != x[j] ? 1 : 0;
      differ_y += y[i] != y[j] ? 1 : 0;
    }
  }
  return sum / root_of(differ_x * differ_y);
}

TEST(Correlate, KendallEqualsTheSumOverAllPairs) {
  for (const std::uint64_t levels : {2U, 5U, 40U, 1'000'000U}) {
    for (std::size_t size = 3; size < 150; size += 7) {
      Numbers x;
      Numbers y;
      for (std::size_t i = 0; i < size; ++i) {
        x.push_back(static_cast<double>(mix(levels, 1, i) % levels));
        y.push_back(static_cast<double>(mix(levels, 2, i) % levels) + x.back() / 2);
      }
      const std::optional<double> found = correlate(Correlation::kKendall, x, y);
      if (found) {
        EXPECT_NEAR(*found, kendall_of_pairs(x, y), 1e-14) << levels << " " << size;
      }
    }
  }
}

TEST(Correlate, UsesTheLastPairsOfMany) {
  Numbers x(kMaxPairsCorrelated, 0.0);
  Numbers y(kMaxPairsCorrelated, 0.0);
  for (std::size_t i = 0; i < kMaxPairsCorrelated; ++i) {
    x.push_back(static_cast<double>(i));
    y.push_back(-static_cast<double>(i));
  }
  for (const Correlation kind : kAll) EXPECT_NEAR(correlated(kind, x, y), -1, 1e-12);
}

TEST(ReduceRule, IsReadAndWritten) {
  EXPECT_EQ(*parse_reduce(""), ReduceRule());
  EXPECT_EQ(to_string(ReduceRule()), "method=spearman,window=50,interval=10,threshold=0.2");
  for (const char* text : {"method=pearson,window=3,interval=3,threshold=0.001",
                           "method=kendall,window=1000,interval=1,threshold=1"})
    EXPECT_EQ(to_string(*parse_reduce(text)), text);
  EXPECT_EQ(parse_reduce("window=5")->interval, 5U) << "never above the window";
}

TEST(ReduceRule, ErrorsPointAtTheCharacter) {
  const Result<ReduceRule> rule = parse_reduce("window=20,method=foo");
  ASSERT_FALSE(rule.ok());
  EXPECT_EQ(rule.error().message,
            "the reducer is not understood: method is pearson, spearman or kendall (character 18)");
  EXPECT_EQ(rule.error().evidence, "window=20,method=foo\n                 ^");
  for (const char* wrong :
       {"threshold=0", "threshold=1.1", "threshold=nan", "threshold=0.2x", "threshold=", "window=2",
        "window=1001", "interval=0", "window=10,interval=11", "interval=51", "what=1"})
    EXPECT_FALSE(parse_reduce(wrong).ok()) << wrong;
}

// opt = a, b or c; lr a range; momentum (1 or 2) only with opt == "a".
class ReduceTest : public testing::Test {
 protected:
  ReduceTest() {
    std::vector<Parameter> parameters = {
        {"opt", std::vector<Value>{of_text("a"), of_text("b"), of_text("c")}},
        {"lr", Range{}},
        {"momentum", std::vector<Value>{of_integer(1), of_integer(2)}}};
    const std::vector<std::string> names = {"opt", "lr", "momentum"};
    parameters[2].when = *Expression::parse("opt == \"a\"", names);
    space_ = *Space::make(std::move(parameters));
  }
  void add(const std::string& opt, double lr, std::optional<double> loss) {
    Point point = {of_text(opt), of_real(lr), std::nullopt};
    if (opt == "a") point[2] = of_integer(1 + static_cast<int>(scored_.size() / 3 % 2));
    scored_.push_back({point, loss});
  }
  // b is bad, c a little, a is good; lr matters most.
  void add_rounds(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      const double lr = 0.1 + 0.2 * static_cast<double>(i % 4);
      add("a", lr, lr);
      add("b", lr, lr + 2);
      add("c", lr, lr + 1);
    }
  }
  std::optional<Dropped> reduced() const { return reduce(space_, rule_, scored_, dropped_); }

  Space space_;
  ReduceRule rule_;
  std::vector<Scored> scored_;
  std::vector<Dropped> dropped_;
};

TEST_F(ReduceTest, DropsTheWorstValueOfAList) {
  add_rounds(5);
  const std::optional<Dropped> worst = reduced();
  ASSERT_TRUE(worst);
  EXPECT_EQ(worst->parameter, 0U);
  EXPECT_EQ(worst->value, of_text("b"));
  EXPECT_GT(worst->correlation, 0.7);
  EXPECT_TRUE(has_dropped(scored_[1].point, std::vector{*worst}));
  EXPECT_FALSE(has_dropped(scored_[0].point, std::vector{*worst}));
}

TEST_F(ReduceTest, EveryMethodFindsIt) {
  add_rounds(5);
  for (const Correlation kind : kAll) {
    rule_.kind = kind;
    EXPECT_EQ(reduced()->value, of_text("b"));
  }
}

TEST_F(ReduceTest, DropsNoValueTwiceAndNeverTheLast) {
  rule_.threshold = 0.5;
  add_rounds(8);
  dropped_.push_back(*reduced());
  EXPECT_FALSE(reduced()) << "c is in the middle while results of b are in the window";
  scored_.clear();
  for (int i = 0; i < 12; ++i) {
    add("a", 0.1, 0.1);
    add("c", 0.1, 3);
  }
  ASSERT_TRUE(reduced());
  EXPECT_EQ(reduced()->value, of_text("c"));
  dropped_.push_back(*reduced());
  for (Scored& one : scored_)
    if (one.point[0] == of_text("a")) one.loss = 9;
  EXPECT_FALSE(reduced()) << "a is the last one";
}

TEST_F(ReduceTest, IgnoresCorrelationsBelowTheThreshold) {
  add_rounds(5);
  rule_.threshold = 0.999;
  EXPECT_FALSE(reduced());
}

TEST_F(ReduceTest, LooksAtTheWindowAlone) {
  add_rounds(20);
  for (int i = 0; i < 20; ++i) {
    add("b", 0.3, 1 + i % 2);
    add("c", 0.3, 5 + i % 2);
  }
  rule_.window = 40;
  EXPECT_EQ(reduced()->value, of_text("c"));
}

TEST_F(ReduceTest, WaitsForTheFirstInterval) {
  add_rounds(3);
  EXPECT_FALSE(reduced()) << "nine results";
  add("b", 0.5, std::nullopt);
  EXPECT_FALSE(reduced()) << "a failed one does not count";
  add("b", 0.5, 2.5);
  EXPECT_TRUE(reduced());
}

TEST_F(ReduceTest, OneResultOfAValueIsNotEnough) {
  for (int i = 0; i < 12; ++i) add("a", 0.1, 1);
  add("b", 0.1, 100);
  EXPECT_FALSE(reduced());
}

// Momentum is in use only with a, which is bad: that must not be held against it.
TEST_F(ReduceTest, ComparesOnlyTrialsThatUseTheParameter) {
  for (int i = 0; i < 12; ++i) {
    add("a", 0.1, 10);
    add("b", 0.1, 1);
    add("c", 0.1, 1);
  }
  dropped_.push_back({0, of_text("a"), 0.9});
  const std::optional<Dropped> next = reduced();
  EXPECT_TRUE(!next || next->parameter != 2);
}

TEST_F(ReduceTest, AgreesWithItselfOnNothing) {
  EXPECT_FALSE(reduced());
  EXPECT_FALSE(has_dropped({}, {}));
}

}  // namespace
}  // namespace mete::core::sweep
