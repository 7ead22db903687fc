// SPDX-License-Identifier: Apache-2.0
// See lengths.h, and forecast.h for the rules.
#include "core/explain/lengths.h"

#include <algorithm>
#include <iterator>

namespace mete::core {

namespace {

// No job is assumed to run for longer than a year.
constexpr std::uint64_t kLongest = 365 * 86'400;

std::optional<std::uint64_t> without_limit(const Length& length, std::uint64_t elapsed_s,
                                           std::uint32_t chance) {
  if (length.ran_s.empty()) return std::nullopt;
  std::vector<std::uint32_t> longer;
  std::uint64_t longest = std::max<std::uint64_t>(1, elapsed_s);
  for (const std::uint32_t seconds : length.ran_s) {
    if (seconds > elapsed_s) longer.push_back(seconds);
    longest = std::max<std::uint64_t>(longest, seconds);
  }
  std::sort(longer.begin(), longer.end());
  const std::uint64_t parts = longer.size() + 1;
  const std::uint64_t choice = chance * parts;  // 2^32 for each part
  const std::uint64_t part = choice >> 32;
  const std::uint64_t within = choice & 0xffffffff;
  if (part == longer.size()) return longest * 0x100000000u / (0x100000000u - within);
  const std::uint64_t from = part == 0 ? elapsed_s : longer[part - 1];
  return from + ((longer[part] - from) * (within + 1) >> 32);
}

}  // namespace

std::uint64_t Draw::next() {
  std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

Length length_of(const Estimates& estimates, const JobSpec& spec) {
  const std::span<const std::uint32_t> ran = estimates.durations(spec);
  return {{ran.begin(), ran.end()}, spec.time_s};
}

std::optional<std::uint64_t> draw_length(const Length& length, std::uint64_t elapsed_s,
                                         std::uint64_t grace_s, std::uint32_t chance) {
  std::optional<std::uint64_t> seconds = without_limit(length, elapsed_s, chance);
  if (length.time_s && elapsed_s < *length.time_s)
    seconds = std::min(seconds.value_or(*length.time_s), *length.time_s);
  else if (length.time_s)  // it is being ended
    seconds = elapsed_s + (chance * (grace_s + 1) >> 32);
  if (seconds) seconds = std::max(elapsed_s + 1, std::min(*seconds, kLongest));
  return seconds;
}

std::uint32_t chance_of(JobId id, std::size_t future, std::size_t futures, Draw& draw) {
  // Every part once: the steps have no divisor in common with 25, and are far from 0 and from 25.
  constexpr std::size_t kSteps[] = {7, 9, 11, 14, 16, 18};
  const std::uint64_t own = Draw(id.number * 1'000'003 + id.element.value_or(0)).next();
  const std::size_t part =
      (future * kSteps[own % std::size(kSteps)] + (own >> 8) % futures) % futures;
  const std::uint64_t within = draw.next() >> 32;
  return static_cast<std::uint32_t>(((static_cast<std::uint64_t>(part) << 32) + within) / futures);
}

}  // namespace mete::core
