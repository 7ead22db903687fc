// SPDX-License-Identifier: Apache-2.0
// See lengths.h, and forecast.h for the rules.
#include "core/explain/lengths.h"

#include <algorithm>

namespace mete::core {

namespace {

constexpr std::size_t kOfAll = 512;
// Nothing is believed to run for longer than a year.
constexpr std::uint64_t kLongest = 365 * 86'400;

}  // namespace

std::uint64_t Draw::next() {
  std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

Lengths::Lengths(const Estimates& estimates)
    : estimates_(estimates), all_(estimates.of_all(kOfAll)) {
  std::sort(all_.begin(), all_.end());
}

std::optional<std::uint64_t> Lengths::without_limit(const JobSpec& spec, std::uint64_t elapsed_s,
                                                    Draw& draw) const {
  const std::span<const std::uint32_t> own = estimates_.durations(spec);
  if (own.empty() && all_.empty()) return std::nullopt;
  std::vector<std::uint32_t> longer;
  for (const std::uint32_t seconds : own)
    if (seconds > elapsed_s) longer.push_back(seconds);
  // One more of which nothing is known but that it is a job like others.
  const std::size_t choice = draw.below(longer.size() + 1);
  if (choice < longer.size()) return longer[choice];
  const auto first = std::upper_bound(all_.begin(), all_.end(), elapsed_s);
  if (const auto count = static_cast<std::size_t>(all_.end() - first); count > 0)
    return first[static_cast<std::ptrdiff_t>(draw.below(count))];
  // Longer than everything: the chance that it runs for n times as long is 1 in n.
  constexpr std::uint64_t kParts = 1000;
  return std::max<std::uint64_t>(1, elapsed_s) * kParts / (1 + draw.below(kParts));
}

std::optional<std::uint64_t> Lengths::draw(const JobSpec& spec, std::uint64_t elapsed_s,
                                           Draw& draw) const {
  std::optional<std::uint64_t> seconds = without_limit(spec, elapsed_s, draw);
  if (spec.time_s) seconds = std::min(seconds.value_or(*spec.time_s), *spec.time_s);
  if (seconds) seconds = std::min(*seconds, kLongest);
  return seconds;
}

}  // namespace mete::core
