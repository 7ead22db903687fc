// SPDX-License-Identifier: Apache-2.0
// Orders of the whole numbers below a size; see sequence.h.
#include <bit>

#include "base/assert.h"
#include "core/sweep/maths.h"
#include "core/sweep/sequence.h"

namespace mete::core::sweep {

// A Feistel network permutes the numbers of an even count of bits. A result that is out of the
// range goes through the network again until it is in the range ("cycle walking"): four times or
// less, on average.
std::uint64_t shuffled(std::uint64_t key, std::uint64_t size, std::uint64_t index) {
  METE_ASSERT(index < size && size <= std::uint64_t{1} << 63);
  constexpr std::uint64_t kRounds = 8;
  const auto half = static_cast<unsigned>(std::bit_width(size - 1) + 1) / 2;
  if (half == 0) return 0;
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  do {
    std::uint64_t left = index >> half;
    std::uint64_t right = index & mask;
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      const std::uint64_t next = left ^ (mix(key, round, right) & mask);
      left = right;
      right = next;
    }
    index = left << half | right;
  } while (index >= size);
  return index;
}

// Halves the range: even indices go to one half and odd indices to the other, and each half numbers
// its indices from 0 again. For each range, the key decides which half the even indices take. Their
// half is the larger one if the size is odd.
std::uint64_t spread(std::uint64_t key, std::uint64_t size, std::uint64_t index) {
  METE_ASSERT(index < size);
  std::uint64_t first = 0;
  while (size > 1) {
    const std::uint64_t odd = size / 2;
    const std::uint64_t even = size - odd;
    const bool even_below = (mix(key, size, first) & 1) == 0;
    if (index % 2 == 0) {
      if (!even_below) first += odd;
      size = even;
    } else {
      if (even_below) first += even;
      size = odd;
    }
    index /= 2;
  }
  return first;
}

}  // namespace mete::core::sweep
