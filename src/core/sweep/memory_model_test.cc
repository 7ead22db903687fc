// SPDX-License-Identifier: Apache-2.0
#include "core/sweep/memory_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/sweep/maths.h"

namespace mete::core::sweep {
namespace {

constexpr double kMib = 1024.0 * 1024;
constexpr double kGib = 1024 * kMib;
constexpr Bytes kCard = Bytes::from_gib(140);
constexpr Bytes kFirst = Bytes::from_gib(35);

using Memory = std::function<double(const Point&)>;

Parameter list(const std::string& name, const std::vector<int>& numbers) {
  std::vector<Value> values;
  for (const int number : numbers) values.push_back(of_integer(number));
  return {name, std::move(values)};
}
Parameter choice(const std::string& name, const std::vector<std::string>& texts) {
  std::vector<Value> values;
  for (const std::string& text : texts) values.push_back(of_text(text));
  return {name, std::move(values)};
}
Parameter rate(const std::string& name) {
  Range range;
  range.min = 1e-5;
  range.max = 0.1;
  range.log = true;
  return {name, range};
}
double number(const Point& point, std::size_t parameter) { return point[parameter]->number; }

Point drawn(const Space& space, std::uint64_t seed, std::uint64_t n) {
  std::vector<double> unit;
  for (std::size_t k = 0; k < space.parameters().size(); ++k)
    unit.push_back(unit_of_bits(mix(seed, k, n)));
  return space.at(unit);
}

// What 24 trials in a random order get, in many sweeps. A trial knows the peaks of all trials but
// the last three, which still run.
struct Outcome {
  double granted_to_needed = 0;  // mean over the trials after the first six
  double refused = 0;            // per sweep
  int lost = 0;                  // refused twice
};
constexpr std::size_t kRunning = 3;

Outcome simulate(const Space& space, const Memory& memory, std::uint64_t sweeps = 20) {
  Outcome outcome;
  double trials = 0;
  for (std::uint64_t sweep = 0; sweep < sweeps; ++sweep) {
    std::vector<Observed> ended;
    std::vector<std::size_t> ends;  // how many of `ended` were known after each trial
    for (std::size_t i = 0; i < 24; ++i) {
      const Point point = drawn(space, sweep, i);
      const double noise = 1 + 0.01 * unit_of_bits(mix(sweep, 1'000, i));
      const Bytes needed = Bytes::from_bytes(static_cast<std::uint64_t>(memory(point) * noise));
      if (i >= kFirstTrials) {
        const std::size_t known = ends[std::max(kFirstTrials, i - kRunning) - 1];
        std::vector<Observed> seen(ended.begin(),
                                   ended.begin() + static_cast<std::ptrdiff_t>(known));
        const Need need = need_of(space, seen, point, kCard, kFirst);
        EXPECT_TRUE(need.learned);
        trials += 1;
        outcome.granted_to_needed +=
            static_cast<double>(need.bytes.count()) / static_cast<double>(needed.count());
        if (need.bytes < needed) {
          outcome.refused += 1;
          ended.push_back({point, need.bytes, true});
          seen.push_back(ended.back());
          const Need again = need_of(space, seen, point, kCard, kFirst);
          if (after_refusal(need.bytes, again.bytes, kCard) < needed) ++outcome.lost;
        }
      }
      ended.push_back({point, needed});
      ends.push_back(ended.size());
    }
  }
  outcome.granted_to_needed /= trials;
  outcome.refused /= static_cast<double>(sweeps);
  return outcome;
}

void expect_dense(const char* what, const Space& space, const Memory& memory,
                  double refused_at_most = 0.25) {
  const Outcome outcome = simulate(space, memory);
  EXPECT_LE(outcome.granted_to_needed, 1 / 0.85) << what;
  EXPECT_GE(outcome.granted_to_needed, 1) << what;
  EXPECT_LE(outcome.refused, refused_at_most) << what;
  EXPECT_EQ(outcome.lost, 0) << what;
}

Space batch_and_width() {
  return *Space::make(
      {list("batch", {16, 32, 64, 128}), list("width", {256, 512, 1024, 2048}), rate("lr")});
}
// GiB that are fixed, that the weights of the widest model take, and the activations of the
// largest batch of it.
Memory training(double fixed, double weights, double activations) {
  return [=](const Point& point) {
    const double batch = number(point, 0) / 128;
    const double width = number(point, 1) / 2048;
    return (fixed + weights * width * width + activations * batch * width) * kGib;
  };
}

TEST(MemoryModel, PacksTrialsOfBatchAndWidth) {
  const Space space = batch_and_width();
  expect_dense("activations dominate", space, training(0.6, 0.4, 12));
  expect_dense("weights dominate", space, training(0.6, 10, 0.5));
  expect_dense("both", space, training(0.6, 5, 5));
  expect_dense("the fixed part dominates", space, training(3, 0.3, 0.3));
  expect_dense("nothing drives memory", space, training(3, 0, 0));
  expect_dense("nothing, and little of it", space, training(0.5, 0, 0));
}

TEST(MemoryModel, PacksOtherSpaces) {
  expect_dense("batch alone", batch_and_width(),
               [](const Point& p) { return 0.6 * kGib + 40 * kMib * number(p, 0); });
  expect_dense("one parameter", *Space::make({list("batch", {8, 16, 32, 64, 128, 256})}),
               [](const Point& p) { return 0.6 * kGib + 40 * kMib * number(p, 0); });
  expect_dense("depth and width",
               *Space::make({list("depth", {2, 4, 8, 16}), list("width", {256, 512, 1024, 2048}),
                             rate("lr")}),
               [](const Point& p) {
                 const double width = number(p, 1) / 2048;
                 return (0.6 + number(p, 0) * (0.3 * width * width + 0.2 * width)) * kGib;
               });
  expect_dense(
      "no model is right", batch_and_width(),
      [](const Point& p) {
        const double width = number(p, 1) / 2048;
        return (0.6 + 3 * width * root_of(width) + 5 * root_of(number(p, 0) / 128) * width) * kGib;
      },
      1);
  const Space transformer = *Space::make(
      {list("batch", {8, 16, 32, 64}), list("length", {256, 512, 1024}),
       list("hidden", {256, 512, 1024}), list("layers", {4, 8, 12}), rate("lr"), rate("dropout")});
  expect_dense(
      "transformer", transformer,
      [](const Point& p) {
        const double hidden = number(p, 2);
        return 0.6 * kGib + 192 * number(p, 3) * hidden * hidden + 960'000 * hidden +
               34 * number(p, 0) * number(p, 1) * hidden * number(p, 3);
      },
      1);
}

TEST(MemoryModel, PacksChoicesThatMatter) {
  const auto adam = [](const Point& p, std::size_t k) { return p[k]->text == "adam"; };
  expect_dense(
      "a jump",
      *Space::make({list("batch", {16, 32, 64, 128}), choice("opt", {"adam", "sgd"}), rate("lr")}),
      [&](const Point& p) { return (adam(p, 1) ? 3 : 1) * kGib + 20 * kMib * number(p, 0); });
  expect_dense(
      "states of the optimizer",
      *Space::make({list("batch", {16, 32, 64, 128}), list("width", {256, 512, 1024, 2048}),
                    choice("opt", {"adam", "sgd"}), rate("lr")}),
      [&](const Point& p) {
        const double width = number(p, 1) / 2048;
        return (0.6 + width * width * (adam(p, 2) ? 6 : 3) + 5 * width * number(p, 0) / 128) * kGib;
      },
      1);
}

TEST(MemoryModel, FirstTrialsGetRoom) {
  const Space space = batch_and_width();
  std::vector<Observed> seen;
  const Point point = drawn(space, 1, 100);
  for (std::size_t i = 0; i < kFirstTrials; ++i) {
    const Need need = need_of(space, seen, point, kCard, kFirst);
    EXPECT_FALSE(need.learned);
    EXPECT_EQ(need.bytes, kFirst);
    seen.push_back({drawn(space, 1, i), Bytes::from_gib(2)});
  }
  EXPECT_TRUE(need_of(space, seen, point, kCard, kFirst).learned);
  EXPECT_LT(need_of(space, seen, point, kCard, kFirst).bytes, Bytes::from_mib(2'200));
}

TEST(MemoryModel, BeforeItIsLearnedRefusalsRaiseTheRoom) {
  const Space space = batch_and_width();
  const Point point = drawn(space, 1, 1);
  const std::vector<Observed> refused = {{drawn(space, 1, 0), kFirst, true}};
  EXPECT_GT(need_of(space, refused, point, kCard, kFirst).bytes, kFirst);
  const std::vector<Observed> used = {{drawn(space, 1, 0), Bytes::from_gib(50)}};
  EXPECT_GE(need_of(space, used, point, kCard, kFirst).bytes, Bytes::from_gib(50));
  EXPECT_EQ(need_of(space, refused, point, kFirst, kFirst).bytes, kFirst) << "a whole card";
}

class LearnedTest : public testing::Test {
 protected:
  LearnedTest() {
    for (std::size_t i = 0; i < 12; ++i) {
      const Point point = drawn(space_, 5, i);
      seen_.push_back({point, Bytes::from_bytes(static_cast<std::uint64_t>(memory_(point)))});
    }
  }
  Point of(int batch, int width, double lr = 0.01) const {
    return {of_integer(batch), of_integer(width), of_real(lr)};
  }
  Bytes granted(const Point& point, Bytes card = kCard) const {
    return need_of(space_, seen_, point, card, kFirst).bytes;
  }
  Space space_ = batch_and_width();
  Memory memory_ = training(0.6, 5, 5);
  std::vector<Observed> seen_;
};

TEST_F(LearnedTest, ExtrapolatesAndNamesTheCard) {
  const double truth = memory_(of(128, 2048));
  const double share = static_cast<double>(granted(of(128, 2048)).count()) / truth;
  EXPECT_GE(share, 1.0);
  EXPECT_LE(share, 1.1);
  EXPECT_EQ(granted(of(128, 2048), Bytes::from_gib(4)), Bytes::from_gib(4));
}

TEST_F(LearnedTest, NeverBelowWhatAnEqualTrialUsed) {
  seen_.push_back({of(64, 1024), Bytes::from_gib(9)});
  EXPECT_GE(granted(of(64, 1024, 0.0003)), Bytes::from_gib(9)) << "lr does not drive memory";
}

TEST_F(LearnedTest, AboveEveryRefusedTrialThatIsEqual) {
  seen_.push_back({of(64, 1024), Bytes::from_gib(40), true});
  EXPECT_GT(granted(of(64, 1024, 0.0003)), Bytes::from_gib(40));
  EXPECT_EQ(granted(of(64, 1024), Bytes::from_gib(40)), Bytes::from_gib(40)) << "the card";
}

TEST_F(LearnedTest, ARefusalIsForgivenAfterASuccess) {
  const Bytes limit = granted(of(64, 1024));
  seen_.push_back({of(64, 1024), limit, true});
  EXPECT_EQ(granted(of(64, 1024)), kFirst) << "room, since the model was wrong";
  // The second run used less than the limit: memory was in pieces.
  seen_.push_back({of(64, 1024), limit.round_down(Bytes::from_mib(64))});
  EXPECT_GT(granted(of(64, 1024)), limit);
  EXPECT_LT(granted(of(64, 1024)), limit + Bytes::from_mib(200));
}

TEST_F(LearnedTest, EqualObservationsGiveEqualAnswers) {
  EXPECT_EQ(granted(of(64, 1024)), granted(of(64, 1024)));
  const std::uint64_t mib = granted(of(64, 1024)).count();
  EXPECT_EQ(mib % (1024 * 1024), 0U) << "whole MiB";
}

TEST_F(LearnedTest, StrangePeaksAndPointsDoNoHarm) {
  seen_.push_back({of(16, 256), Bytes()});
  seen_.push_back({of(16, 256), Bytes::from_bytes(UINT64_MAX)});
  seen_.push_back({Point(), Bytes::from_gib(1)});
  seen_.push_back({{std::nullopt, of_text("x"), of_real(-1e308)}, Bytes::from_gib(1)});
  EXPECT_LE(granted(of(64, 1024)), kCard);
  EXPECT_LE(granted({of_real(1e308), of_real(1e308), of_real(1e308)}), kCard);
  EXPECT_GE(granted({std::nullopt, std::nullopt, std::nullopt}), Bytes::from_mib(1));
  for (Observed& one : seen_) one.peak = Bytes();
  EXPECT_GE(granted(of(64, 1024)), Bytes::from_mib(64));
  EXPECT_LE(granted(of(64, 1024)), Bytes::from_mib(100));
}

// A new value of a choice that may matter: with more room than the values seen, less than `first`.
TEST(MemoryModel, NewValuesOfAChoiceGetMore) {
  const Space space = *Space::make({choice("model", {"small", "large"}), rate("lr")});
  std::vector<Observed> seen;
  for (int i = 0; i < 8; ++i)
    seen.push_back({{of_text("small"), of_real(0.01 * (i + 1))}, Bytes::from_gib(2)});
  const Bytes small = need_of(space, seen, {of_text("small"), of_real(0.5)}, kCard, kFirst).bytes;
  const Bytes large = need_of(space, seen, {of_text("large"), of_real(0.5)}, kCard, kFirst).bytes;
  EXPECT_LT(small, Bytes::from_mib(2'200));
  EXPECT_GE(large, small * 2);
  EXPECT_LE(large, kFirst);
}

// A grid goes through the last parameter first, so that the first trials have one width.
TEST(MemoryModel, ACountThatHasNotVariedIsScaled) {
  const Space space = *Space::make({list("width", {256, 512}), list("batch", {1, 2, 3, 4, 5, 6})});
  std::vector<Observed> seen;
  for (int i = 1; i <= 6; ++i)
    seen.push_back({{of_integer(256), of_integer(i)}, Bytes::from_gib(2)});
  const Bytes wide = need_of(space, seen, {of_integer(512), of_integer(1)}, kCard, kFirst).bytes;
  EXPECT_GE(wide, Bytes::from_gib(4));
  EXPECT_LE(wide, Bytes::from_gib(5));
}

TEST(MemoryModel, ManyObservationsOfManyParameters) {
  std::vector<Parameter> parameters;
  for (int i = 0; i < 12; ++i) parameters.push_back(list("n" + std::to_string(i), {1, 2, 3, 4, 5}));
  for (int i = 0; i < 6; ++i)
    parameters.push_back(choice("c" + std::to_string(i), {"a", "b", "c", "d"}));
  const Space space = *Space::make(std::move(parameters));
  std::vector<Observed> seen;
  for (std::uint64_t i = 0; i < 1'000; ++i) {
    const Point point = drawn(space, 3, i);
    const double mib = 500 + 100 * number(point, 0) * number(point, 1);
    seen.push_back({point, Bytes::from_mib(static_cast<std::uint64_t>(mib))});
  }
  const Point point = drawn(space, 3, 2'000);
  const double truth = (500 + 100 * number(point, 0) * number(point, 1)) * kMib;
  const Need need = need_of(space, seen, point, kCard, kFirst);
  EXPECT_NEAR(static_cast<double>(need.bytes.count()) / truth, 1.06, 0.08);
}

TEST(MemoryModel, ARefusedTrialGetsMore) {
  const Bytes gib = Bytes::from_gib(1);
  EXPECT_EQ(after_refusal(gib * 4, gib * 2, kCard), gib * 6);
  EXPECT_EQ(after_refusal(gib * 4, gib * 9, kCard), gib * 9);
  EXPECT_EQ(after_refusal(gib * 100, gib * 2, kCard), kCard);
  EXPECT_EQ(after_refusal(kCard, gib, kCard), kCard);
  EXPECT_GT(after_refusal(Bytes(), Bytes(), kCard), Bytes());
  EXPECT_EQ(after_refusal(Bytes::from_bytes(UINT64_MAX), Bytes(), kCard), kCard);
}

}  // namespace
}  // namespace mete::core::sweep
