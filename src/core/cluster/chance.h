// SPDX-License-Identifier: Apache-2.0
// Random numbers that are equal on every machine for equal seeds (SplitMix64): the distributions of
// standard libraries differ.
#pragma once

#include <cstdint>

namespace mete::core::cluster {

class Chance {
 public:
  explicit Chance(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  // 0 .. below-1. The bias is below 2^-32 for anything a cluster counts.
  std::uint64_t below(std::uint64_t below) { return next() % below; }

 private:
  std::uint64_t state_;
};

}  // namespace mete::core::cluster
