// SPDX-License-Identifier: Apache-2.0
// See moment.h.
#include "base/moment.h"

#include <array>
#include <ctime>
#include <optional>
#include <utility>

#include "base/time_words.h"

namespace mete::base {

namespace {

std::tm local(WallTime time) {
  const std::time_t seconds = time.ms >= 0 ? time.ms / 1000 : (time.ms - 999) / 1000;
  std::tm parts{};
  (void)localtime_r(&seconds, &parts);
  return parts;
}

std::string two_digits(int value) { return (value < 10 ? "0" : "") + std::to_string(value); }

std::string day_before(const std::tm& then, const std::tm& today) {
  static constexpr std::array kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  if (then.tm_year == today.tm_year && then.tm_yday == today.tm_yday) return "";
  if (then.tm_year == today.tm_year)
    return std::string(kMonths.at(static_cast<std::size_t>(then.tm_mon))) + " " +
           std::to_string(then.tm_mday) + " ";
  return std::to_string(then.tm_year + 1900) + "-" + two_digits(then.tm_mon + 1) + "-" +
         two_digits(then.tm_mday) + " ";
}

}  // namespace

std::string moment(WallTime time, WallTime now) {
  const std::tm then = local(time);
  return day_before(then, local(now)) + two_digits(then.tm_hour) + ":" + two_digits(then.tm_min);
}

std::string moment_to_the_second(WallTime time, WallTime now) {
  return moment(time, now) + ":" + two_digits(local(time).tm_sec);
}

std::string distance(WallTime time, WallTime now) {
  const std::int64_t seconds = (time.ms - now.ms) / 1000;
  if (seconds == 0) return "now";
  return seconds < 0 ? base::duration_in_words(-seconds) + " ago"
                     : "in " + base::duration_in_words(seconds);
}

Result<WallTime> parse_since(std::string_view text, WallTime now) {
  constexpr std::int64_t kDayMs = 86'400'000;
  // "10:30" is a time of day here, not ten and a half minutes.
  if (text.find(':') == std::string_view::npos)
    if (const Result<std::uint64_t> seconds = base::parse_duration(text))
      return WallTime{now.ms - static_cast<std::int64_t>(*seconds) * 1000};
  Result<WallTime> moment = base::parse_moment(text, now);
  if (!moment)
    return std::move(moment).error().with_hint(
        "write 10m (ago), 14:05, \"2026-11-15 08:00\" or 2026-11-15T08:00:00Z");
  if (*moment <= now) return moment;
  // A clock alone is the next time it shows that: seen from yesterday that is the last one.
  return base::parse_moment(text, WallTime{now.ms - kDayMs});
}

}  // namespace mete::base
