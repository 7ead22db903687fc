// SPDX-License-Identifier: Apache-2.0
#include "base/time.h"

#include <ctime>

namespace mete::base {

namespace {

void append_padded(std::string& text, std::int64_t value, std::size_t width) {
  const std::string digits = std::to_string(value);
  text.append(digits.size() < width ? width - digits.size() : 0, '0');
  text.append(digits);
}

}  // namespace

std::string to_string(WallTime time) {
  std::int64_t seconds = time.ms / 1000;
  std::int64_t rest = time.ms % 1000;
  if (rest < 0) {
    rest += 1000;
    --seconds;
  }
  const std::time_t moment = seconds;
  std::tm parts{};
  (void)gmtime_r(&moment, &parts);
  std::string text;
  append_padded(text, parts.tm_year + 1900, 4);
  append_padded(text += '-', parts.tm_mon + 1, 2);
  append_padded(text += '-', parts.tm_mday, 2);
  append_padded(text += 'T', parts.tm_hour, 2);
  append_padded(text += ':', parts.tm_min, 2);
  append_padded(text += ':', parts.tm_sec, 2);
  append_padded(text += '.', rest, 3);
  return text += 'Z';
}

std::optional<WallTime> parse_wall_time(std::string_view text) {
  constexpr std::string_view kShape = "0000-00-00T00:00:00.000Z";
  if (text.size() != kShape.size()) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kShape[i] == '0' ? !digit : text[i] != kShape[i]) return std::nullopt;
  }
  const auto number = [&](std::size_t at, std::size_t width) {
    int value = 0;
    for (std::size_t i = at; i < at + width; ++i) value = value * 10 + (text[i] - '0');
    return value;
  };
  std::tm parts{};
  parts.tm_year = number(0, 4) - 1900;
  parts.tm_mon = number(5, 2) - 1;
  parts.tm_mday = number(8, 2);
  parts.tm_hour = number(11, 2);
  parts.tm_min = number(14, 2);
  parts.tm_sec = number(17, 2);
  const WallTime time{static_cast<std::int64_t>(timegm(&parts)) * 1000 + number(20, 3)};
  // Refuses February 31st, which timegm would turn into March 3rd.
  if (to_string(time) != text) return std::nullopt;
  return time;
}

std::string duration_in_words(std::int64_t seconds) {
  const auto two = [](std::int64_t big, const char* big_unit, std::int64_t small,
                      const char* small_unit) {
    std::string text = std::to_string(big).append(" ").append(big_unit);
    if (small > 0) text.append(" ").append(std::to_string(small)).append(" ").append(small_unit);
    return text;
  };
  if (seconds < 60) return std::to_string(seconds < 0 ? 0 : seconds).append(" s");
  if (seconds < 3600) return two(seconds / 60, "min", seconds % 60, "s");
  if (seconds < 86400) return two(seconds / 3600, "h", seconds % 3600 / 60, "min");
  return two(seconds / 86400, "d", seconds % 86400 / 3600, "h");
}

}  // namespace mete::base
