// SPDX-License-Identifier: Apache-2.0
// A policy chooses among cards that all have room; it never decides whether there is room. One file
// each: first_fit.cc, best_fit.cc, spread.cc. Internal to core/place.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/place/place.h"

namespace mete::core {

struct Fit {
  std::size_t at = 0;  // position in the pool
  std::uint32_t index = 0;
  Bytes bytes;      // what would be granted
  Bytes left;       // left for other jobs then
  Bytes most = {};  // the maximum of a growing share
};

// Each reduces `fits` to the `wanted` cards it prefers, in index order. wanted <= fits.size().
void first_fit(std::vector<Fit>& fits, std::size_t wanted);
void best_fit(std::vector<Fit>& fits, std::size_t wanted);
void spread(std::vector<Fit>& fits, std::size_t wanted);
void choose(Policy policy, std::vector<Fit>& fits, std::size_t wanted);

// Shared by the policies: the first `wanted` by `before`, which must order all cards.
template <typename Before>
void keep_first(std::vector<Fit>& fits, std::size_t wanted, Before before) {
  const auto end = fits.begin() + static_cast<std::ptrdiff_t>(wanted);
  std::partial_sort(fits.begin(), end, fits.end(), before);
  fits.erase(end, fits.end());
  std::sort(fits.begin(), fits.end(), [](const Fit& a, const Fit& b) { return a.index < b.index; });
}

}  // namespace mete::core
