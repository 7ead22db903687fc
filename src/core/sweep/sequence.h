// SPDX-License-Identifier: Apache-2.0
// The sequences of Sobol and Halton, and two orders of the whole numbers below a size. Samplers are
// made of them. Each number is computed from its index, without tables for each sequence. Pure.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mete::core::sweep {

inline constexpr std::size_t kSobolDimensions = 256;
inline constexpr std::size_t kHaltonDimensions = 256;

// The first 53 bits of coordinate `dimension` (from 0) of Sobol's point `index` < 2^53, in the
// order of Gray codes, in which the sequence is published. Point 0 is the origin.
std::uint64_t sobol_bits(std::size_t dimension, std::uint64_t index);

// Coordinate `dimension` (from 0) of Halton's point `index`: the digits of `index` in the base of
// the prime number `dimension`, mirrored at the point. Index 6 is 110 in base 2, and gives 0.011.
double halton(std::size_t dimension, std::uint64_t index);

// Number `index` in a random order of the whole numbers below `size`; the key decides which order.
// Each number appears once for index = 0 … size - 1. size >= 1, at most 2^63.
std::uint64_t shuffled(std::uint64_t key, std::uint64_t size, std::uint64_t index);

// Like shuffled(), in an order whose first numbers are far apart. Halve the range k times: the
// first 2^k numbers have one in each of the 2^k parts.
std::uint64_t spread(std::uint64_t key, std::uint64_t size, std::uint64_t index);

}  // namespace mete::core::sweep
