// SPDX-License-Identifier: Apache-2.0
// Small text helpers: exact numbers in, readable text out. ASCII only and independent of the
// locale, so that a request means the same everywhere. No helper allocates more than its input plus
// a constant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.h"

namespace mete::base {

std::string to_lower(std::string_view text);
std::string_view trim(std::string_view text);

// "a,b," gives {"a", "b", ""}; "" gives {""}: empty parts are kept.
std::vector<std::string_view> split(std::string_view text, char separator);
// The parts of a temporary would outlive it.
template <typename Text, typename = std::enable_if_t<std::is_same_v<Text, std::string>>>
std::vector<std::string_view> split(Text&& text, char separator) = delete;
std::string join(const std::vector<std::string>& parts, std::string_view separator);

// The text in single quotes with control characters and invalid bytes as \xNN, cut after 80
// characters: for error messages, where an argument must not move the terminal's cursor.
std::string quote(std::string_view text);

// For text of other users on a terminal. ASCII and UTF-8 are unchanged. Escaped as \xNN, byte by
// byte: control characters (including U+0080 to U+009F, which terminals obey), marks that change
// the direction of writing and so disguise a name, line separators, and bytes that are not UTF-8.
std::string printable(std::string_view text);

// What is not UTF-8 becomes U+FFFD: the text as JSON and YAML documents show it.
std::string as_utf8(std::string_view text);

// printable() for a JSON document, whose meaning does not change: such a character, which can be
// only inside a string, is written \uNNNN; what is not UTF-8 becomes \ufffd.
std::string printable_json(std::string json);

// Two lower-case digits for each byte; and back, nullopt if the text is not hexadecimal.
std::string to_hex(std::string_view bytes);
std::optional<std::string> from_hex(std::string_view hex);
// For the bytes of a value in memory. take_hex() leaves the value unchanged if the text has another
// size.
template <class Value>
std::string hex_of(const Value& value) {
  static_assert(std::is_trivially_copyable_v<Value>);
  return to_hex({reinterpret_cast<const char*>(&value), sizeof value});
}
template <class Value>
bool take_hex(std::string_view hex, Value& value) {
  static_assert(std::is_trivially_copyable_v<Value>);
  const std::optional<std::string> bytes = from_hex(hex);
  if (!bytes || bytes->size() != sizeof value) return false;
  std::memcpy(&value, bytes->data(), sizeof value);
  return true;
}

// Decimal digits only: no sign, no space, no empty text; an overflow has its own error.
Result<std::uint64_t> parse_uint(std::string_view text);

// A number with up to three decimals, exactly: "0.4" is {0, 400}, "2" is {2, 0}, ".5" is {0, 500}.
struct Milli {
  std::uint64_t whole = 0;
  std::uint32_t thousandths = 0;  // 0..999
  bool operator==(const Milli&) const = default;
};
Result<Milli> parse_milli(std::string_view text);

// Insertions, deletions, replacements and swaps of neighbours that turn one text into the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate nearest to a mistyped word, or "" if none is near (more than a third of it
// differs). Among equals one with the same beginning (gpu for gpus) wins, then the first.
std::string_view nearest(std::string_view word, const std::vector<std::string_view>& candidates);

}  // namespace mete::base
