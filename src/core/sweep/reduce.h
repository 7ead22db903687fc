// SPDX-License-Identifier: Apache-2.0
// Reducers: after every `interval` results, values of parameters that go with bad results are
// dropped, as Talos' reducers do. And the correlations themselves, which reports show too. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/sweep/sampler.h"
#include "core/sweep/space.h"

namespace mete::core::sweep {

enum class Correlation { kPearson, kSpearman, kKendall };
// -1 to 1; nullopt: fewer than three pairs, or one side is constant. Pairs with a number that is
// not finite are left out. Kendall's is tau-b. At most the last kMaxPairsCorrelated pairs count, in
// O(n log n).
inline constexpr std::size_t kMaxPairsCorrelated = 20'000;
std::optional<double> correlate(Correlation kind, std::span<const double> x,
                                std::span<const double> y);

struct ReduceRule {
  Correlation kind = Correlation::kSpearman;
  std::size_t window = 50;    // the last results that are looked at
  std::size_t interval = 10;  // results between two reductions
  double threshold = 0.2;     // the least |correlation| that counts
  bool operator==(const ReduceRule&) const = default;
};
inline constexpr std::size_t kMaxWindow = 1'000;
// "method=spearman,window=50,interval=10,threshold=0.2", every part optional. invalid, with the
// character of the mistake as evidence: an unknown key or method, a window outside 3 to kMaxWindow,
// an interval of 0 or above the window, a threshold that is not above 0 and at most 1.
Result<ReduceRule> parse_reduce(std::string_view text);
std::string to_string(const ReduceRule& rule);

struct Dropped {
  std::size_t parameter = 0;
  Value value;
  double correlation = 0;  // of "the parameter has this value" (1 or 0) with the loss
  bool operator==(const Dropped&) const = default;
};
// What to drop after these results (in the order in which they came; failed ones are left out of
// it): at most one value, that with the highest correlation of at least the threshold; among equal
// ones the first of the space. Only results in the window whose trial uses the parameter count. A
// value needs two of them, and there are `interval` results at least. Never the last value of a
// parameter, never of a range, never one in `dropped`. The caller asks every `interval` results.
std::optional<Dropped> reduce(const Space& space, const ReduceRule& rule,
                              std::span<const Scored> scored, std::span<const Dropped> dropped);
// Whether a point has a dropped value.
bool has_dropped(const Point& point, std::span<const Dropped> dropped);

}  // namespace mete::core::sweep
