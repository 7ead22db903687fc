// SPDX-License-Identifier: Apache-2.0
// A point in time for users and documents: milliseconds of UTC since 1970. Not for measuring (a
// clock can be set); passed in, never read here.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mete::base {

struct WallTime {
  std::int64_t ms = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 of a comparison for a pointer
  constexpr auto operator<=>(const WallTime&) const = default;
};

// "2026-11-15T05:50:43.123Z" (RFC 3339, always UTC, always milliseconds).
std::string to_string(WallTime time);
// Exactly what to_string writes; nullopt for anything else.
std::optional<WallTime> parse_wall_time(std::string_view text);

// For users: "12 s", "3 min 20 s", "2 h 5 min", "3 d 4 h".
std::string duration_in_words(std::int64_t seconds);

}  // namespace mete::base

namespace mete {
using base::WallTime;
}  // namespace mete
