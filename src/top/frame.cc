// SPDX-License-Identifier: Apache-2.0
// See view.h. The whole screen: header, panes and footer, and the page that covers them. The
// geometry (view.cc) decides which rows each part has; a part without rows is not drawn. A question
// is drawn over everything.
#include <algorithm>
#include <string>

#include "base/columns.h"
#include "base/moment.h"
#include "base/text.h"
#include "top/panes.h"

namespace mete::top {

namespace {

using core::JobState;
using wire::Snapshot;

std::string counted(std::size_t count, std::string_view one, std::string_view many) {
  return std::to_string(count) + " " + std::string(count == 1 ? one : many);
}

// "4 cards · 6 run · 1 parked · 3 wait"
std::string summary(const Scene& scene) {
  std::size_t running = 0, parked = 0, waiting = 0;
  for (const Snapshot::Job& job : scene.snapshot.jobs) {
    if (job.view.job.state == JobState::kPending)
      ++waiting;
    else if (job.view.job.state == JobState::kParked)
      ++parked;
    else
      ++running;
  }
  waiting += scene.snapshot.queue.left_off;
  std::vector<std::string> parts{counted(scene.snapshot.cards.size(), "card", "cards"),
                                 counted(running, "job runs", "jobs run")};
  if (parked > 0) parts.push_back(std::to_string(parked) + " parked");
  if (waiting > 0) parts.push_back(counted(waiting, "waits", "wait"));
  const Signs& signs = top::signs(scene.setting.unicode);
  return base::join(parts, " " + std::string(signs.dot) + " ");
}

// Trouble with the daemon, which comes first, or with the driver; "": none.
const std::string& trouble_of(const Scene& scene) {
  return scene.setting.trouble.empty() ? scene.snapshot.trouble : scene.setting.trouble;
}

// On a screen that has no line for it, trouble replaces the figures.
void draw_header(Canvas& canvas, const Scene& scene, const Geometry& geometry) {
  const WallTime at = scene.snapshot.at;
  std::string right = base::moment_to_the_second(at, at) + " ";
  if (!scene.snapshot.driver.empty() && canvas.size().columns >= 100)
    right = "driver " + scene.snapshot.driver + "   " + right;
  std::size_t column = 1 + canvas.put({0, 1}, "mete top", {Colour::kAccent, true});
  if (!scene.setting.host.empty() && canvas.size().columns >= 60)
    column += 2 + canvas.put({0, column + 2}, scene.setting.host, {Colour::kText, true}, 24);
  if (scene.setting.readonly && canvas.size().columns >= 80)
    column += 2 + canvas.put({0, column + 2}, "read only", {Colour::kWarn});
  const bool trouble = !geometry.banner && !trouble_of(scene).empty();
  const std::string words = trouble ? "! " + trouble_of(scene) : summary(scene);
  const std::size_t width = base::columns_of(right);
  const bool clock = column + 2 + base::columns_of(words) + 2 + width <= canvas.size().columns;
  canvas.put({0, column + 2}, words, {trouble ? Colour::kHot : Colour::kText, trouble});
  if (clock) canvas.put_right({0, canvas.size().columns}, right, {Colour::kFaint});
}

void draw_banner(Canvas& canvas, const Scene& scene) {
  canvas.fill({1, 0}, canvas.size().columns, {Colour::kHot, true, true});
  canvas.put({1, 1}, "! " + trouble_of(scene), {Colour::kHot, true, true});
}

struct KeyHint {
  std::string_view key;
  std::string_view word;
};

void draw_keys(Canvas& canvas, std::size_t row, std::initializer_list<KeyHint> keys) {
  std::size_t column = 1;
  for (const KeyHint& key : keys) {
    const std::size_t width = base::columns_of(key.key) + 1 + base::columns_of(key.word) + 2;
    if (column + width > canvas.size().columns + 1) break;
    column += canvas.put({row, column}, key.key, {Colour::kAccent, true}) + 1;
    column += canvas.put({row, column}, key.word, {Colour::kFaint}) + 2;
  }
}

void draw_footer(Canvas& canvas, const Scene& scene, const View& view) {
  const std::size_t row = canvas.size().rows - 1;
  if (view.draft) {
    const std::size_t column = 1 + canvas.put({row, 1}, "filter: ", {Colour::kAccent, true});
    const std::size_t end = column + canvas.put({row, column}, *view.draft, {});
    canvas.set({row, end}, " ", {Colour::kText, false, true});
    canvas.put({row, end + 3}, "Enter keeps it, Esc drops it", {Colour::kFaint});
    return;
  }
  if (!view.message.empty()) {
    canvas.put({row, 1}, view.message, {Colour::kText, true});
    return;
  }
  if (!view.wanted.filter.empty() && view.page == Page::kMain) {
    canvas.put({row, 1}, "filter: " + view.wanted.filter + "   (/ changes it, Esc shows all)",
               {Colour::kWarn});
    return;
  }
  const bool arrows = scene.setting.unicode;
  if (view.page != Page::kMain)
    draw_keys(canvas, row, {{"Esc", "back"}, {arrows ? "↑↓" : "Up/Down", "scroll"}, {"q", "quit"}});
  else if (scene.setting.readonly)
    draw_keys(canvas, row,
              {{"q", "quit"},
               {"h", "help"},
               {"Enter", "detail"},
               {"l", "logs"},
               {"s", "sort"},
               {"/", "filter"},
               {"t", "tree"},
               {arrows ? "↑↓" : "Up/Down", "select"}});
  else
    draw_keys(canvas, row,
              {{"q", "quit"},
               {"h", "help"},
               {"Enter", "detail"},
               {"l", "logs"},
               {"c", "cancel"},
               {"H", "hold"},
               {"R", "release"},
               {"s", "sort"},
               {"/", "filter"},
               {"t", "tree"},
               {"T K I", "signal"},
               {arrows ? "↑↓" : "Up/Down", "select"}});
}

// A page that may be longer than the screen.
void show_page(Canvas& canvas, const Canvas& page, const View& view, const Geometry& geometry) {
  const std::size_t top = std::size_t{geometry.header} + geometry.banner;
  const std::size_t lines = canvas.size().rows - top - geometry.footer;
  const std::size_t rows = page.size().rows;
  const std::size_t first = std::min(view.page_first, rows > lines ? rows - lines : 0);
  for (std::size_t i = 0; i < lines && first + i < rows; ++i)
    canvas.copy_row(top + i, page, first + i);
}

}  // namespace

Canvas frame(const Scene& scene, const View& view, Size size) {
  Canvas canvas(size);
  if (size.rows == 0 || size.columns == 0) return canvas;
  const std::vector<Row> rows = rows_of(scene.snapshot, view.wanted);
  const Geometry geometry = geometry_of(scene, size, rows.size());
  if (geometry.header) draw_header(canvas, scene, geometry);
  if (geometry.banner) draw_banner(canvas, scene);
  const std::optional<std::size_t> selected = selected_row(rows, view);
  if (view.page == Page::kHelp) {
    show_page(canvas, help_page(scene, size.columns), view, geometry);
  } else if (view.page == Page::kDetail && selected) {
    show_page(canvas, detail_page(scene, rows[*selected], size.columns), view, geometry);
  } else {
    draw_cards(canvas, scene, view, geometry);
    draw_list(canvas, scene, view, geometry, rows);
  }
  if (geometry.footer) draw_footer(canvas, scene, view);
  if (view.asked) draw_question(canvas, *view.asked, signs(scene.setting.unicode));
  if (!scene.setting.unicode) canvas.to_ascii();
  return canvas;
}

}  // namespace mete::top
