// SPDX-License-Identifier: Apache-2.0
// How much each parameter matters: the share of the variance of the metric that the parameter alone
// explains (the main effects of fANOVA), estimated from a random forest over the results, with the
// spread between its trees as the uncertainty. Pure; equal results give equal answers.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/sweep/sampler.h"
#include "core/sweep/space.h"

namespace mete::core::sweep {

struct Importance {
  std::size_t parameter = 0;
  double pct = 0;                          // of the variance of the metric over the space
  double plus_minus_pct = 0;               // one standard deviation
  std::optional<double> correlation = {};  // Spearman's, of a number with the metric
};

// For the parameters with more than one value, most important first, then in the order of the
// space; empty: fewer than kLeastResults results, or all are equal. The losses may be of either
// direction; those that are not finite are left out, and outliers count as the end of the usual
// range (three times the distance between the quartiles beyond them), since a few diverged trials
// would otherwise explain everything. At most kForestResults results are used (evenly chosen), so
// that 10,000 take well below a second.
inline constexpr std::size_t kLeastResults = 8;
inline constexpr std::size_t kForestResults = 2'000;
std::vector<Importance> importance(const Space& space, std::span<const Scored> scored);

}  // namespace mete::core::sweep
