// SPDX-License-Identifier: Apache-2.0
// See table.h.
#include "cli/table.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace mete::cli {

namespace {

// Characters, counted by what begins one in UTF-8.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

bool is_plain(char c) { return c >= 0x20 && c < 0x7f; }

}  // namespace

Table::Table(std::vector<Column> columns)
    : columns_(std::move(columns)), used_(columns_.size(), false) {
  for (const Column& column : columns_) {
    titles_.push_back(keep(column.title));
    widths_.push_back(titles_.back().width);
  }
}

Table::Cell Table::keep(std::string_view text) {
  const std::size_t begin = text_.size();
  if (std::all_of(text.begin(), text.end(), is_plain))
    text_ += text;
  else
    text_ += printable(text);
  const std::string_view kept = std::string_view(text_).substr(begin);
  return {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(kept.size()),
          static_cast<std::uint32_t>(width_of(kept))};
}

void Table::add(std::initializer_list<std::string_view> cells) {
  std::size_t i = 0;
  for (const std::string_view cell : cells) {
    const Column& column = columns_[i];
    if (!cell.empty()) used_[i] = true;
    cells_.push_back(keep(cell.empty() ? "-" : cell));
    const std::size_t width = cells_.back().width;
    widths_[i] = std::max(widths_[i], column.most != 0 ? std::min(width, column.most) : width);
    ++i;
  }
}

void Table::expect(std::size_t rows, std::size_t bytes) {
  cells_.reserve(cells_.size() + rows * columns_.size());
  text_.reserve(text_.size() + bytes);
}

void Table::cut(std::size_t column, std::size_t most) {
  columns_[column].most = most;
  widths_[column] = std::min(widths_[column], std::max<std::size_t>(most, titles_[column].width));
}

void Table::append_line(std::string& out, const Cell* cells,
                        std::optional<std::size_t> width) const {
  const std::size_t begin = out.size();
  std::size_t used = 0;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (!used_[i] && !cells_.empty()) continue;
    if (out.size() > begin) out += "  ";
    const std::string_view text = std::string_view(text_).substr(cells[i].begin, cells[i].size);
    const bool fits = cells[i].width <= widths_[i];
    const std::size_t blanks = fits ? widths_[i] - cells[i].width : 0;
    if (columns_[i].align == Align::kRight) out.append(blanks, ' ');
    if (fits)
      out += text;
    else
      out += fit_to(text, widths_[i]);
    if (columns_[i].align == Align::kLeft) out.append(blanks, ' ');
    used += widths_[i] + 2;
  }
  out.erase(std::max(begin, out.find_last_not_of(' ') + 1));
  if (width && used > *width)
    out.replace(begin, std::string::npos, fit_to(std::string_view(out).substr(begin), *width));
}

std::string Table::text(std::optional<std::size_t> width) const {
  std::string out;
  out.reserve(text_.size() + cells_.size() * 4);
  append_line(out, titles_.data(), width);
  for (std::size_t row = 0; row < cells_.size(); row += columns_.size())
    append_line(out += '\n', &cells_[row], width);
  return out;
}

std::string fit_to(std::string_view text, std::size_t columns) {
  std::size_t used = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80;
    if (!begins) continue;
    if (++used > columns) {
      std::string cut(text.substr(0, i));
      // Room for the sign that something is missing.
      while (!cut.empty() && (static_cast<unsigned char>(cut.back()) & 0xc0) == 0x80)
        cut.pop_back();
      if (!cut.empty()) cut.pop_back();
      return cut + "…";
    }
  }
  return std::string(text);
}

std::optional<std::size_t> stdout_width() {
  winsize size{};
  if (isatty(STDOUT_FILENO) != 1 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 ||
      size.ws_col < 20)
    return std::nullopt;
  return size.ws_col;
}

}  // namespace mete::cli
