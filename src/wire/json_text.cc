// SPDX-License-Identifier: Apache-2.0
// See json_text.h.
#include "wire/json_text.h"

#include <array>
#include <cstring>

#include "base/columns.h"
#include "base/text.h"

namespace mete::wire {

namespace {

// Bytes that need no escape, whatever is before and after them.
constexpr std::array<bool, 256> kPlain = [] {
  std::array<bool, 256> plain{};
  for (std::size_t i = 0x20; i < 0x80; ++i) plain[i] = i != '"' && i != '\\';
  return plain;
}();

// Whether all eight bytes at `text` are plain. Each of the four terms sets the highest bit of a
// byte that is not ASCII, below 0x20, a quote, a backslash; a borrow from the byte below can set
// one bit too many, never one too few.
bool eight_plain(const char* text) {
  constexpr std::uint64_t kOnes = 0x0101010101010101, kHigh = kOnes * 0x80;
  std::uint64_t word = 0;
  std::memcpy(&word, text, sizeof word);
  const auto below = [](std::uint64_t x, std::uint64_t n) { return (x - kOnes * n) & ~x; };
  const std::uint64_t odd =
      word | below(word, 0x20) | below(word ^ kOnes * '"', 1) | below(word ^ kOnes * '\\', 1);
  return (odd & kHigh) == 0;
}

void append_escaped(std::string& out, char ascii) {
  out += '\\';
  switch (ascii) {
    case '"':
    case '\\':
      out += ascii;
      return;
    case '\b':
      out += 'b';
      return;
    case '\f':
      out += 'f';
      return;
    case '\n':
      out += 'n';
      return;
    case '\r':
      out += 'r';
      return;
    case '\t':
      out += 't';
      return;
    default:
      out.append("u00").append(base::to_hex({&ascii, 1}));
  }
}

void append_digits(std::string& out, unsigned value, int width) {
  char digits[4];
  for (int i = width; i-- > 0; value /= 10) digits[i] = static_cast<char>('0' + value % 10);
  out.append(digits, static_cast<std::size_t>(width));
}

}  // namespace

std::size_t plain_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at + 8 <= text.size() && eight_plain(text.data() + at)) at += 8;
  while (at < text.size() && kPlain[static_cast<unsigned char>(text[at])]) ++at;
  return at;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t bytes = base::first_character(text).size;
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  std::size_t copied = 0, at = 0;
  for (;;) {
    at += plain_prefix(text.substr(at));
    if (at == text.size()) break;
    const base::Character here = base::first_character(text.substr(at));
    if (here.size > 1) {
      at += here.size;
      continue;
    }
    out.append(text, copied, at - copied);
    if (here.size == 1)
      append_escaped(out, text[at]);
    else
      out += "\xef\xbf\xbd";
    copied = ++at;
  }
  out.append(text, copied);
  out += '"';
}

// Days since 1970 to year, month and day: an era is 400 years, and the year begins in March, so
// that the leap day is the last one.
void append_time(std::string& out, WallTime time) {
  constexpr std::int64_t kDay = 86'400'000;
  constexpr std::int64_t kLast = 253'402'300'799'999;  // year 9999
  if (time.ms < 0 || time.ms > kLast) {
    out += to_string(time);
    return;
  }
  const auto day = static_cast<unsigned>(time.ms / kDay);
  const auto ms = static_cast<unsigned>(time.ms % kDay);
  const unsigned days = day + 719'468;  // since 0000-03-01
  const unsigned era = days / 146'097, of_era = days % 146'097;
  const unsigned year = (of_era - of_era / 1'460 + of_era / 36'524 - of_era / 146'096) / 365;
  const unsigned of_year = of_era - (365 * year + year / 4 - year / 100);
  const unsigned from_march = (5 * of_year + 2) / 153;
  const unsigned month = from_march < 10 ? from_march + 3 : from_march - 9;
  append_digits(out, era * 400 + year + (month <= 2 ? 1 : 0), 4);
  append_digits(out += '-', month, 2);
  append_digits(out += '-', of_year - (153 * from_march + 2) / 5 + 1, 2);
  append_digits(out += 'T', ms / 3'600'000, 2);
  append_digits(out += ':', ms / 60'000 % 60, 2);
  append_digits(out += ':', ms / 1'000 % 60, 2);
  append_digits(out += '.', ms % 1'000, 3);
  out += 'Z';
}

void JsonText::exact(std::string_view text) {
  if (is_utf8(text)) return value(text);
  open();
  put("hex", base::to_hex(text));
  close();
}

}  // namespace mete::wire
