// SPDX-License-Identifier: Apache-2.0
// Randomness for the simulator: equal seeds mean equal worlds, on every machine and compiler.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace mete::sim {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}

  // 0 .. count-1. The bias of % does not matter here.
  std::uint64_t below(std::uint64_t count) { return random_() % count; }
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + below(high - low + 1);
  }
  std::uint32_t small(std::uint32_t low, std::uint32_t high) {
    return static_cast<std::uint32_t>(between(low, high));
  }
  bool percent(unsigned chance) { return below(100) < chance; }
  bool per_mille(unsigned chance) { return below(1000) < chance; }
  template <typename T>
  T& pick(std::vector<T>& list) {
    return list[below(list.size())];
  }
  template <typename T>
  const T& pick(const std::vector<T>& list) {
    return list[below(list.size())];
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace mete::sim
