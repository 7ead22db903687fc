// SPDX-License-Identifier: Apache-2.0
// See wait.h: the names of what is in the way.
#include "core/place/wait.h"

#include <array>

namespace mete::core {

namespace {

// In the order of InTheWay.
constexpr std::array<std::string_view, 16> kNames{
    "nothing",  "lost",    "drained",     "stale",     "whole", "one-process",
    "in-use",   "foreign", "room",        "held-back", "where", "unusable",
    "excluded", "type",    "never-where", "size"};
static_assert(kNames.size() == static_cast<std::size_t>(InTheWay::kTooSmall) + 1);

}  // namespace

std::string_view to_string(InTheWay why) { return kNames[static_cast<std::size_t>(why)]; }

std::optional<InTheWay> parse_in_the_way(std::string_view text) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == text) return static_cast<InTheWay>(i);
  return std::nullopt;
}

}  // namespace mete::core
