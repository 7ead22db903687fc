// SPDX-License-Identifier: Apache-2.0
// See query.h: times and versions.
#include <algorithm>
#include <charconv>

#include "core/where/query.h"

namespace mete::core {

int compare_versions(std::string_view a, std::string_view b) {
  while (!a.empty() || !b.empty()) {
    const auto part = [](std::string_view& text) {
      const std::size_t end = std::min(text.find('.'), text.size());
      const std::string_view one = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      return one;
    };
    const std::string_view one = part(a);
    const std::string_view other = part(b);
    const auto number = [](std::string_view text) {
      std::optional<std::uint64_t> value = 0;
      std::uint64_t read = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
      if (text.empty()) return value;
      value.reset();
      if (error == std::errc() && end == text.data() + text.size()) value = read;
      return value;
    };
    const std::optional<std::uint64_t> x = number(one);
    const std::optional<std::uint64_t> y = number(other);
    if (x && y ? *x == *y : one == other) continue;
    return (x && y ? *x < *y : one < other) ? -1 : 1;
  }
  return 0;
}

std::optional<WallTime> parse_registered_at(std::string_view text) {
  std::string whole(text);
  if (whole.size() == 10) whole += "T00:00:00";
  if (whole.size() < 19) return std::nullopt;
  std::string zone = whole.substr(19);
  // Fractions of a second are ignored.
  if (zone.starts_with(".")) {
    std::size_t end = 1;
    while (end < zone.size() && zone[end] >= '0' && zone[end] <= '9') ++end;
    if (end == 1) return std::nullopt;
    zone.erase(0, end);
  }
  std::int64_t ahead_ms = 0;
  if (!zone.empty() && zone != "Z") {
    const auto digit = [&](std::size_t at) { return zone[at] - '0'; };
    if (zone.size() != 6 || (zone[0] != '+' && zone[0] != '-') || zone[3] != ':')
      return std::nullopt;
    for (const std::size_t at : {1u, 2u, 4u, 5u})
      if (digit(at) < 0 || digit(at) > 9) return std::nullopt;
    const int minutes = (digit(1) * 10 + digit(2)) * 60 + digit(4) * 10 + digit(5);
    ahead_ms = (zone[0] == '-' ? -1 : 1) * minutes * std::int64_t{60'000};
  }
  const std::optional<WallTime> utc = base::parse_wall_time(whole.substr(0, 19) + ".000Z");
  if (!utc) return std::nullopt;
  return WallTime{utc->ms - ahead_ms};
}

}  // namespace mete::core
