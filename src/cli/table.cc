// SPDX-License-Identifier: Apache-2.0
// See table.h.
#include "cli/table.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace mete::cli {

namespace {

constexpr std::size_t kGap = 2;          // blanks between two columns
constexpr std::size_t kLeastWidth = 20;  // a narrower terminal is not believed

bool is_plain(char c) { return c >= 0x20 && c < 0x7f; }

// What further lines of a wrapped line begin with: "  card 0  needs …" has 10.
std::size_t indent_of(std::string_view line) {
  constexpr std::size_t kMostLabel = 24;
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  std::size_t indent = begin + 2;
  for (std::size_t i = begin; i + 1 < line.size() && i < kMostLabel; ++i)
    if (line[i] == ' ' && line[i + 1] == ' ') {
      const std::size_t words = std::min(line.find_first_not_of(' ', i), line.size());
      if (words > kMostLabel) break;
      indent = base::columns_of(line.substr(0, words));
      i = words;
    }
  return indent;
}

void append_wrapped_line(std::string& out, std::string_view line, std::size_t width) {
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t indent = std::min(indent_of(line), width / 2);
  out.append(begin, ' ');
  std::size_t at = begin;
  bool first = true;  // on its line
  std::size_t blanks = 0;
  for (const std::string_view word : base::split(line.substr(begin), ' ')) {
    if (word.empty()) {
      ++blanks;
      continue;
    }
    const std::size_t wide = base::columns_of(word);
    if (!first && at + 1 + blanks + wide > width) {
      out.append("\n").append(indent, ' ');
      at = indent;
    } else if (!first) {
      out.append(1 + blanks, ' ');
      at += 1 + blanks;
    }
    out += word;
    at += wide;
    first = false;
    blanks = 0;
  }
}

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

void Table::choose(std::vector<std::size_t> columns) {
  order_ = std::move(columns);
  chosen_ = true;
}

bool Table::is_shown(std::size_t column) const {
  return chosen_ || (!columns_[column].extra && (used_[column] || cells_.empty()));
}

// The width below which a column is not cut.
std::size_t Table::least_of(const Shown& shown) const {
  const std::size_t least = columns_[shown.column].least;
  if (least == 0) return shown.width;
  return std::min(shown.width, std::max<std::size_t>(least, titles_[shown.column].width));
}

std::vector<Table::Shown> Table::layout(std::optional<std::size_t> width) const {
  std::vector<Shown> shown;
  for (const std::size_t i : order_)
    if (is_shown(i)) shown.push_back({i, widths_[i]});
  if (!width) return shown;
  for (;;) {
    std::size_t taken = 0, least = 0, comfortable = 0;
    std::size_t highest = 0;
    for (std::size_t i = 0; i < shown.size(); ++i) {
      taken += shown[i].width + (i == 0 ? 0 : kGap);
      least += shown[i].width - least_of(shown[i]);
      comfortable +=
          shown[i].width - std::max(least_of(shown[i]), std::min(shown[i].width, kComfort));
      if (columns_[shown[i].column].rank > columns_[shown[highest].column].rank) highest = i;
    }
    std::size_t missing = taken > *width ? taken - *width : 0;
    const int rank = shown.empty() || chosen_ ? 0 : columns_[shown[highest].column].rank;
    if (rank > 0 && missing > (rank > 1 ? comfortable : least)) {
      shown.erase(shown.begin() + static_cast<std::ptrdiff_t>(highest));
      continue;
    }
    // Long texts are cut first, from the right; then all that may be, from the left: half of a
    // command and half of a name say more than a whole name alone.
    const auto cut = [&missing](Shown& column, std::size_t to) {
      const std::size_t by = std::min(missing, column.width - std::min(column.width, to));
      column.width -= by;
      missing -= by;
    };
    for (std::size_t i = shown.size(); i-- > 0;)
      cut(shown[i], std::max(least_of(shown[i]), kComfort));
    for (Shown& column : shown) cut(column, least_of(column));
    return shown;
  }
}

void Table::append_line(std::string& out, const Cell* cells, const std::vector<Shown>& shown,
                        std::optional<std::size_t> width) const {
  const std::size_t begin = out.size();
  std::size_t used = 0;
  for (const auto& [i, wide] : shown) {
    if (used > 0) out.append(kGap, ' ');
    std::string_view text = std::string_view(text_).substr(cells[i].begin, cells[i].size);
    std::string cut;
    if (cells[i].width > wide) text = cut = fit_columns(text, wide);
    const std::size_t filled = cut.empty() ? cells[i].width : base::columns_of(cut);
    const std::size_t blanks = wide - std::min(wide, filled);
    if (columns_[i].align == Align::kRight) out.append(blanks, ' ');
    out += text;
    if (columns_[i].align == Align::kLeft) out.append(blanks, ' ');
    used += wide + kGap;
  }
  out.erase(std::max(begin, out.find_last_not_of(' ') + 1));
  if (width && used > *width + kGap)
    out.replace(begin, std::string::npos, fit_columns(std::string_view(out).substr(begin), *width));
}

std::string Table::text(std::optional<std::size_t> width) const {
  const std::vector<Shown> shown = layout(width);
  std::string out;
  out.reserve(text_.size() + cells_.size() * 4);
  append_line(out, titles_.data(), shown, width);
  for (std::size_t row = 0; row < cells_.size(); row += columns_.size())
    append_line(out += '\n', &cells_[row], shown, width);
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
  const char* columns = std::getenv("COLUMNS");
  if (columns != nullptr)
    if (const Result<std::uint64_t> said = base::parse_uint(columns);
        said && *said >= kLeastWidth && *said <= UINT16_MAX)
      return static_cast<std::size_t>(*said);
  winsize size{};
  if (isatty(STDOUT_FILENO) != 1 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 ||
      size.ws_col < kLeastWidth)
    return std::nullopt;
  return size.ws_col;
}

std::string wrapped(std::string_view text, std::optional<std::size_t> width) {
  if (!width) return std::string(text);
  std::string out;
  bool first = true;
  for (const std::string_view line : base::split(text, '\n')) {
    if (!first) out += '\n';
    first = false;
    append_wrapped_line(out, line, *width);
  }
  return out;
}

}  // namespace mete::cli
