// SPDX-License-Identifier: Apache-2.0
// What the user looks at: which page, which row, in which order, and an open question. A value that
// keys change; with a snapshot and a size it decides every cell of the screen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "top/canvas.h"
#include "top/rows.h"
#include "wire/snapshot.h"

namespace mete::top {

enum class Page { kMain, kDetail, kHelp };

// A process as it was shown: with its start time it is unique.
struct Target {
  std::int32_t pid = 0;
  std::uint64_t start_ticks = 0;  // 0: unknown
};

// What a key asks for. Cancelling and signals are done after confirmation, the others at once.
struct Deed {
  enum class Kind { kCancel, kSignal, kHold, kRelease, kLogs };
  Kind kind = Kind::kCancel;
  std::string job = {};  // number; "": a process without a job
  int signal = 0;
  std::vector<Target> targets = {};
  std::string question = {};  // "cancel job 12 (train of alice)?"
};

struct View {
  Wanted wanted;
  std::string selected;        // key of a row; "": the first
  std::size_t first = 0;       // row of the list at its top
  std::size_t first_card = 0;  // likewise for the cards
  Page page = Page::kMain;
  std::size_t page_first = 0;             // line of the page at its top
  std::optional<std::string> draft = {};  // a filter that is being typed
  std::optional<Deed> asked = {};         // waits for yes or no
  std::string message;                    // the result of the last deed
};

// What is shown besides readings.
struct Setting {
  bool unicode = true;
  bool readonly = false;
  bool once = false;  // printed once: no keys
  std::string host;
  std::string trouble;  // with the daemon; the shown data is then old
};

struct Scene {
  const wire::Snapshot& snapshot;
  const Setting& setting;
};

// The parts of the main page, in rows of the screen.
struct Geometry {
  bool header = true;
  bool banner = false;
  bool heading = true;  // above the cards
  bool titles = true;   // above the list
  bool footer = true;
  std::size_t lines_each = 1;  // of a card
  std::size_t cards_top = 0;
  std::size_t cards_lines = 0;
  std::size_t list_top = 0;
  std::size_t list_lines = 0;
};
Geometry geometry_of(const Scene& scene, Size size, std::size_t rows);

// The selected row: the one in the view, or the nearest. nullopt: there is none.
std::optional<std::size_t> selected_row(const std::vector<Row>& rows, const View& view);
// The rows of the list that are shown, so that the selected one is visible. If further rows do not
// fit, the last line says how many.
struct Window {
  std::size_t first = 0;
  std::size_t rows = 0;
  std::size_t below = 0;  // rows that do not fit, without headings; 0: no line says so
};
Window window_of(const std::vector<Row>& rows, const View& view, std::size_t lines);

// The screen. Pure.
Canvas frame(const Scene& scene, const View& view, Size size);
// The number of rows that is enough for all of the main page; the last ones may be empty.
std::size_t rows_enough(const Scene& scene, const View& view);

}  // namespace mete::top
