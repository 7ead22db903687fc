// SPDX-License-Identifier: Apache-2.0
// How wide text is on a terminal: an ideograph takes two columns, a combining mark none.
// Independent of the locale. Text must be as base::printable() gives it; a byte that is not UTF-8
// counts as one column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mete::base {

// The character at the beginning of a non-empty text; size 0: its first byte begins none.
struct Character {
  std::uint32_t code = 0;
  std::size_t size = 0;  // in bytes of UTF-8
};
Character first_character(std::string_view text);

// 0, 1 or 2.
std::size_t columns_of(std::uint32_t character);
std::size_t columns_of(std::string_view text);

// One cell of a screen: a character with its combining marks. "": the end.
struct Glyph {
  std::string_view bytes;
  std::size_t columns = 0;
};
Glyph first_glyph(std::string_view text);

// Cut to this many columns, with "…" where something is missing; a wide character is never halved.
std::string fit_columns(std::string_view text, std::size_t columns);

}  // namespace mete::base
