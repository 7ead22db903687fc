// SPDX-License-Identifier: Apache-2.0
// Logarithm, exponential and the like, equal to the last bit on every machine: made of +, -, *, /
// and exact scaling alone (this folder is compiled without fused operations). Accurate to a few
// units in the last place; the functions of libc differ between its versions and processors.
#pragma once

#include <cstdint>

namespace mete::core::sweep {

double log_of(double x);   // natural; x > 0 and finite
double exp_of(double x);   // 0 below -745, infinite above 709.78
double root_of(double x);  // x >= 0; sqrt, which IEEE 754 defines exactly
// The distribution function of the normal distribution, and its inverse (0 < p < 1).
double normal_cdf(double x);
double normal_quantile(double p);

// SplitMix64: a number from (seed, stream, n), and one in [0, 1) with 53 bits.
std::uint64_t mix(std::uint64_t seed, std::uint64_t stream, std::uint64_t n);
double unit_of_bits(std::uint64_t bits);

}  // namespace mete::core::sweep
