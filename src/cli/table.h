// SPDX-License-Identifier: Apache-2.0
// Columns for people: as wide as what is in them, numbers to the right. Pure. Text of others (a
// job's name, a command) cannot move the reader's cursor. Ten thousand rows take milliseconds:
// cells lie in one text, and are copied once more when it is printed.
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
};

class Table {
 public:
  explicit Table(std::vector<Column> columns);

  // As many cells as columns. An empty cell shows as "-".
  void add(std::initializer_list<std::string_view> cells);
  void add(std::span<const std::string> cells);
  // So many rows will come, with about so many bytes in them all.
  void expect(std::size_t rows, std::size_t bytes);
  // Cuts the cells of a column, also those that are there already.
  void cut(std::size_t column, std::size_t most);
  // Only these, in this order, also where no row has anything in them.
  void choose(std::vector<std::size_t> columns);
  bool empty() const { return cells_.empty(); }

  // Lines without trailing blanks, the titles first, no newline at the end. Columns in which no row
  // has anything are left out. With `width` lines are cut to that.
  std::string text(std::optional<std::size_t> width) const;

 private:
  struct Cell {               // small: of ten thousand rows most of the time goes into fresh memory
    std::uint32_t begin = 0;  // in text_
    std::uint32_t size = 0;
    std::uint32_t width = 0;  // in columns of a terminal
  };
  void add_cell(std::size_t column, std::string_view text);
  Cell keep(std::string_view text);
  void append_line(std::string& out, const Cell* cells, std::optional<std::size_t> width) const;

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

// The width of the terminal that stdout is; nullopt: it is none, so nothing is cut.
std::optional<std::size_t> stdout_width();

}  // namespace mete::cli
