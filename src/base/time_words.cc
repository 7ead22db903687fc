// SPDX-License-Identifier: Apache-2.0
// See time_words.h. A duration with ":" or "-" is read by its parts, any other by its unit. A
// moment is split into day, clock and zone; the parts give a time as if in UTC (as_utc), from which
// the zone, or from_local() for the local one, gives the moment. Every number is bounded by kMost,
// so nothing overflows.
#include "base/time_words.h"

#include <array>
#include <ctime>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"

namespace mete::base {

namespace {

constexpr std::int64_t kDay = 86'400;
constexpr std::int64_t kLastMoment = 253'402'300'799;  // year 9999: documents have four digits
constexpr std::uint64_t kMost = 1'000'000'000;  // for any number, so that nothing overflows later

Error not_a_duration(std::string_view text) {
  return Error::invalid(quote(text) + " is no duration")
      .with_hint("write 90s, 10m, 2h, 1d, 1:30:00 or 2-12:00:00");
}

Error not_a_moment(std::string_view text) {
  return Error::invalid(quote(text) + " is no time")
      .with_hint(
          "write 18:00, \"tomorrow 08:00\", \"2026-11-15 18:00\", 2026-11-15T18:00:00Z or "
          "now+2h");
}

std::optional<std::uint64_t> small_number(std::string_view text) {
  const Result<std::uint64_t> value = parse_uint(text);
  return value && *value <= kMost ? std::optional(*value) : std::nullopt;
}

// "12:30" and "12:30:15" after a number of days; without one, "10:30" is minutes and seconds.
std::optional<std::uint64_t> with_colons(std::string_view text) {
  const std::size_t dash = text.find('-');
  const bool days_said = dash != std::string_view::npos;
  std::uint64_t seconds = 0;
  if (days_said) {
    const std::optional<std::uint64_t> days = small_number(text.substr(0, dash));
    if (!days) return std::nullopt;
    seconds = *days * 24;
    text.remove_prefix(dash + 1);
  }
  std::vector<std::string_view> parts = split(text, ':');
  if (parts.size() > 3) return std::nullopt;
  while (parts.size() < 3) parts.insert(days_said ? parts.end() : parts.begin(), "0");
  for (std::size_t i = 0; i < 3; ++i) {
    const std::optional<std::uint64_t> part = small_number(parts[i]);
    if (!part || (i > 0 && *part > 59)) return std::nullopt;
    seconds = (i == 0 ? seconds : seconds * 60) + *part;
  }
  return seconds;
}

std::optional<std::uint64_t> with_unit(std::string_view text) {
  std::uint64_t unit = 1;
  if (!text.empty() && (text.back() < '0' || text.back() > '9')) {
    constexpr std::string_view kUnits = "smhd";
    constexpr std::array<std::uint64_t, 4> kEach{1, 60, 3600, 86400};
    const std::size_t at = kUnits.find(text.back());
    if (at == std::string_view::npos) return std::nullopt;
    unit = kEach[at];
    text.remove_suffix(1);
  }
  const std::optional<std::uint64_t> number = small_number(text);
  return number ? std::optional(*number * unit) : std::nullopt;
}

// "2 hours", "30minutes": what Slurm takes after "now+".
std::optional<std::uint64_t> with_unit_word(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::uint64_t>, 6> kWords{{{"second", 1},
                                                                              {"min", 60},
                                                                              {"minute", 60},
                                                                              {"hour", 3600},
                                                                              {"day", 86400},
                                                                              {"week", 604800}}};
  const std::size_t end = text.find_first_not_of("0123456789");
  const std::optional<std::uint64_t> number = small_number(text.substr(0, end));
  if (!number || end == std::string_view::npos) return std::nullopt;
  std::string_view word = trim(text.substr(end));
  if (word.ends_with("s")) word.remove_suffix(1);
  for (const auto& [name, seconds] : kWords)
    if (word == name) return *number * seconds;
  return std::nullopt;
}

// ---- moments ----

struct Date {
  int year = 0;
  int month = 0;  // 1..12
  int day = 0;
};

// Digits of a fixed shape ("0000-00-00").
bool has_shape(std::string_view text, std::string_view shape) {
  if (text.size() != shape.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (shape[i] == '0' ? !digit : text[i] != shape[i]) return false;
  }
  return true;
}

int number_at(std::string_view text, std::size_t at, std::size_t width) {
  int value = 0;
  for (const char digit : text.substr(at, width)) value = value * 10 + (digit - '0');
  return value;
}

// The date and time of day as if in UTC; days and months that are too large carry over.
std::int64_t as_utc(const Date& date, std::int64_t second_of_day) {
  std::tm parts{};
  parts.tm_year = date.year - 1900;
  parts.tm_mon = date.month - 1;
  parts.tm_mday = date.day;
  return static_cast<std::int64_t>(timegm(&parts)) + second_of_day;
}

std::optional<Date> parse_date(std::string_view text) {
  if (!has_shape(text, "0000-00-00")) return std::nullopt;
  const Date date{number_at(text, 0, 4), number_at(text, 5, 2), number_at(text, 8, 2)};
  const std::time_t seconds = as_utc(date, 0);
  std::tm back{};
  if (date.year < 1970 || gmtime_r(&seconds, &back) == nullptr || back.tm_mday != date.day ||
      back.tm_mon + 1 != date.month)
    return std::nullopt;
  return date;
}

// Seconds since midnight.
std::optional<std::int64_t> parse_clock(std::string_view text) {
  const std::string padded = (text.find(':') == 1 ? "0" : "") + std::string(text);
  const bool with_seconds = has_shape(padded, "00:00:00");
  if (!with_seconds && !has_shape(padded, "00:00")) return std::nullopt;
  const int hour = number_at(padded, 0, 2);
  const int minute = number_at(padded, 3, 2);
  const int second = with_seconds ? number_at(padded, 6, 2) : 0;
  if (hour > 23 || minute > 59 || second > 59) return std::nullopt;
  return hour * 3600 + minute * 60 + second;
}

std::tm local(std::int64_t seconds) {
  const std::time_t moment = seconds;
  std::tm parts{};
  (void)localtime_r(&moment, &parts);
  return parts;
}

std::int64_t offset_at(std::int64_t seconds) { return local(seconds).tm_gmtoff; }

// When local clocks show `wanted` (a time as if in UTC). A zone changes its offset at most once
// within two days, so only the offsets a day before and a day after are possible.
std::int64_t from_local(std::int64_t wanted) {
  std::int64_t before = wanted - kDay;
  std::int64_t after = wanted + kDay;
  const std::int64_t offset_before = offset_at(before);
  const std::int64_t by_before = wanted - offset_before;
  const std::int64_t by_after = wanted - offset_at(after);
  const bool first_holds = by_before + offset_at(by_before) == wanted;
  const bool second_holds = by_after + offset_at(by_after) == wanted;
  if (first_holds && second_holds) return by_before < by_after ? by_before : by_after;
  if (first_holds) return by_before;
  if (second_holds) return by_after;
  // A skipped time: the first moment of the new offset.
  while (after - before > 1) {
    const std::int64_t middle = before + (after - before) / 2;
    (offset_at(middle) == offset_before ? before : after) = middle;
  }
  return after;
}

Date today(std::int64_t now) {
  const std::tm parts = local(now);
  return {parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday};
}

std::optional<Date> parse_day(std::string_view text, std::int64_t now) {
  if (text == "today") return today(now);
  if (text != "tomorrow") return parse_date(text);
  Date date = today(now);
  ++date.day;
  return date;
}

// Removes "Z" or "+01:00" from the end of `text`: seconds east of Greenwich.
std::optional<std::int64_t> take_zone(std::string_view& text) {
  if (text.ends_with("z")) {
    text.remove_suffix(1);
    return 0;
  }
  constexpr std::size_t kSize = 6;
  if (text.size() <= kSize) return std::nullopt;
  const std::string_view zone = text.substr(text.size() - kSize);
  if (!has_shape(zone, "+00:00") && !has_shape(zone, "-00:00")) return std::nullopt;
  if (number_at(zone, 1, 2) > 14 || number_at(zone, 4, 2) > 59) return std::nullopt;
  text.remove_suffix(kSize);
  const int seconds = number_at(zone, 1, 2) * 3600 + number_at(zone, 4, 2) * 60;
  return zone.front() == '-' ? -seconds : seconds;
}

std::optional<std::int64_t> moment_of(std::string_view text, std::int64_t now) {
  if (text == "now") return now;
  if (text.starts_with("now+")) {
    text.remove_prefix(4);
    if (const std::optional<std::uint64_t> span = with_unit_word(text))
      return now + static_cast<std::int64_t>(*span);
    const Result<std::uint64_t> span = parse_duration(text);
    return span ? std::optional(now + static_cast<std::int64_t>(*span)) : std::nullopt;
  }
  if (const std::optional<std::int64_t> clock = parse_clock(text)) {
    Date date = today(now);
    const std::int64_t moment = from_local(as_utc(date, *clock));
    if (moment >= now) return moment;
    ++date.day;
    return from_local(as_utc(date, *clock));
  }
  if (const std::optional<Date> date = parse_date(text)) return from_local(as_utc(*date, 0));
  std::size_t gap = text.find_first_of(" ");
  if (gap == std::string_view::npos) gap = text.find('t', 1);  // not the t of "today"
  if (gap == std::string_view::npos) return std::nullopt;
  const std::string_view day = text.substr(0, gap);
  std::string_view rest = trim(text.substr(gap + 1));
  const std::optional<std::int64_t> zone = take_zone(rest);
  const std::optional<Date> date = zone ? parse_date(day) : parse_day(day, now);
  const std::optional<std::int64_t> clock = parse_clock(rest);
  if (!date || !clock) return std::nullopt;
  const std::int64_t wanted = as_utc(*date, *clock);
  return zone ? wanted - *zone : from_local(wanted);
}

}  // namespace

Result<std::uint64_t> parse_duration(std::string_view text) {
  const bool clock = text.find_first_of(":-") != std::string_view::npos;
  const std::optional<std::uint64_t> seconds = clock ? with_colons(text) : with_unit(text);
  if (!seconds || *seconds == 0) return not_a_duration(text);
  return *seconds;
}

Result<WallTime> parse_moment(std::string_view text, WallTime now) {
  tzset();  // localtime_r alone need not read TZ
  const std::int64_t second = now.ms >= 0 ? now.ms / 1000 : (now.ms - 999) / 1000;
  const std::optional<std::int64_t> moment = moment_of(to_lower(trim(text)), second);
  if (!moment || *moment > kLastMoment) return not_a_moment(text);
  return WallTime{*moment * 1000};
}

}  // namespace mete::base
