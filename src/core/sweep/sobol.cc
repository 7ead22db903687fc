// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <bit>

#include "base/assert.h"
#include "core/sweep/sequence.h"

namespace mete::core::sweep {

namespace {

constexpr std::size_t kBits = 53;
constexpr std::size_t kMaxDegree = 11;

struct Direction {
  std::size_t degree = 0;
  std::uint32_t polynomial = 0;
  std::array<std::uint16_t, kMaxDegree> initial = {};
};

constexpr Direction kDirections[] = {
#define SOBOL(dimension, degree, polynomial, ...) {degree, polynomial, {__VA_ARGS__}},
#include "core/sweep/sobol.def"
#undef SOBOL
};
static_assert(std::size(kDirections) + 1 == kSobolDimensions);

}  // namespace

// Point i is the exclusive or of the direction numbers v[k] for the bits k of the Gray code of i.
// v[k] = initial[k] / 2^(k + 1) for k < degree s, and for greater k
//   v[k] = a[1] v[k - 1] ^ … ^ a[s - 1] v[k - s + 1] ^ v[k - s] ^ v[k - s] / 2^s
// where a[1] … a[s - 1] are the bits of the polynomial, highest first. Numbers are scaled by 2^53.
std::uint64_t sobol_bits(std::size_t dimension, std::uint64_t index) {
  METE_ASSERT(dimension < kSobolDimensions && index < std::uint64_t{1} << kBits);
  const std::uint64_t gray = index ^ (index >> 1);
  const auto needed = static_cast<std::size_t>(std::bit_width(gray));
  std::array<std::uint64_t, kBits> v{};
  std::uint64_t bits = 0;
  for (std::size_t k = 0; k < needed; ++k) {
    if (dimension == 0) {
      v[k] = std::uint64_t{1} << (kBits - 1 - k);
    } else if (const Direction& d = kDirections[dimension - 1]; k < d.degree) {
      v[k] = std::uint64_t{d.initial[k]} << (kBits - 1 - k);
    } else {
      v[k] = v[k - d.degree] ^ (v[k - d.degree] >> d.degree);
      for (std::size_t j = 1; j < d.degree; ++j)
        if ((d.polynomial >> (d.degree - 1 - j) & 1) != 0) v[k] ^= v[k - j];
    }
    if ((gray >> k & 1) != 0) bits ^= v[k];
  }
  return bits;
}

}  // namespace mete::core::sweep
