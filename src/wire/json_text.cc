// SPDX-License-Identifier: Apache-2.0
// See json_text.h.
#include "wire/json_text.h"

#include <array>
#include <cstring>

namespace mete::wire {

namespace {

constexpr std::string_view kHex = "0123456789abcdef";

// Bytes that stand for themselves inside quotes, whatever comes before and after them.
constexpr std::array<bool, 256> kPlain = [] {
  std::array<bool, 256> plain{};
  for (std::size_t i = 0x20; i < 0x80; ++i) plain[i] = i != '"' && i != '\\';
  return plain;
}();

// Whether all of the eight bytes at `text` are plain. Each of the four terms has the highest bit of
// a byte set where that byte is none of ASCII, below 0x20, a quote, a backslash; a borrow from the
// byte below can set one too many, never one too few.
bool eight_plain(const char* text) {
  constexpr std::uint64_t kOnes = 0x0101010101010101, kHigh = kOnes * 0x80;
  std::uint64_t word = 0;
  std::memcpy(&word, text, sizeof word);
  const auto below = [](std::uint64_t x, std::uint64_t n) { return (x - kOnes * n) & ~x; };
  const std::uint64_t odd =
      word | below(word, 0x20) | below(word ^ kOnes * '"', 1) | below(word ^ kOnes * '\\', 1);
  return (odd & kHigh) == 0;
}

unsigned char byte(std::string_view text, std::size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

bool continues(unsigned char byte) { return (byte & 0xc0) == 0x80; }

// How many bytes the character at `at` has, which is none of ASCII; 0: what stands there is no
// UTF-8 (also a surrogate, one in more bytes than it needs, one beyond U+10FFFF).
std::size_t sequence(std::string_view text, std::size_t at) {
  const unsigned char first = byte(text, at), second = byte(text, at + 1);
  if (first < 0xc2 || first > 0xf4 || !continues(second)) return 0;
  if (first < 0xe0) return 2;
  if (!continues(byte(text, at + 2))) return 0;
  if (first < 0xf0) {
    const bool fine = !(first == 0xe0 && second < 0xa0) && !(first == 0xed && second >= 0xa0);
    return fine ? 3 : 0;
  }
  const bool fine = !(first == 0xf0 && second < 0x90) && !(first == 0xf4 && second >= 0x90);
  return fine && continues(byte(text, at + 3)) ? 4 : 0;
}

void append_escaped(std::string& out, unsigned char ascii) {
  out += '\\';
  switch (ascii) {
    case '"':
    case '\\':
      out += static_cast<char>(ascii);
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
      ((out += "u00") += kHex[ascii >> 4]) += kHex[ascii & 15];
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
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = byte(text, at) < 0x80 ? 1 : sequence(text, at);
    if (bytes == 0) return false;
    at += bytes;
  }
  return true;
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  std::size_t copied = 0, at = 0;
  for (;;) {
    at += plain_prefix(text.substr(at));
    if (at == text.size()) break;
    const unsigned char here = byte(text, at);
    const std::size_t bytes = here < 0x80 ? 0 : sequence(text, at);
    if (bytes != 0) {
      at += bytes;
      continue;
    }
    out.append(text, copied, at - copied);
    if (here < 0x80)
      append_escaped(out, here);
    else
      out += "\xef\xbf\xbd";
    copied = ++at;
  }
  out.append(text, copied);
  out += '"';
}

// Days since 1970 to year, month and day: the era is 400 years, the year begins in March, so that
// the day that is not always there is the last one.
void append_time(std::string& out, WallTime time) {
  constexpr std::int64_t kDay = 86'400'000;
  constexpr std::int64_t kLast = 253'402'300'799'999;  // of the year 9999
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
  key("hex");
  separate();
  out_ += '"';
  for (const char c : text) {
    const auto bits = static_cast<unsigned char>(c);
    (out_ += kHex[bits >> 4]) += kHex[bits & 15];
  }
  out_ += '"';
  close();
}

}  // namespace mete::wire
