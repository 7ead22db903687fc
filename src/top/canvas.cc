// SPDX-License-Identifier: Apache-2.0
// See canvas.h.
#include "top/canvas.h"

#include <algorithm>

#include "base/columns.h"
#include "base/text.h"

namespace mete::top {

namespace {

constexpr std::size_t kMaxMarks = 4;  // on one character; more are dropped

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// Characters that terminals disagree about: a joined pair may be one picture or two, a selector may
// widen.
bool is_doubtful(std::uint32_t code) {
  return code == 0x200b || code == 0x200c || code == 0x200d || code == 0x2060 || code == 0xfeff ||
         (code >= 0xfe00 && code <= 0xfe0f) || (code >= 0xe0000 && code <= 0xe0fff) ||
         (code >= 0x1f3fb && code <= 0x1f3ff);
}

// A glyph as it is drawn: without doubtful marks, and with few of the others.
std::string shown(std::string_view glyph) {
  if (is_ascii(glyph)) return std::string(glyph);
  std::string out;
  for (std::size_t marks = 0; !glyph.empty() && marks <= kMaxMarks;) {
    const base::Character first = base::first_character(glyph);
    const std::string_view bytes = glyph.substr(0, std::max<std::size_t>(1, first.size));
    if (!is_doubtful(first.code)) {
      out += bytes;
      ++marks;
    }
    glyph.remove_prefix(bytes.size());
  }
  return out;
}

}  // namespace

Canvas::Canvas(Size size) : size_(size), cells_(size.columns * size.rows) {}

Cell* Canvas::cell(At where) {
  if (where.row >= size_.rows || where.column >= size_.columns) return nullptr;
  return &cells_[where.row * size_.columns + where.column];
}

void Canvas::place(At where, std::string glyph, Style style) {
  Cell& here = *cell(where);
  // The other half of a wide character that is overwritten becomes blank.
  if (here.glyph.empty() && where.column > 0) cell({where.row, where.column - 1})->glyph = " ";
  if (Cell* next = cell({where.row, where.column + 1}); next != nullptr && next->glyph.empty())
    next->glyph = " ";
  here = {std::move(glyph), style};
}

void Canvas::set(At where, std::string_view glyph, Style style) {
  if (cell(where) != nullptr) place(where, std::string(glyph), style);
}

void Canvas::fill(At where, std::size_t columns, Style style) {
  for (std::size_t i = 0; i < columns; ++i) set({where.row, where.column + i}, " ", style);
}

void Canvas::invert_row(std::size_t row) {
  for (std::size_t column = 0; column < size_.columns; ++column)
    if (Cell* place = cell({row, column}); place != nullptr)
      place->style = {Colour::kText, place->style.bold, true};
}

void Canvas::copy_row(std::size_t row, const Canvas& from, std::size_t from_row) {
  for (std::size_t column = 0; column < size_.columns; ++column)
    if (Cell* place = cell({row, column}); place != nullptr) *place = from.at({from_row, column});
}

std::size_t Canvas::put(At where, std::string_view text, Style style, std::size_t most) {
  if (where.row >= size_.rows || where.column >= size_.columns) return 0;
  const std::size_t room = std::min(most, size_.columns - where.column);
  const std::string cut = base::fit_columns(base::printable(text), room);
  std::size_t used = 0;
  for (std::string_view rest = cut; !rest.empty();) {
    const base::Glyph glyph = base::first_glyph(rest);
    rest.remove_prefix(glyph.bytes.size());
    std::string drawn = shown(glyph.bytes);
    if (glyph.columns == 0 || drawn.empty()) continue;  // a mark without a character
    place({where.row, where.column + used}, std::move(drawn), style);
    if (glyph.columns == 2) {
      place({where.row, where.column + used + 1}, " ", style);
      cell({where.row, where.column + used + 1})->glyph.clear();
    }
    used += glyph.columns;
  }
  return used;
}

void Canvas::put_right(At where, std::string_view text, Style style) {
  const std::string safe = base::printable(text);
  const std::size_t width = base::columns_of(safe);
  if (width <= where.column) put({where.row, where.column - width}, safe, style);
}

void Canvas::to_ascii() {
  for (Cell& place : cells_) {
    if (place.glyph == "…")
      place.glyph = "~";
    else if (place.glyph.empty() || !is_ascii(place.glyph))
      place.glyph = "?";
  }
}

std::string Canvas::text() const {
  std::string out;
  for (std::size_t row = 0; row < size_.rows; ++row) {
    const std::size_t begin = out.size();
    for (std::size_t column = 0; column < size_.columns; ++column) out += at({row, column}).glyph;
    out.erase(std::max(begin, out.find_last_not_of(' ') + 1));
    out += '\n';
  }
  return out;
}

}  // namespace mete::top
