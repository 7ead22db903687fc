// SPDX-License-Identifier: Apache-2.0
#include "core/sweep/maths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>

namespace mete::core::sweep {
namespace {

// Units in the last place between two finite numbers of one sign.
double ulps(double got, double want) {
  if (got == want) return 0;
  const double unit = std::nextafter(std::abs(want), INFINITY) - std::abs(want);
  return std::abs(got - want) / unit;
}

double random_unit(std::uint64_t n) { return unit_of_bits(mix(7, 0, n)); }

TEST(Maths, LogarithmAgreesWithLibm) {
  double worst = 0;
  for (std::uint64_t n = 0; n < 100'000; ++n) {
    const double wide = std::ldexp(1 + random_unit(n), static_cast<int>(n % 2'000) - 1'000);
    worst = std::max(worst, ulps(log_of(wide), std::log(wide)));
    const double near_one = 0.5 + 1.5 * random_unit(n);
    worst = std::max(worst, ulps(log_of(near_one), std::log(near_one)));
  }
  EXPECT_LE(worst, 2);
  EXPECT_EQ(log_of(1), 0);
  EXPECT_EQ(log_of(0), -INFINITY);
  EXPECT_TRUE(std::isnan(log_of(-1)));
  EXPECT_LE(ulps(log_of(5e-324), std::log(5e-324)), 1);
  EXPECT_LE(ulps(log_of(1.7e308), std::log(1.7e308)), 1);
}

TEST(Maths, ExponentialAgreesWithLibm) {
  double worst = 0;
  for (std::uint64_t n = 0; n < 100'000; ++n) {
    const double wide = (random_unit(n) - 0.5) * 1'416;
    worst = std::max(worst, ulps(exp_of(wide), std::exp(wide)));
    const double near_zero = random_unit(n) - 0.5;
    worst = std::max(worst, ulps(exp_of(near_zero), std::exp(near_zero)));
  }
  EXPECT_LE(worst, 2);
  EXPECT_EQ(exp_of(0), 1);
  EXPECT_EQ(exp_of(-746), 0);
  EXPECT_EQ(exp_of(-INFINITY), 0);
  EXPECT_EQ(exp_of(710), INFINITY);
  EXPECT_EQ(exp_of(INFINITY), INFINITY);
  EXPECT_TRUE(std::isnan(exp_of(NAN)));
  EXPECT_TRUE(std::isfinite(exp_of(709.78)));
  EXPECT_GT(exp_of(-745), 0);
  EXPECT_NEAR(exp_of(-740) / std::exp(-740), 1, 0.5);  // denormal
}

TEST(Maths, ExponentialUndoesLogarithm) {
  for (std::uint64_t n = 0; n < 1'000; ++n) {
    const double x = std::ldexp(1 + random_unit(n), static_cast<int>(n % 20) - 10);
    EXPECT_NEAR(exp_of(log_of(x)) / x, 1, 4e-15);
  }
}

TEST(Maths, RootIsExact) {
  EXPECT_EQ(root_of(2), std::sqrt(2));
  EXPECT_EQ(root_of(0), 0);
  EXPECT_EQ(root_of(1e300), std::sqrt(1e300));
}

TEST(Maths, NormalDistributionAgreesWithLibm) {
  double worst = 0;
  for (std::uint64_t n = 0; n < 100'000; ++n) {
    const double x = -12 + 20 * random_unit(n);
    const auto want =
        static_cast<double>(std::erfc(static_cast<long double>(-x) / std::sqrt(2.0L)) / 2);
    worst = std::max(worst, ulps(normal_cdf(x), want));
  }
  EXPECT_LE(worst, 8);
  for (const double x : {-37.0, -30.0, -20.0}) {
    const auto want =
        static_cast<double>(std::erfc(static_cast<long double>(-x) / std::sqrt(2.0L)) / 2);
    EXPECT_LE(ulps(normal_cdf(x), want), 8) << x;
  }
  EXPECT_EQ(normal_cdf(0), 0.5);
  EXPECT_EQ(normal_cdf(-INFINITY), 0);
  EXPECT_EQ(normal_cdf(INFINITY), 1);
  EXPECT_TRUE(std::isnan(normal_cdf(NAN)));
}

TEST(Maths, QuantileUndoesNormalDistribution) {
  for (std::uint64_t n = 0; n < 10'000; ++n) {
    const double p = random_unit(n) + 0x1p-54;
    EXPECT_NEAR(normal_cdf(normal_quantile(p)) / p, 1, 1e-14) << p;
  }
  for (double p = 1e-300; p < 0.1; p *= 10)
    EXPECT_NEAR(normal_cdf(normal_quantile(p)) / p, 1, 1e-12) << p;
  EXPECT_EQ(normal_quantile(0.5), 0);
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-15);
  EXPECT_NEAR(normal_quantile(1e-20), -9.262340089798408, 1e-14);
  EXPECT_EQ(normal_quantile(0.25), -normal_quantile(0.75));
  EXPECT_EQ(normal_quantile(0), -INFINITY);
  EXPECT_EQ(normal_quantile(1), INFINITY);
}

// These bits are what a seed means: if one changes, so do the sweeps of all users.
TEST(Maths, HasTheSameBitsEverywhere) {
  EXPECT_EQ(log_of(10), 0x1.26bb1bbb55516p+1);
  EXPECT_EQ(log_of(1e-5), -0x1.7069e2aa2aa5bp+3);
  EXPECT_EQ(exp_of(1), 0x1.5bf0a8b14576ap+1);
  EXPECT_EQ(exp_of(-12.5), 0x1.f42ed3f68e69p-19);
  EXPECT_EQ(normal_cdf(-1.5), 0x1.11a46d89647efp-4);
  EXPECT_EQ(normal_quantile(0.01), -0x1.29c5c4630ff0ep+1);
  EXPECT_EQ(mix(0, 0, 0), 0x238275bc38fcbe91u);
  EXPECT_EQ(mix(42, 7, 1'000'000), 0x901c12e1a8da8a47u);
}

TEST(Maths, MixSeparatesSeedsStreamsAndNumbers) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    for (std::uint64_t stream = 0; stream < 20; ++stream)
      for (std::uint64_t n = 0; n < 20; ++n) seen.insert(mix(seed, stream, n));
  EXPECT_EQ(seen.size(), 8'000u);
}

TEST(Maths, UnitNumbersAreBelowOne) {
  EXPECT_EQ(unit_of_bits(0), 0);
  EXPECT_LT(unit_of_bits(~std::uint64_t{0}), 1);
  EXPECT_EQ(unit_of_bits(std::uint64_t{1} << 63), 0.5);
  double sum = 0;
  for (std::uint64_t n = 0; n < 10'000; ++n) sum += random_unit(n);
  EXPECT_NEAR(sum / 10'000, 0.5, 0.01);
}

}  // namespace
}  // namespace mete::core::sweep
