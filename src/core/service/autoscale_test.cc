// SPDX-License-Identifier: Apache-2.0
#include "core/service/autoscale.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

namespace mete::core::service {
namespace {

using Ticks = std::vector<Autoscaler::Tick>;

// Samples at 0, 1, … `until`, and a decision at 10, 20, … of them.
Ticks run(const Autoscaling& rules, std::int64_t until,
          const std::function<double(std::int64_t)>& in_flight) {
  Autoscaler scaler(rules);
  Ticks ticks;
  for (std::int64_t t = 0; t <= until; ++t) {
    scaler.sample(t, in_flight(t));
    if (t > 0 && t % kTickS == 0) ticks.push_back(*scaler.tick(t));
  }
  return ticks;
}

std::vector<std::uint32_t> replicas(const Ticks& ticks) {
  std::vector<std::uint32_t> numbers;
  for (const Autoscaler::Tick& tick : ticks) numbers.push_back(tick.replicas);
  return numbers;
}

Autoscaling quick() {
  Autoscaling rules;
  rules.target_in_flight = 1;
  rules.window_s = 10;
  rules.down_period_s = 0;
  rules.up_period_s = 0;
  return rules;
}

using Numbers = std::vector<std::uint32_t>;

TEST(Autoscaler, GoesAtMostByTheFactorAndAlwaysByOne) {
  // The first tick changes nothing: the instant at which a period of 0 s ends is still in it.
  EXPECT_EQ(replicas(run(quick(), 70, [](auto) { return 10; })), (Numbers{1, 2, 3, 5, 8, 10, 10}));
  Autoscaling rules = quick();
  rules.init = 10;
  EXPECT_EQ(replicas(run(rules, 70, [](auto) { return 0; })), (Numbers{10, 8, 6, 5, 4, 3, 2}));
}

TEST(Autoscaler, TheWindowIsAMeanOfItsLastSeconds) {
  Autoscaling rules = quick();
  rules.window_s = 20;
  rules.max_up = 100;
  // t = 1 … 20 count at t = 20: ten seconds of 0, ten of 6. Sample 0 is not among them.
  const Ticks ticks = run(rules, 30, [](std::int64_t t) { return t > 10 ? 6 : 0; });
  EXPECT_EQ(ticks[0].avg, 0);
  EXPECT_EQ(ticks[1].avg, 3);
  EXPECT_EQ(ticks[2].avg, 6);
  EXPECT_EQ(replicas(ticks), (Numbers{1, 3, 6}));
}

TEST(Autoscaler, NothingChangesWithinTheTolerances) {
  Autoscaling rules = quick();
  rules.init = 20;
  EXPECT_EQ(run(rules, 20, [](auto) { return 20.9; })[1].recommended, 20u);
  EXPECT_EQ(run(rules, 20, [](auto) { return 21.0; })[1].recommended, 21u) << "5 % are beyond it";
  EXPECT_EQ(run(rules, 20, [](auto) { return 19.05; })[1].recommended, 20u);
  EXPECT_EQ(run(rules, 20, [](auto) { return 18.9; })[1].recommended, 19u);
}

TEST(Autoscaler, ScalesUpToTheLeastOfThePeriod) {
  Autoscaling rules = quick();
  rules.up_period_s = 30;
  rules.max_up = 100;
  // First tick at 10; until 40 nothing changes. At 50 the period has 20 (2), 30, 40 and 50 (9).
  const auto load = [](std::int64_t t) { return t <= 20 ? 2 : 9; };
  EXPECT_EQ(replicas(run(rules, 60, load)), (Numbers{1, 1, 1, 1, 2, 9}));
}

TEST(Autoscaler, ScalesDownToTheLargestOfThePeriod) {
  Autoscaling rules = quick();
  rules.down_period_s = 30;
  rules.max_down = 0;
  rules.init = 9;
  const auto load = [](std::int64_t t) { return t <= 20 ? 6 : 2; };
  EXPECT_EQ(replicas(run(rules, 60, load)), (Numbers{9, 9, 9, 9, 6, 2}));
}

TEST(Autoscaler, TheDefaultPeriodsIncludeTheirLastInstant) {
  Autoscaling rules;
  rules.target_in_flight = 1;
  rules.init = 4;
  // The first tick is at 10 s; 5 minutes later, at 310 s, c still stays.
  const Ticks ticks = run(rules, 330, [](auto) { return 1; });
  EXPECT_EQ(ticks[30].t_s, 310);
  EXPECT_EQ(ticks[30].replicas, 4u);
  EXPECT_EQ(ticks[31].replicas, 3u);
}

TEST(Autoscaler, TheFirstRequestStartsOneAtOnce) {
  Autoscaling rules = quick();
  rules.min = 0;
  rules.down_period_s = 20;
  Autoscaler scaler(rules);
  for (std::int64_t t = 0; t < 15; ++t) scaler.sample(t, 0);
  ASSERT_TRUE(scaler.tick(10));
  EXPECT_EQ(scaler.replicas(), 0u);
  scaler.sample(15, 1);
  EXPECT_EQ(scaler.replicas(), 1u);
  for (std::int64_t t = 16; t <= 50; ++t) {
    scaler.sample(t, 0);
    if (t % kTickS == 0) {
      ASSERT_TRUE(scaler.tick(t));
    }
    // The 1 of t = 20 (one of ten samples) is in the period until t = 40; its last instant counts.
    EXPECT_EQ(scaler.replicas(), t < 50 ? 1u : 0u) << t;
  }
}

TEST(Autoscaler, StaysWithinItsBounds) {
  Autoscaling rules = quick();
  rules.min = 2;
  rules.max = 5;
  EXPECT_EQ(replicas(run(rules, 60, [](auto) { return 99; })).back(), 5u);
  EXPECT_EQ(replicas(run(rules, 60, [](auto) { return 0; })).back(), 2u);
}

TEST(Autoscaler, WithoutSamplesNothingIsDecided) {
  Autoscaler scaler(quick());
  EXPECT_FALSE(scaler.tick(10));
  scaler.sample(11, 5);
  EXPECT_FALSE(scaler.tick(30)) << "the sample has left the window";
  EXPECT_EQ(scaler.replicas(), 1u);
}

TEST(Autoscaler, GoesOnAfterARestartAsIfThereHadBeenNone) {
  Autoscaling rules;
  rules.target_in_flight = 2;
  rules.down_period_s = 40;
  rules.up_period_s = 20;
  const auto load = [](std::int64_t t) { return static_cast<double>(t * t % 97); };
  Autoscaler whole(rules);
  Autoscaler halved(rules);
  for (std::int64_t t = 0; t <= 400; ++t) {
    whole.sample(t, load(t));
    halved.sample(t, load(t));
    if (t % kTickS == 0 && t > 0) {
      ASSERT_EQ(whole.tick(t), halved.tick(t)) << t;
    }
    halved = Autoscaler(rules, halved.parts());
    ASSERT_EQ(whole.parts(), halved.parts());
  }
  // What is kept is bounded by window and periods.
  EXPECT_LE(whole.parts().samples.size(), 60u);
  EXPECT_LE(whole.parts().remembered.size(), 6u);
}

TEST(Autoscaler, OtherRulesKeepWhatIsRemembered) {
  Autoscaler scaler(quick());
  scaler.sample(1, 9);
  ASSERT_TRUE(scaler.tick(10));
  Autoscaling rules = quick();
  rules.min = 3;
  scaler.set_rules(rules);
  EXPECT_EQ(scaler.replicas(), 3u);
  EXPECT_EQ(scaler.parts().remembered.size(), 1u);
}

TEST(Autoscaling, NamesTheKeyThatIsWrong) {
  const auto message = [](const std::function<void(Autoscaling&)>& change) {
    Autoscaling rules;
    change(rules);
    const Result<void> fine = check(rules);
    return fine ? std::string("fine") : fine.error().message;
  };
  EXPECT_EQ(message([](auto&) {}), "fine");
  EXPECT_EQ(message([](auto& r) { r.window_s = 15; }), "window is 15 s");
  EXPECT_EQ(message([](auto& r) { r.min = 5, r.max = 2; }),
            "min_replicas is 5, more than max_replicas, 2");
  EXPECT_EQ(message([](auto& r) { r.max = 0; }), "max_replicas is 0");
  EXPECT_EQ(message([](auto& r) { r.init = 0; }), "init_replicas is 0");
  EXPECT_EQ(message([](auto& r) { r.target_in_flight = 0; }), "target_in_flight must be above 0");
  EXPECT_EQ(message([](auto& r) { r.target_in_flight = NAN; }), "target_in_flight must be above 0");
  EXPECT_EQ(message([](auto& r) { r.max_down = 1.5; }), "max_downscale_factor is no part of 1");
  EXPECT_EQ(message([](auto& r) { r.max_up = 0.5; }), "max_upscale_factor is below 1");
  EXPECT_EQ(message([](auto& r) { r.up_tolerance = 1; }), "upscale_tolerance is no part of 1");
  EXPECT_EQ(message([](auto& r) { r.down_period_s = -1; }),
            "downscale_stabilization_period is -1 s");
}

}  // namespace
}  // namespace mete::core::service
