// SPDX-License-Identifier: Apache-2.0
// See text.h. No locale, no float, no exception. printable() and printable_json() decode UTF-8
// character by character and share one rule for what is escaped. parse_uint() and parse_milli() are
// exact, with overflow checked. nearest() ranks candidates by edit distance, where a swap of
// neighbours counts as one edit.
#include "base/text.h"

#include <algorithm>

#include "base/columns.h"

namespace mete::base {

namespace {

constexpr std::string_view kHex = "0123456789abcdef";

void append_hex(std::string& out, char c) { out.append("\\x").append(to_hex({&c, 1})); }

// No escaped character is beyond U+FFFF, so one escape is enough.
void append_unicode(std::string& out, std::uint32_t code) {
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kHex[code >> shift & 15];
}

bool is_shown(std::uint32_t code) {
  const auto in = [code](std::uint32_t first, std::uint32_t last) {
    return code >= first && code <= last;
  };
  const bool control = code < 0x20 || in(0x7f, 0x9f);
  const bool direction =
      code == 0x61c || in(0x200e, 0x200f) || in(0x202a, 0x202e) || in(0x2066, 0x2069);
  const bool line = in(0x2028, 0x2029);
  return !control && !direction && !line;
}

}  // namespace

std::string to_lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  for (;;) {
    const std::size_t end = text.find(separator, begin);
    if (end == std::string_view::npos) break;
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string joined;
  for (const std::string& part : parts) {
    if (&part != &parts.front()) joined += separator;
    joined += part;
  }
  return joined;
}

std::string quote(std::string_view text) {
  constexpr std::size_t kMax = 80;
  std::string out = "'";
  for (const char c : text.substr(0, kMax)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f)
      out += c;
    else
      append_hex(out, c);
  }
  if (text.size() > kMax) out += "...";
  return out + "'";
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character first = first_character(text);
    const std::string_view bytes = text.substr(0, std::max<std::size_t>(1, first.size));
    if (first.size != 0 && is_shown(first.code))
      out += bytes;
    else
      for (const char c : bytes) append_hex(out, c);
    text.remove_prefix(bytes.size());
  }
  return out;
}

std::string as_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t size = first_character(text).size;
    if (size == 0)
      out += "\xef\xbf\xbd";
    else
      out += text.substr(0, size);
    text.remove_prefix(std::max<std::size_t>(1, size));
  }
  return out;
}

std::string printable_json(std::string json) {
  const auto plain = [](char c) { return static_cast<unsigned char>(c) < 0x7f; };
  auto at = std::find_if_not(json.begin(), json.end(), plain);
  if (at == json.end()) return json;  // nearly always
  std::string out(json.begin(), at);
  std::string_view rest(json);
  rest.remove_prefix(out.size());
  while (!rest.empty()) {
    const Character first = first_character(rest);
    const std::string_view bytes = rest.substr(0, std::max<std::size_t>(1, first.size));
    if (first.size == 0)
      out += "\\ufffd";
    else if (first.code < 0x7f || is_shown(first.code))
      out += bytes;
    else
      append_unicode(out, first.code);
    rest.remove_prefix(bytes.size());
  }
  return out;
}

std::string to_hex(std::string_view bytes) {
  std::string hex;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    (hex += kHex[byte >> 4]) += kHex[byte & 15];
  }
  return hex;
}

std::optional<std::string> from_hex(std::string_view hex) {
  if (hex.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    const std::size_t high = kHex.find(hex[i]), low = kHex.find(hex[i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    bytes += static_cast<char>(high << 4 | low);
  }
  return bytes;
}

Result<std::uint64_t> parse_uint(std::string_view text) {
  if (text.empty()) return Error::invalid("a number is missing");
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return Error::invalid(quote(text) + " is not a number");
    if (__builtin_mul_overflow(value, std::uint64_t{10}, &value) ||
        __builtin_add_overflow(value, static_cast<std::uint64_t>(c - '0'), &value))
      return Error::invalid(quote(text) + " is too large a number");
  }
  return value;
}

Result<Milli> parse_milli(std::string_view text) {
  const std::size_t dot = text.find('.');
  const std::string_view whole = text.substr(0, dot);
  Milli milli;
  if (dot != std::string_view::npos) {
    const std::string_view decimals = text.substr(dot + 1);
    if (decimals.empty()) return Error::invalid("decimals are missing after the point");
    if (decimals.size() > 3) return Error::invalid("more than three decimals");
    const Result<std::uint64_t> value = parse_uint(decimals);
    if (!value) return value.error();
    milli.thousandths = static_cast<std::uint32_t>(*value);
    for (std::size_t i = decimals.size(); i < 3; ++i) milli.thousandths *= 10;
    if (whole.empty()) return milli;
  }
  const Result<std::uint64_t> value = parse_uint(whole);
  if (!value) return value.error();
  milli.whole = *value;
  return milli;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the usual table: the oldest is for swapped neighbours.
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> previous(b.size() + 1);
  std::vector<std::size_t> current(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) current[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, previous);
    std::swap(previous, current);
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        current[j] = std::min(current[j], before[j - 2] + 1);
    }
  }
  return current[b.size()];
}

std::string_view nearest(std::string_view word, const std::vector<std::string_view>& candidates) {
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  const auto begins_alike = [word](std::string_view other) {
    return word.starts_with(other) || other.starts_with(word);
  };
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    const bool better = !best.empty() && distance == best_distance && begins_alike(candidate) &&
                        !begins_alike(best);
    if (distance < best_distance || better) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace mete::base
