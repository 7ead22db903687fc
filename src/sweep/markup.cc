// SPDX-License-Identifier: Apache-2.0
// See markup.h.
#include "sweep/markup.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/columns.h"
#include "base/text.h"
#include "wire/json_text.h"

namespace mete::sweep {

namespace {

std::string shell_word(std::string_view word, bool first) {
  // {name} stays as it is; {a,b} and {1..3} would be expanded, { alone begins a group.
  const bool braces = word.size() > 2 && word.find(',') == std::string_view::npos &&
                      word.find("..") == std::string_view::npos;
  const auto plain = [first, braces](char c) {
    return (braces && (c == '{' || c == '}')) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') ||
           std::string_view("_@%+:,./-").find(c) != std::string_view::npos || (c == '=' && !first);
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return std::string(word);
  const bool odd = base::printable(word) != word;
  std::string out = odd ? "$'" : "'";
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (odd && (byte < 0x20 || byte >= 0x7f))
      out.append("\\x").append(base::to_hex({&c, 1}));
    else if (odd && (c == '\'' || c == '\\'))
      (out += '\\') += c;
    else if (c == '\'')
      out += "'\\''";
    else
      out += c;
  }
  return out + "'";
}

}  // namespace

std::string html_text(std::string_view text) {
  std::string out;
  const std::string safe = base::printable(text);
  out.reserve(safe.size() + 8);
  for (const char c : safe) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\'')
      out += "&#39;";
    else
      out += c;
  }
  return out;
}

std::string script_text(std::string_view text) {
  std::string json;
  wire::append_json_string(json, base::printable(text));
  // "</script>" and "<!--" end or change the element wherever they stand.
  for (std::size_t at = json.find('<'); at != std::string::npos; at = json.find('<', at))
    json.replace(at, 1, "\\u003c");
  return json;
}

std::string clipped(std::string_view text, std::size_t columns) {
  // What is cut off need not be read: four bytes are the longest character, \xNN for each byte.
  const std::string_view head = text.substr(0, std::min(text.size(), columns * 4 + 4));
  const std::string safe = base::printable(head);
  if (head.size() == text.size()) return base::fit_columns(safe, columns);
  return base::fit_columns(safe + std::string(columns + 1, ' '), columns);
}

std::string number_text(double value, int digits) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  if (value == 0) return "0";
  char text[64];
  const double size = std::abs(value);
  const auto [end, error] = std::to_chars(text, text + sizeof text, value,
                                          std::chars_format::general, std::clamp(digits, 1, 17));
  std::string out(text, error == std::errc() ? end : text);
  const std::size_t exponent = out.find('e');
  if (exponent == std::string::npos) return out;
  if (size >= 1 && size < 1e7) {  // 120000 is shorter to read than 1.2e+05
    const auto [last, wrong] =
        std::to_chars(text, text + sizeof text, std::round(value), std::chars_format::fixed, 0);
    return {text, wrong == std::errc() ? last : text};
  }
  // "1e-07" is "1e-7", "1e+10" is "1e10".
  std::string power = out.substr(exponent + 1);
  const bool negative = power.starts_with('-');
  power.erase(0, std::min(power.find_first_not_of("+-0"), power.size()));
  return out.substr(0, exponent) + "e" + (negative ? "-" : "") + power;
}

std::string count_text(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t i = digits.size(); i > 3;) digits.insert(i -= 3, ",");
  return digits;
}

std::string moment_text(WallTime time) {
  std::string text = to_string(time);
  if (text.size() < 19) return text;
  text.resize(19);
  text[10] = ' ';
  return text + " UTC";
}

void append_place(std::string& out, double value) {
  if (std::isnan(value)) value = 0;
  auto tenths = static_cast<long>(std::lround(std::clamp(value, -1e5, 1e5) * 10));
  if (tenths < 0) {
    out += '-';
    tenths = -tenths;
  }
  char text[24];
  out.append(text, std::to_chars(text, text + sizeof text, tenths / 10).ptr);
  if (tenths % 10 != 0) (out += '.') += static_cast<char>('0' + tenths % 10);
}

std::string place_text(double value) {
  std::string out;
  append_place(out, value);
  return out;
}

std::string shell_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    line += shell_word(word, line.empty());
  }
  return line;
}

}  // namespace mete::sweep
