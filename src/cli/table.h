// SPDX-License-Identifier: Apache-2.0
// Tables for people: each column is as wide as its contents, numbers are aligned to the right. On a
// narrow terminal some columns are cut, then some are left out (Column). Pure. The text of other
// users (the name of a job, a command) cannot move the reader's cursor. Ten thousand rows take
// milliseconds: all cells are in one text, and are copied once more for the output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/columns.h"
#include "base/result.h"
#include "base/text.h"

namespace mete::cli {

enum class Align { kLeft, kRight };

struct Column {
  std::string_view title;
  Align align = Align::kLeft;
  std::size_t most = 0;  // wider cells are cut with "…"; 0: never
  bool extra = false;    // shown only where it is named
  // For a table that is wider than the terminal: the column may be cut down to this width; 0:
  // never.
  std::size_t least = 0;
  // The column with the highest rank is left out first; 0: never left out. A column with rank 2 or
  // more is left out also where another column would be cut below kComfort for it.
  int rank = 0;
};
inline constexpr std::size_t kComfort = 20;

class Table {
 public:
  explicit Table(std::vector<Column> columns);

  // As many cells as columns. An empty cell shows as "-".
  void add(std::initializer_list<std::string_view> cells);
  void add(std::span<const std::string> cells);
  // Reserves memory for this many rows with about this many bytes of text.
  void expect(std::size_t rows, std::size_t bytes);
  // Shows only these columns, in this order, also those in which no row has anything.
  void choose(std::vector<std::size_t> columns);
  // Shows a column also where no row has anything in it.
  void always(std::size_t column) { used_[column] = true; }
  // Leaves a column out, unless choose() names it.
  void hide(std::size_t column) { used_[column] = false; }
  bool empty() const { return cells_.empty(); }

  // Lines without trailing blanks, the titles first, no newline at the end. Columns in which no row
  // has anything are left out. With `width` no line is wider than that.
  std::string text(std::optional<std::size_t> width) const;

 private:
  struct Cell {               // small: for ten thousand rows, fresh memory takes most of the time
    std::uint32_t begin = 0;  // in text_
    std::uint32_t size = 0;
    std::uint32_t width = 0;  // in columns of a terminal
  };
  void add_cell(std::size_t column, std::string_view text);
  Cell keep(std::string_view text);
  // The columns that are shown, from left to right.
  struct Shown {
    std::size_t column = 0;
    std::size_t width = 0;
  };
  std::vector<Shown> layout(std::optional<std::size_t> width) const;
  std::size_t least_of(const Shown& shown) const;
  void append_line(std::string& out, const Cell* cells, const std::vector<Shown>& shown,
                   std::optional<std::size_t> width) const;

  bool is_shown(std::size_t column) const;

  std::vector<Column> columns_;
  std::vector<std::size_t> order_;  // in which they are shown
  bool chosen_ = false;
  std::vector<std::size_t> widths_;  // of each column
  std::vector<bool> used_;
  std::string text_;
  std::vector<Cell> titles_;
  std::vector<Cell> cells_;  // row by row
};

// "id,name": which columns are meant by their titles, in any case.
Result<std::vector<std::size_t>> parse_columns(std::string_view text,
                                               std::span<const Column> columns);

using base::fit_columns;
using base::printable;

// The width of what stdout is printed on: COLUMNS if it is set, else the width of the terminal.
// nullopt: stdout is no terminal, so nothing is cut or wrapped.
std::optional<std::size_t> stdout_width();

// Wraps each line of the text at blanks so that it fits into `width`, if words allow it. Further
// lines are indented as far as the text beside the label of the line ("  card 0  needs …"), or by
// two more columns than the line itself.
std::string wrapped(std::string_view text, std::optional<std::size_t> width);

}  // namespace mete::cli
