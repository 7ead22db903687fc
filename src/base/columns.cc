// SPDX-License-Identifier: Apache-2.0
// See columns.h.
#include "base/columns.h"

#include <algorithm>
#include <iterator>

namespace mete::base {

namespace {

struct Range {
  std::uint32_t first;
  std::uint32_t last;
};

#define TWO(first, last)
#define NONE(first, last) Range{first, last},
// Not std::array: clang 14 would exceed its nesting limit when deducing the size.
constexpr Range kNone[] = {
#include "character_widths.def"
};
#undef TWO
#undef NONE
#define NONE(first, last)
#define TWO(first, last) Range{first, last},
constexpr Range kTwo[] = {
#include "character_widths.def"
};
#undef TWO
#undef NONE

template <class Table>
bool contains(const Table& table, std::uint32_t character) {
  const auto after =
      std::upper_bound(std::begin(table), std::end(table), character,
                       [](std::uint32_t value, const Range& range) { return value < range.first; });
  return after != std::begin(table) && character <= (after - 1)->last;
}

constexpr std::uint32_t kPlainEnd = 0x300;  // every character below takes one column

}  // namespace

Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < size) return {};
  std::uint32_t code = lead & (0xffu >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  const bool longer_than_needed = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (longer_than_needed || surrogate || code > 0x10ffff) return {};
  return {code, size};
}

std::size_t columns_of(std::uint32_t character) {
  if (character < kPlainEnd) return 1;
  if (contains(kNone, character)) return 0;
  return contains(kTwo, character) ? 2 : 1;
}

std::size_t columns_of(std::string_view text) {
  std::size_t sum = 0;
  while (!text.empty()) {
    const Character first = first_character(text);
    sum += first.size == 0 ? 1 : columns_of(first.code);
    text.remove_prefix(std::max<std::size_t>(1, first.size));
  }
  return sum;
}

Glyph first_glyph(std::string_view text) {
  if (text.empty()) return {};
  const Character first = first_character(text);
  Glyph glyph{text.substr(0, std::max<std::size_t>(1, first.size)),
              first.size == 0 ? 1 : columns_of(first.code)};
  while (glyph.bytes.size() < text.size()) {
    const Character next = first_character(text.substr(glyph.bytes.size()));
    if (next.size == 0 || columns_of(next.code) != 0) break;
    glyph.bytes = text.substr(0, glyph.bytes.size() + next.size);
  }
  return glyph;
}

std::string fit_columns(std::string_view text, std::size_t columns) {
  std::size_t used = 0;
  std::size_t kept = 0;  // bytes that leave room for "…"
  std::string_view rest = text;
  while (!rest.empty()) {
    const Glyph glyph = first_glyph(rest);
    used += glyph.columns;
    if (used > columns) return columns == 0 ? "" : std::string(text.substr(0, kept)).append("…");
    rest.remove_prefix(glyph.bytes.size());
    if (used < columns) kept = text.size() - rest.size();
  }
  return std::string(text);
}

}  // namespace mete::base
