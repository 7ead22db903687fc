// SPDX-License-Identifier: Apache-2.0
// See brief.h.
#include "base/brief.h"

#include <algorithm>

namespace mete::base {

std::string tenths_of_gib(Bytes bytes) {
  const std::uint64_t tenths = bytes.checked_scale(10, Bytes::from_gib(1).count())->count();
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
}

std::string brief(Bytes bytes) {
  if (bytes >= Bytes::from_gib(1)) return tenths_of_gib(bytes) + "G";
  if (bytes >= Bytes::from_mib(1)) return std::to_string(bytes.count() >> 20) + "M";
  return bytes.is_zero() ? "0" : std::to_string(bytes.count() >> 10) + "K";
}

std::string brief_duration(std::int64_t seconds) {
  const std::int64_t known = std::max<std::int64_t>(0, seconds);
  if (known < 60) return std::to_string(known) + "s";
  if (known < 3600) return std::to_string(known / 60) + "m";
  if (known < 86400) return std::to_string(known / 3600) + "h";
  return std::to_string(known / 86400) + "d";
}

std::string brief_duration(WallTime from, WallTime to) {
  return brief_duration((to.ms - from.ms) / 1000);
}

std::string clock_duration(std::int64_t seconds) {
  const std::int64_t known = std::max<std::int64_t>(0, seconds);
  const auto two = [](std::int64_t value) {
    return (value < 10 ? ":0" : ":") + std::to_string(value);
  };
  if (known < 3600) return std::to_string(known / 60) + two(known % 60);
  if (known < 86400) return std::to_string(known / 3600) + two(known % 3600 / 60) + two(known % 60);
  return std::to_string(known / 86400) + "d " + std::to_string(known % 86400 / 3600) +
         two(known % 3600 / 60);
}

std::string number_ranges(const std::vector<std::uint32_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text.append(text.empty() ? "" : ",").append(std::to_string(numbers[i]));
    if (last > i) text.append(last == i + 1 ? "," : "-").append(std::to_string(numbers[last]));
    i = last + 1;
  }
  return text;
}

}  // namespace mete::base
