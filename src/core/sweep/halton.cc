// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "base/assert.h"
#include "core/sweep/sequence.h"

namespace mete::core::sweep {

namespace {

constexpr std::array<std::uint32_t, kHaltonDimensions> kPrimes = [] {
  std::array<std::uint32_t, kHaltonDimensions> primes{};
  std::size_t found = 0;
  for (std::uint32_t n = 2; found < primes.size(); ++n) {
    bool prime = true;
    for (std::size_t i = 0; i < found && primes[i] * primes[i] <= n; ++i)
      prime = prime && n % primes[i] != 0;
    if (prime) primes[found++] = n;
  }
  return primes;
}();

}  // namespace

// Numerator and denominator are whole numbers, exact below 2^53, so that their quotient is rounded
// once: index 2 in base 3 is 2/3 to the last bit.
double halton(std::size_t dimension, std::uint64_t index) {
  METE_ASSERT(dimension < kHaltonDimensions);
  const std::uint64_t base = kPrimes[dimension];
  double numerator = 0;
  double denominator = 1;
  for (; index > 0; index /= base) {
    numerator = numerator * static_cast<double>(base) + static_cast<double>(index % base);
    denominator *= static_cast<double>(base);
  }
  return std::min(numerator / denominator, 1 - 0x1p-53);
}

}  // namespace mete::core::sweep
