// SPDX-License-Identifier: Apache-2.0
// See table.h.
#include "cli/table.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "cli/wait_line.h"

namespace mete::cli {

namespace {

// Characters, counted by what begins one in UTF-8.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

}  // namespace

std::string Table::text(std::optional<std::size_t> width) const {
  std::vector<std::vector<std::string>> lines;
  lines.emplace_back();
  for (const Column& column : columns_) lines.front().emplace_back(column.title);
  std::vector<bool> used(columns_.size(), rows_.empty());
  for (const std::vector<std::string>& row : rows_) {
    lines.emplace_back();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      std::string cell = printable(row[i]);
      if (!cell.empty()) used[i] = true;
      if (columns_[i].most != 0) cell = fit_to(cell, columns_[i].most);
      lines.back().push_back(cell.empty() ? "-" : std::move(cell));
    }
  }
  std::vector<std::size_t> widths(columns_.size(), 0);
  for (const std::vector<std::string>& line : lines)
    for (std::size_t i = 0; i < columns_.size(); ++i)
      widths[i] = std::max(widths[i], width_of(line[i]));
  std::string text;
  for (const std::vector<std::string>& line : lines) {
    std::string out;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (!used[i]) continue;
      const std::string blanks(widths[i] - width_of(line[i]), ' ');
      if (!out.empty()) out += "  ";
      out += columns_[i].align == Align::kRight ? blanks + line[i] : line[i] + blanks;
    }
    out.erase(out.find_last_not_of(' ') + 1);
    text += (text.empty() ? "" : "\n") + (width ? fit_to(out, *width) : out);
  }
  return text;
}

std::string printable(std::string_view text) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      out += c;
    } else {
      out.append("\\x").append(1, kDigits[byte >> 4]).append(1, kDigits[byte & 15]);
    }
  }
  return out;
}

std::optional<std::size_t> stdout_width() {
  winsize size{};
  if (isatty(STDOUT_FILENO) != 1 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 ||
      size.ws_col < 20)
    return std::nullopt;
  return size.ws_col;
}

}  // namespace mete::cli
