// SPDX-License-Identifier: Apache-2.0
// See memory_model.h; memory_fit.cc has the statistics.
#include "core/sweep/memory_model.h"

#include <algorithm>
#include <cmath>

#include "core/sweep/memory_fit.h"

namespace mete::core::sweep {

namespace {

constexpr double kLeastMargin = 0.03;
constexpr double kAfterRefusal = 1.25;  // of the limit that was too low
constexpr double kMib = 1024.0 * 1024;
constexpr double kLeastMarginBytes = 64 * kMib;

// Whole MiB, rounded up, at most `card`.
Bytes whole_mib(double bytes, Bytes card) {
  if (!(bytes < static_cast<double>(card.count()))) return card;
  const auto mib = static_cast<std::uint64_t>(std::ceil(std::max(bytes, 1.0) / kMib));
  return std::min(card, Bytes::from_mib(mib));
}

double with_least_margin(double bytes) {
  return bytes + std::max(bytes * kLeastMargin, kLeastMarginBytes);
}

// Equal in all parameters that may drive memory; everything is equal if nothing is known.
bool is_equal(const MemoryFit* fit, const Point& a, const Point& b) {
  if (fit == nullptr) return true;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (fit->drives(i) && a[i] != b[i]) return false;
  return a.size() == b.size();
}

}  // namespace

Need need_of(const Space& space, std::span<const Observed> observed, const Point& point, Bytes card,
             Bytes first) {
  std::vector<Peak> peaks;
  for (const Observed& one : observed)
    if (!one.refused) peaks.push_back({&one.point, static_cast<double>(one.peak.count())});
  const double room = static_cast<double>(first.count());
  std::optional<MemoryFit> fit;
  double bytes = room;
  if (peaks.size() >= kFirstTrials) {
    fit.emplace(space, peaks);
    const MemoryFit::Estimate estimate = fit->estimate(point);
    const double least = with_least_margin(estimate.expected);
    bytes = std::max(std::min(estimate.bound, room), least);
  }
  double used = 0;
  double refused = 0;
  double open = 0;  // refused, and no trial has succeeded since
  for (const Observed& one : observed) {
    if (!is_equal(fit ? &*fit : nullptr, one.point, point)) continue;
    const double peak = static_cast<double>(one.peak.count());
    double& most = one.refused ? refused : used;
    most = std::max(most, peak);
    open = one.refused ? std::max(open, peak) : 0;
  }
  if (used > 0) bytes = std::max(bytes, fit ? with_least_margin(used) : used);
  if (refused > 0) bytes = std::max(bytes, with_least_margin(refused));
  // The model is wrong here: the trial gets room, as the first trials did.
  if (open > 0) bytes = std::max({bytes, open * kAfterRefusal, room});
  if (!fit && bytes == room) return {std::min(first, card), false};
  return {whole_mib(bytes, card), fit.has_value()};
}

Bytes after_refusal(Bytes granted, Bytes predicted, Bytes card) {
  const Bytes half_more = granted.plus(granted.checked_scale(1, 2).value_or(card));
  return std::min(card, std::max({half_more, predicted, granted.plus(Bytes::from_mib(1))}));
}

}  // namespace mete::core::sweep
