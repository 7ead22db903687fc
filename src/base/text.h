// SPDX-License-Identifier: Apache-2.0
// Small text helpers: exact numbers in, readable text out. ASCII only and independent of the
// locale, so that a request means the same everywhere. None of these allocates more than its input
// plus a constant.
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

// "a,b," gives {"a", "b", ""}; "" gives {""}: what was written between separators, nothing dropped.
std::vector<std::string_view> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator);

// The text in single quotes with control characters and invalid bytes as \xNN, cut after 80
// characters: for error messages, where an argument must not be able to move the reader's cursor.
std::string quote(std::string_view text);

// For text of others that people read on a terminal. Stays as it is: ASCII and UTF-8. As \xNN, byte
// by byte: control characters (also those of U+0080 to U+009F, which terminals obey), marks that
// turn the direction of writing and so make a name look like another, separators of lines, and what
// is no UTF-8.
std::string printable(std::string_view text);

// The same for a JSON document, which means what it meant before: such a character is written
// \uNNNN. In JSON they stand inside of texts only; what is no UTF-8 becomes \ufffd.
std::string printable_json(std::string json);

// Two digits for each byte, lower case; and back, nullopt if it is not of that form.
std::string to_hex(std::string_view bytes);
std::optional<std::string> from_hex(std::string_view hex);
// For a value as it lies in memory. take_hex() leaves it alone if the text is not of its size.
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

// Decimal digits only: no sign, no space, no empty text; an overflow is an error of its own.
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

// The candidate nearest to a mistyped word, or "" if none is near enough to be meant (more than a
// third of it differs). Of equals one that begins alike (gpu for gpus) wins, then the first.
std::string_view nearest(std::string_view word, const std::vector<std::string_view>& candidates);

}  // namespace mete::base
