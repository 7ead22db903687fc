// SPDX-License-Identifier: Apache-2.0
// See shape.h.
#include "core/cluster/shape.h"

#include <algorithm>
#include <functional>

#include "base/assert.h"

namespace mete::core::cluster {

namespace {

std::uint64_t mix_in(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
  return hash ^ (hash >> 29);
}

}  // namespace

std::uint64_t hash_of(const Shape& shape) {
  std::uint64_t hash = mix_in(index_of(shape.group), static_cast<std::uint64_t>(shape.cpu) << 32 |
                                                         static_cast<std::uint32_t>(shape.ram));
  for (std::size_t i = 0; i < shape.cards; i += 4) {
    std::uint64_t word = 0;
    for (std::size_t j = 0; j < 4; ++j) word = word << 16 | shape.free[i + j];
    hash = mix_in(hash, word);
  }
  return mix_in(hash, shape.cards);
}

Shape after(const Shape& shape, const Kind& kind, std::size_t at) {
  Shape left = shape;
  left.cpu -= kind.ask.cpu_milli;
  left.ram -= kind.ask.ram_mib;
  const std::size_t n = kind.ask.cards;
  if (n == 0) return left;
  const std::int32_t each = kind.share(shape.group);
  METE_ASSERT(at + n <= shape.cards && shape.free[at + n - 1] >= each);
  left.idle -= static_cast<std::int32_t>(n) * each;
  // The cards that became smaller move behind the others, in one merge.
  std::array<std::uint16_t, kMaxCards> taken;
  for (std::size_t i = 0; i < n; ++i)
    taken[i] = static_cast<std::uint16_t>(shape.free[at + i] - each);
  std::size_t out = at;
  std::size_t rest = at + n;
  for (std::size_t i = 0; i < n; ++i) {
    while (rest < shape.cards && shape.free[rest] >= taken[i])
      left.free[out++] = shape.free[rest++];
    left.free[out++] = taken[i];
  }
  return left;
}

}  // namespace mete::core::cluster
