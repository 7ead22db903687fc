// SPDX-License-Identifier: Apache-2.0
// See view.h. The geometry; frame.cc and pages.cc draw.
#include "top/view.h"

#include <algorithm>

namespace mete::top {

namespace {

constexpr std::size_t kRoomyRows = 20;  // of a screen on which a card may have two lines
constexpr std::size_t kLeastList = 4;

bool is_selectable(const Row& row) { return row.kind != Row::Kind::kSection; }

}  // namespace

Geometry geometry_of(const Scene& scene, Size size, std::size_t rows) {
  Geometry geometry;
  geometry.header = size.rows >= 4;
  geometry.footer = size.rows >= 3 && !scene.setting.once;
  geometry.banner =
      size.rows >= 6 && (!scene.snapshot.trouble.empty() || !scene.setting.trouble.empty());
  geometry.titles = size.rows >= 8;
  geometry.heading = size.rows >= 12;
  const std::size_t around = std::size_t{geometry.header} + geometry.banner + geometry.heading +
                             geometry.titles + geometry.footer;
  const std::size_t free = size.rows > around ? size.rows - around : 0;
  const std::size_t cards = std::max<std::size_t>(1, scene.snapshot.cards.size());
  if (size.rows >= kRoomyRows && size.columns >= 76 &&
      2 * cards + std::min(rows, kLeastList * 2) <= free && 2 * cards <= free / 2 + 1)
    geometry.lines_each = 2;
  const std::size_t list = std::min(std::max<std::size_t>(1, rows), std::max(kLeastList, free / 3));
  const std::size_t most = std::max<std::size_t>(free > 1 ? 1 : 0, free > list ? free - list : 0);
  geometry.cards_lines = std::min(cards * geometry.lines_each, most);
  geometry.cards_top = std::size_t{geometry.header} + geometry.banner + geometry.heading;
  geometry.list_top = geometry.cards_top + geometry.cards_lines + geometry.titles;
  geometry.list_lines = free - geometry.cards_lines;
  return geometry;
}

std::optional<std::size_t> selected_row(const std::vector<Row>& rows, const View& view) {
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!is_selectable(rows[i])) continue;
    if (rows[i].key == view.selected) return i;
    if (!first) first = i;
  }
  return first;
}

Window window_of(const std::vector<Row>& rows, const View& view, std::size_t lines) {
  if (rows.size() <= lines) return {0, rows.size(), 0};
  if (lines == 0) return {};
  const bool counts = lines >= kLeastList;  // there is a line for the number of further rows
  std::size_t first = std::min(view.first, rows.size() - lines);
  if (const std::optional<std::size_t> selected = selected_row(rows, view); selected) {
    // The heading above the first row of a section is visible with it.
    const std::size_t above = *selected > 0 && !is_selectable(rows[*selected - 1]) && lines > 1
                                  ? *selected - 1
                                  : *selected;
    first = std::min(first, above);
    first = std::max(first, *selected >= lines ? *selected - lines + 1 : 0);
    // Not below that line.
    if (counts && *selected + 1 == first + lines && first + lines < rows.size()) ++first;
  }
  if (!counts || first + lines == rows.size()) return {first, lines, 0};
  const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(first + lines - 1);
  return {first, lines - 1,
          static_cast<std::size_t>(std::count_if(begin, rows.end(), is_selectable))};
}

std::size_t rows_enough(const Scene& scene, const View& view) {
  return kRoomyRows + 4 * scene.snapshot.cards.size() + rows_of(scene.snapshot, view.wanted).size();
}

}  // namespace mete::top
