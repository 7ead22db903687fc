// SPDX-License-Identifier: Apache-2.0
// See table.h.
#include "cli/table.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace mete::cli {

namespace {

bool is_plain(char c) { return c >= 0x20 && c < 0x7f; }

}  // namespace

Table::Table(std::vector<Column> columns)
    : columns_(std::move(columns)), used_(columns_.size(), false) {
  for (const Column& column : columns_) {
    order_.push_back(order_.size());
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
          static_cast<std::uint32_t>(base::columns_of(kept))};
}

void Table::add(std::initializer_list<std::string_view> cells) {
  std::size_t i = 0;
  for (const std::string_view cell : cells) add_cell(i++, cell);
}

void Table::add(std::span<const std::string> cells) {
  for (std::size_t i = 0; i < cells.size(); ++i) add_cell(i, cells[i]);
}

void Table::add_cell(std::size_t i, std::string_view text) {
  if (!text.empty()) used_[i] = true;
  cells_.push_back(keep(text.empty() ? "-" : text));
  const std::size_t width = cells_.back().width;
  const std::size_t most = columns_[i].most;
  widths_[i] = std::max(widths_[i], most != 0 ? std::min(width, most) : width);
}

void Table::expect(std::size_t rows, std::size_t bytes) {
  cells_.reserve(cells_.size() + rows * columns_.size());
  text_.reserve(text_.size() + bytes);
}

void Table::cut(std::size_t column, std::size_t most) {
  columns_[column].most = most;
  widths_[column] = std::min(widths_[column], std::max<std::size_t>(most, titles_[column].width));
}

void Table::choose(std::vector<std::size_t> columns) {
  order_ = std::move(columns);
  chosen_ = true;
}

bool Table::is_shown(std::size_t column) const {
  return chosen_ || (!columns_[column].extra && (used_[column] || cells_.empty()));
}

void Table::append_line(std::string& out, const Cell* cells,
                        std::optional<std::size_t> width) const {
  const std::size_t begin = out.size();
  std::size_t used = 0;
  for (const std::size_t i : order_) {
    if (!is_shown(i)) continue;
    if (out.size() > begin) out += "  ";
    std::string_view text = std::string_view(text_).substr(cells[i].begin, cells[i].size);
    std::string cut;
    if (cells[i].width > widths_[i]) text = cut = fit_columns(text, widths_[i]);
    const std::size_t wide = cut.empty() ? cells[i].width : base::columns_of(cut);
    const std::size_t blanks = widths_[i] - std::min(widths_[i], wide);
    if (columns_[i].align == Align::kRight) out.append(blanks, ' ');
    out += text;
    if (columns_[i].align == Align::kLeft) out.append(blanks, ' ');
    used += widths_[i] + 2;
  }
  out.erase(std::max(begin, out.find_last_not_of(' ') + 1));
  if (width && used > *width)
    out.replace(begin, std::string::npos, fit_columns(std::string_view(out).substr(begin), *width));
}

std::string Table::text(std::optional<std::size_t> width) const {
  std::string out;
  out.reserve(text_.size() + cells_.size() * 4);
  append_line(out, titles_.data(), width);
  for (std::size_t row = 0; row < cells_.size(); row += columns_.size())
    append_line(out += '\n', &cells_[row], width);
  return out;
}

Result<std::vector<std::size_t>> parse_columns(std::string_view text,
                                               std::span<const Column> columns) {
  std::vector<std::string> names;
  for (const Column& column : columns) names.push_back(base::to_lower(column.title));
  std::vector<std::size_t> chosen;
  for (const std::string_view word : base::split(text, ',')) {
    const std::string name = base::to_lower(base::trim(word));
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
      return Error::invalid("--columns " + base::quote(word) + ": there is no such column")
          .with_hint(base::join(names, ", ") + " are known");
    chosen.push_back(static_cast<std::size_t>(found - names.begin()));
  }
  return chosen;
}

std::optional<std::size_t> stdout_width() {
  winsize size{};
  if (isatty(STDOUT_FILENO) != 1 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 ||
      size.ws_col < 20)
    return std::nullopt;
  return size.ws_col;
}

}  // namespace mete::cli
