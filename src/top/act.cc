// SPDX-License-Identifier: Apache-2.0
// See act.h. Keys are handled by the page that is shown: an open question takes y or n, a filter
// that is being typed takes text, otherwise one table of keys moves the selection, changes the
// order, opens pages or asks for a deed. A deed that ends something is confirmed; it is prepared
// with its targets at the moment of the question, so that a later snapshot cannot change what is
// confirmed. Holding and releasing a job and reading its log are done at once.
#include "top/act.h"

#include <signal.h>

#include <algorithm>

#include "base/text.h"
#include "top/panes.h"

namespace mete::top {

namespace {

using Code = Key::Code;
using Kind = Row::Kind;
constexpr std::size_t kWheelRows = 3;
constexpr std::size_t kMaxFilter = 200;  // bytes

bool is_selectable(const Row& row) { return row.kind != Kind::kSection; }

// The list and its selection, for one key.
struct List {
  List(View& changed, const Scene& scene, Size size)
      : view(changed),
        rows(rows_of(scene.snapshot, changed.wanted)),
        geometry(geometry_of(scene, size, rows.size())) {}

  // Selects the nearest selectable row, in that direction first.
  void select(std::ptrdiff_t index, bool down) {
    const auto last = static_cast<std::ptrdiff_t>(rows.size()) - 1;
    if (last < 0) return;
    index = std::clamp<std::ptrdiff_t>(index, 0, last);
    for (const std::ptrdiff_t step : {down ? 1 : -1, down ? -1 : 1})
      for (std::ptrdiff_t i = index; i >= 0 && i <= last; i += step)
        if (is_selectable(rows[static_cast<std::size_t>(i)])) {
          view.selected = rows[static_cast<std::size_t>(i)].key;
          view.first = window_of(rows, view, geometry.list_lines).first;
          return;
        }
  }
  void move(std::ptrdiff_t by) {
    view.first = window_of(rows, view, geometry.list_lines).first;
    const auto at = static_cast<std::ptrdiff_t>(selected_row(rows, view).value_or(0));
    select(at + by, by > 0);
  }
  // Selects the first row of the next section, cyclically.
  void next_section() {
    const std::size_t at = selected_row(rows, view).value_or(0);
    for (std::size_t i = at + 1; i < rows.size(); ++i)
      if (!is_selectable(rows[i])) return select(static_cast<std::ptrdiff_t>(i), true);
    select(0, true);
  }
  const Row* selected() const {
    const std::optional<std::size_t> at = selected_row(rows, view);
    return at ? &rows[*at] : nullptr;
  }

