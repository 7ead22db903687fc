// SPDX-License-Identifier: Apache-2.0
// Columns for people: as wide as what is in them, numbers to the right. Pure. Text of others (a
// job's name, a command) cannot move the reader's cursor. Ten thousand rows take a few
// milliseconds.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mete::cli {

enum class Align { kLeft, kRight };

struct Column {
  std::string_view title;
  Align align = Align::kLeft;
  std::size_t most = 0;  // wider cells are cut with "…"; 0: never
};

class Table {
 public:
  explicit Table(std::vector<Column> columns);

  // As many cells as columns. An empty cell shows as "-".
  void add(std::vector<std::string> cells);

  // Lines without trailing blanks, the titles first, no newline at the end. Columns in which no row
  // has anything are left out. With `width` lines are cut to that.
  std::string text(std::optional<std::size_t> width) const;

 private:
  struct Cell {
    std::string text;
    std::size_t width = 0;  // in characters
  };
  void append_line(std::string& out, const Cell* cells, std::optional<std::size_t> width) const;

  std::vector<Column> columns_;
  std::vector<Cell> titles_;
  std::vector<Cell> cells_;  // row by row
  std::vector<std::size_t> widths_;
  std::vector<bool> used_;
};

// Control characters as \xNN.
std::string printable(std::string_view text);

// Cut to `columns`, at a character's border, with "…" where something is missing.
std::string fit_to(const std::string& text, std::size_t columns);

// The width of the terminal that stdout is; nullopt: it is none, so nothing is cut.
std::optional<std::size_t> stdout_width();

}  // namespace mete::cli
