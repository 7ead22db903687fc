// SPDX-License-Identifier: Apache-2.0
// A screen as a value: rows of cells, each with a glyph and a style. Text of other users cannot
// leave its place: control characters are shown as \xNN, a wide character is never halved, joiners
// that terminals disagree about are left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mete::top {

// What a colour is for; paint.cc decides which one it is. Nothing is shown by colour alone.
enum class Colour : std::uint8_t {
  kText,
  kFaint,   // lines, units, free memory
  kTitle,   // names of columns and panes
  kAccent,  // mete, keys
  kGood,    // runs
  kWarn,    // waits, idle, warm
  kHot,     // trouble
  kOne,     // jobs beside each other on a card, in turn
  kOther,
  kForeign,  // outside mete
};

struct Style {
  Colour colour = Colour::kText;
  bool bold = false;
  bool reverse = false;
  bool operator==(const Style&) const = default;
};

struct Cell {
  std::string glyph = " ";  // "": the right half of a wide one
  Style style;
  bool operator==(const Cell&) const = default;
};

struct Size {
  std::size_t columns = 80;
  std::size_t rows = 24;
  bool operator==(const Size&) const = default;
};

struct At {
  std::size_t row = 0;
  std::size_t column = 0;
};

class Canvas {
 public:
  explicit Canvas(Size size);

  Size size() const { return size_; }
  const Cell& at(At where) const { return cells_[where.row * size_.columns + where.column]; }

  // Draws text from there to the right, within `most` columns and the screen, cut with "…". Returns
  // how many columns it took. A row outside of the screen takes none.
  std::size_t put(At where, std::string_view text, Style style, std::size_t most = SIZE_MAX);
  // put() that ends at the column before `where`.
  void put_right(At where, std::string_view text, Style style);
  // One of our own glyphs, which takes one column.
  void set(At where, std::string_view glyph, Style style);
  // Blanks from there on.
  void fill(At where, std::size_t columns, Style style);
  // A row in one inverted style, for the selection.
  void invert_row(std::size_t row);
  // A row of another canvas of equal width.
  void copy_row(std::size_t row, const Canvas& from, std::size_t from_row);

  // Replaces everything that is not ASCII by "?", for terminals that have nothing else.
  void to_ascii();

  // Rows as text without trailing blanks, each ended by a newline.
  std::string text() const;

 private:
  Cell* cell(At where);  // nullptr: outside
  void place(At where, std::string glyph, Style style);

  Size size_;
  std::vector<Cell> cells_;
};

}  // namespace mete::top