  View& view;
  std::vector<Row> rows;
  Geometry geometry;
};

std::string job_words(const Row& row) {
  const core::Job& job = row.job->view.job;
  const std::string& name = job.spec->name;  // "": another user's
  return "job " + to_string(job.id) + " (" + (name.empty() ? "of " : name + " of ") +
         job.spec->user + ")";
}

// The job that is selected; nullptr: none that this user may change, which is said.
const core::Job* selected_job(View& view, const Row* row) {
  if (row != nullptr && row->job != nullptr && !row->job->view.row) return &row->job->view.job;
  view.message = row != nullptr && (row->kind == Kind::kOther || row->job != nullptr)
                     ? "only its user and administrators can do that"
                     : "no job is selected";
  return nullptr;
}

void ask_cancel(View& view, const Row* row) {
  const core::Job* job = selected_job(view, row);
  if (job == nullptr) return;
  view.asked = Deed{.kind = Deed::Kind::kCancel,
                    .job = to_string(job->id),
                    .question = "cancel " + job_words(*row) + "?"};
}

// What needs no confirmation.
Outcome at_once(View& view, const Row* row, Deed::Kind kind) {
  const core::Job* job = selected_job(view, row);
  if (job == nullptr) return {};
  return {.deed = Deed{.kind = kind, .job = to_string(job->id)}};
}

bool is_deed(char c) {
  return c == 'c' || c == 'H' || c == 'R' || c == 'T' || c == 'K' || c == 'I';
}

void ask_signal(View& view, const Row* row, int number, std::string_view name) {
  Deed deed;
  deed.kind = Deed::Kind::kSignal;
  deed.signal = number;
  std::string whom;
  if (row != nullptr && row->process != nullptr) {
    deed.targets = {{row->process->pid, row->process->start_ticks}};
    whom = "process " + std::to_string(row->process->pid) + " of " + job_words(*row);
  } else if (row != nullptr && row->job != nullptr) {
    // A process on two cards is listed twice; a process on no card gets a signal only if it is
    // selected itself.
    for (const wire::Snapshot::Process& process : row->job->processes)
      if (process.card && (deed.targets.empty() || deed.targets.back().pid != process.pid))
        deed.targets.push_back({process.pid, process.start_ticks});
    const std::size_t count = deed.targets.size();
    whom =
        std::to_string(count) + (count == 1 ? " process of " : " processes of ") + job_words(*row);
  } else if (row != nullptr && row->foreign != nullptr && row->foreign->pid) {
    deed.targets = {{*row->foreign->pid, 0}};
    whom = "process " + std::to_string(*row->foreign->pid) + " of " + row->foreign->user;
  }
  if (deed.targets.empty()) {
    view.message = "no process on a card is selected";
    return;
  }
  if (row->job != nullptr) deed.job = to_string(row->job->view.job.id);
  deed.question = "send " + std::string(name) + " to " + whom + "?";
  view.asked = std::move(deed);
}

void type_filter(View& view, const Key& key) {
  std::string& draft = *view.draft;
  switch (key.code) {
    case Code::kEnter:
      view.draft.reset();
      return;
    case Code::kEscape:
      view.wanted.filter.clear();
      view.draft.reset();
      return;
    case Code::kBackspace:
      while (!draft.empty() && (static_cast<unsigned char>(draft.back()) & 0xc0) == 0x80)
        draft.pop_back();
      if (!draft.empty()) draft.pop_back();
      break;
    case Code::kClearLine:
      draft.clear();
      break;
    case Code::kText:
      if (draft.size() < kMaxFilter) draft += key.text;
      break;
    default:
      return;
  }
  view.wanted.filter = base::trim(draft);
}

void change_sort(View& view, std::size_t by) {
  const std::size_t next = (static_cast<std::size_t>(view.wanted.sort) + by) % kSorts;
  view.wanted.sort = static_cast<Sort>(next);
  view.wanted.reverse = false;
}

void click(List& list, const Key& key, const Scene& scene, Size size) {
  const Geometry& geometry = list.geometry;
  View& view = list.view;
  if (geometry.titles && key.row + 1 == geometry.list_top) {
    if (const std::optional<Sort> sort = sort_at(scene, view, size, key.column); sort) {
      view.wanted.reverse = view.wanted.sort == *sort && !view.wanted.reverse;
      view.wanted.sort = *sort;
    }
    return;
  }
  if (key.row < geometry.list_top || key.row >= geometry.list_top + geometry.list_lines) return;
  const Window window = window_of(list.rows, view, geometry.list_lines);
  const std::size_t line = key.row - geometry.list_top;
  if (line >= window.rows) {
    if (window.below > 0) list.move(static_cast<std::ptrdiff_t>(window.rows));
    return;
  }
  const std::size_t at = window.first + line;
  if (!is_selectable(list.rows[at])) return;
  if (view.selected == list.rows[at].key) view.page = Page::kDetail;  // a second click
  view.selected = list.rows[at].key;
}

void wheel(List& list, const Key& key) {
  const bool down = key.code == Code::kWheelDown;
  View& view = list.view;
  const Geometry& geometry = list.geometry;
  const bool cards =
      key.row >= geometry.cards_top && key.row < geometry.cards_top + geometry.cards_lines;
  if (cards) {
    view.first_card += down ? 1 : (view.first_card > 0 ? -1 : 0);
    return;
  }
  list.move(down ? kWheelRows : -static_cast<std::ptrdiff_t>(kWheelRows));
}

Outcome on_main_text(List& list, char c, const Scene& scene) {
  View& view = list.view;
  if (is_deed(c) && scene.setting.readonly) {
    view.message = "--readonly: nothing is changed from here";
    return {};
  }
  switch (c) {
    case 'q':
      return {.quit = true};
    case 'h':
    case '?':
      view.page = Page::kHelp;
      view.page_first = 0;
      break;
    case 'j':
      list.move(1);
      break;
    case 'k':
      list.move(-1);
      break;
    case 'g':
      list.select(0, true);
      break;
    case 'G':
      list.select(static_cast<std::ptrdiff_t>(list.rows.size()), false);
      break;
    case 't':
      view.wanted.tree = !view.wanted.tree;
      break;
    case 's':
    case '.':
      change_sort(view, 1);
      break;
    case 'S':
    case ',':
      change_sort(view, kSorts - 1);
      break;
    case 'r':
      view.wanted.reverse = !view.wanted.reverse;
      break;
    case '/':
      view.draft = view.wanted.filter;
      break;
    case '[':
      view.first_card -= view.first_card > 0 ? 1 : 0;
      break;
    case ']':
      if (view.first_card + 1 < scene.snapshot.cards.size()) ++view.first_card;
      break;
    case 'c':
      ask_cancel(view, list.selected());
      break;
    case 'H':
      return at_once(view, list.selected(), Deed::Kind::kHold);
    case 'R':
      return at_once(view, list.selected(), Deed::Kind::kRelease);
    case 'l':
      return at_once(view, list.selected(), Deed::Kind::kLogs);
    case 'T':
      ask_signal(view, list.selected(), SIGTERM, "TERM");
      break;
    case 'K':
      ask_signal(view, list.selected(), SIGKILL, "KILL");
      break;
    case 'I':
      ask_signal(view, list.selected(), SIGINT, "INT");
      break;
    default:
      break;
  }
  return {};
}

Outcome on_main(List& list, const Key& key, const Scene& scene, Size size) {
  View& view = list.view;
  const auto page =
      static_cast<std::ptrdiff_t>(std::max<std::size_t>(2, list.geometry.list_lines) - 1);
  switch (key.code) {
    case Code::kUp:
      list.move(-1);
      break;
    case Code::kDown:
      list.move(1);
      break;
    case Code::kPageUp:
      list.move(-page);
      break;
    case Code::kPageDown:
      list.move(page);
      break;
    case Code::kHome:
      list.select(0, true);
      break;
    case Code::kEnd:
      list.select(static_cast<std::ptrdiff_t>(list.rows.size()), false);
      break;
    case Code::kTab:
      list.next_section();
      break;
    case Code::kEnter:
      if (const Row* row = list.selected(); row != nullptr) {
        view.selected = row->key;
        view.page = Page::kDetail;
        view.page_first = 0;
      }
      break;
    case Code::kEscape:
      view.wanted.filter.clear();
      break;
    case Code::kRedraw:
      return {.redraw = true};
    case Code::kClick:
      click(list, key, scene, size);
      break;
    case Code::kWheelUp:
    case Code::kWheelDown:
      wheel(list, key);
      break;
    case Code::kText:
      return on_main_text(list, key.text[0], scene);
    default:
      break;
  }
  return {};
}

Outcome on_page(List& list, const Key& key, const Scene& scene, Size size) {
  View& view = list.view;
  const Row* row = list.selected();
  const std::size_t rows = view.page == Page::kHelp ? help_page(scene, size.columns).size().rows
                           : row != nullptr ? detail_page(scene, *row, size.columns).size().rows
                                            : 0;
  const std::size_t lines = size.rows > 2 ? size.rows - 2 : 1;
  const std::size_t last = rows > lines ? rows - lines : 0;
  const auto scroll = [&](std::ptrdiff_t by) {
    const auto wanted = static_cast<std::ptrdiff_t>(std::min(view.page_first, last)) + by;
    view.page_first = static_cast<std::size_t>(
        std::clamp<std::ptrdiff_t>(wanted, 0, static_cast<std::ptrdiff_t>(last)));
  };
  const char c = key.code == Code::kText ? key.text[0] : '\0';
  if (key.code == Code::kUp || c == 'k') scroll(-1);
  if (key.code == Code::kDown || c == 'j') scroll(1);
  if (key.code == Code::kPageUp) scroll(-static_cast<std::ptrdiff_t>(lines));
  if (key.code == Code::kPageDown || c == ' ') scroll(static_cast<std::ptrdiff_t>(lines));
  if (key.code == Code::kHome) view.page_first = 0;
  if (key.code == Code::kEnd) view.page_first = last;
  if (key.code == Code::kWheelUp) scroll(-static_cast<std::ptrdiff_t>(kWheelRows));
  if (key.code == Code::kWheelDown) scroll(kWheelRows);
  if (key.code == Code::kRedraw) return {.redraw = true};
  const bool back = key.code == Code::kEscape || key.code == Code::kEnter ||
                    key.code == Code::kLeft || key.code == Code::kClick ||
                    key.code == Code::kBackspace || c == 'h' || c == '?';
  if (back) view.page = Page::kMain;
  if (c == 'q') return {.quit = true};
  return (is_deed(c) || c == 'l') && view.page == Page::kDetail ? on_main_text(list, c, scene)
                                                                : Outcome{};
}

}  // namespace

Outcome act(View& view, const Key& key, const Scene& scene, Size size) {
  view.message.clear();
  if (view.asked) {
    const bool yes = key.code == Code::kText && (key.text == "y" || key.text == "Y");
    Outcome outcome;
    if (yes) outcome.deed = std::move(view.asked);
    view.asked.reset();  // everything but yes means no
    return outcome;
  }
  if (view.draft) {
    type_filter(view, key);
    return {};
  }
  List list(view, scene, size);
  return view.page == Page::kMain ? on_main(list, key, scene, size)
                                  : on_page(list, key, scene, size);
}

}  // namespace mete::top
