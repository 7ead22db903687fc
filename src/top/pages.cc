// SPDX-License-Identifier: Apache-2.0
// See panes.h. Full-screen pages: the keys, and the details of one row. A Sheet draws labels and
// wrapped text from the top down, and is cut to the rows that were used; the caller scrolls it.
// Each kind of row has its own function for the details: a job, a process, a job of another user,
// something outside mete.
#include <algorithm>
#include <array>
#include <string>

#include "base/brief.h"
#include "base/columns.h"
#include "base/moment.h"
#include "base/text.h"
#include "top/panes.h"
#include "wire/job_text.h"

namespace mete::top {

namespace {

using Kind = Row::Kind;
using wire::Snapshot;

constexpr std::size_t kMostLines = 400;  // of a page

// Draws a page from its top down, and cuts it to what was drawn.
class Sheet {
 public:
  Sheet(std::size_t columns, const Signs& signs) : canvas_({columns, kMostLines}), signs_(signs) {}

  Canvas& canvas() { return canvas_; }
  std::size_t row() const { return row_; }
  std::size_t columns() const { return canvas_.size().columns; }
  const Signs& signs() const { return signs_; }

  void skip() { ++row_; }
  void title(std::string_view text) { canvas_.put({row_++, 2}, text, {Colour::kTitle, true}); }
  // A label, and text beside it that continues below.
  void line(std::string_view label, std::string_view words, Colour colour = Colour::kText) {
    if (words.empty()) return;
    canvas_.put({row_, 2}, label, {Colour::kFaint}, kLabel - 1);
    const std::size_t width = columns() > kLabel + 6 ? columns() - kLabel - 3 : 1;
    std::string rest = base::printable(words);
    while (!rest.empty() && row_ < kMostLines) {
      const std::size_t size = breaks_at(rest, width);
      canvas_.put({row_++, 2 + kLabel}, std::string_view(rest).substr(0, size), {colour});
      rest.erase(0, size);
      rest.erase(0, std::min(rest.find_first_not_of(' '), rest.size()));
    }
  }
  static constexpr std::size_t kLabel = 14;

  Canvas done() {
    Canvas page({columns(), std::min(row_, kMostLines)});
    for (std::size_t i = 0; i < page.size().rows; ++i) page.copy_row(i, canvas_, i);
    return page;
  }

 private:
  // The number of bytes that fit: up to a blank if there is one.
  static std::size_t breaks_at(std::string_view text, std::size_t width) {
    std::size_t used = 0, bytes = 0, blank = 0;
    while (bytes < text.size()) {
      const base::Glyph glyph = base::first_glyph(text.substr(bytes));
      if (used + glyph.columns > width) break;
      if (text[bytes] == ' ') blank = bytes;
      used += glyph.columns;
      bytes += glyph.bytes.size();
    }
    if (bytes == text.size()) return bytes;
    return std::max<std::size_t>(1, blank > 0 ? blank : bytes);
  }

  Canvas canvas_;
  const Signs& signs_;
  std::size_t row_ = 1;
};

std::string since(const std::optional<WallTime>& time, WallTime now) {
  if (!time) return "";
  return base::moment(*time, now) + ", " + base::distance(*time, now);
}

// One of its cards: its grant there, its use, its peak.
void draw_grants(Sheet& sheet, const Snapshot::Job& job) {
  const core::Job& known = job.view.job;
  for (std::size_t i = 0; i < known.grant.size() && sheet.row() + 1 < kMostLines; ++i) {
    const core::GrantedCard& card = known.grant[i];
    const std::optional<Bytes> used = i < job.view.used.size() ? job.view.used[i] : std::nullopt;
    std::string words = (used ? base::brief(*used) : "?") + " of " + base::brief(card.bytes);
    if (card.most > card.bytes) words += ", may grow to " + base::brief(card.most);
    if (card.whole) words += ", alone on its card";
    if (i < job.peaks.size() && job.peaks[i]) words += ", most " + base::brief(*job.peaks[i]);
    const std::size_t row = sheet.row();
    sheet.canvas().put({row, 2}, "card " + std::to_string(card.index), {Colour::kFaint});
    const std::size_t width = std::min<std::size_t>(40, sheet.columns() / 3);
    draw_grant_bar(sheet.canvas(), {row, 2 + Sheet::kLabel}, width, used, card.bytes, Colour::kOne,
                   sheet.signs());
    sheet.canvas().put({row, 2 + Sheet::kLabel + width + 1}, words, {});
    sheet.skip();
  }
}

void draw_past(Sheet& sheet, std::string_view label, const wire::Series* series, std::uint32_t most,
               Colour colour) {
  if (series == nullptr || series->values.empty() || sheet.columns() < Sheet::kLabel + 20) return;
  const std::size_t steps = series->values.size();
  const std::size_t cells = sheet.signs().braille ? (steps + 1) / 2 : steps;
  const std::size_t width = std::min(cells, sheet.columns() - Sheet::kLabel - 18);
  sheet.canvas().put({sheet.row(), 2}, label, {Colour::kFaint});
  draw_history(sheet.canvas(), {sheet.row(), 2 + Sheet::kLabel}, width, *series, most, colour,
               sheet.signs());
  const std::size_t shown = std::min(steps, width * (sheet.signs().braille ? 2 : 1));
  sheet.canvas().put({sheet.row(), 2 + Sheet::kLabel + width + 1},
                     base::brief_duration(static_cast<std::int64_t>(shown * series->step_s)),
                     {Colour::kFaint});
  sheet.skip();
}

void draw_processes(Sheet& sheet, const Snapshot::Job& job) {
  const auto on_card = [](const Snapshot::Process& process) { return process.card.has_value(); };
  if (std::none_of(job.processes.begin(), job.processes.end(), on_card)) return;
  sheet.skip();
  sheet.title("processes on its cards");
  for (const Snapshot::Process& process : job.processes) {
    if (sheet.row() + 1 >= kMostLines) return;
    if (!process.card) continue;
    std::string words = process.name.empty() ? "?" : process.name;
    words += ", card " + std::to_string(*process.card);
    words += ", " + (process.used ? base::brief(*process.used) : "?");
    if (process.utilisation_pct) words += ", " + std::to_string(*process.utilisation_pct) + "%";
    sheet.line(std::to_string(process.pid), words);
  }
}

void draw_job(Sheet& sheet, const Scene& scene, const Row& row) {
  const WallTime now = scene.snapshot.at;
  const Snapshot::Job& job = *row.job;
  const core::Job& known = job.view.job;
  const std::string name = base::printable(known.spec->name);
  sheet.title("job " + to_string(known.id) + (name.empty() ? " of " : "  " + name + " of ") +
              base::printable(known.spec->user));
  sheet.skip();
  sheet.line("state", to_string(known.state), colour_of_state(known.state));
  sheet.line("why", wire::reason_text(job.view, now), Colour::kWarn);
  if (row.place) sheet.line("in queue", "#" + std::to_string(*row.place));
  if (row.waits && job.view.forecast)
    sheet.line("starts", "about " + wire::forecast_text(*job.view.forecast, now));
  sheet.line("asks for", wire::gpu_text(known));
  sheet.line("submitted", since(known.submitted, now));
  sheet.line("started", since(known.started, now));
  sheet.line("idle since", since(job.view.idle_since, now), Colour::kWarn);
  if (known.spec->time_s)
    sheet.line("time limit", base::clock_duration(static_cast<std::int64_t>(*known.spec->time_s)));
  if (known.priority != 0) sheet.line("priority", std::to_string(known.priority));
  if (known.attempt > 1) sheet.line("attempt", std::to_string(known.attempt));
  sheet.line("folder", known.spec->folder);
  sheet.line("command", base::join(known.spec->command, " "));
  if (known.grant.empty()) return;
  sheet.skip();
  sheet.title("memory");
  draw_grants(sheet, job);
  const std::uint32_t mib = static_cast<std::uint32_t>(row.granted.value_or(Bytes()).count() >> 20);
  draw_past(sheet, "used", used_of(scene.snapshot, known.id), mib, Colour::kOne);
  if (job.utilisation_pct) sheet.line("utilisation", std::to_string(*job.utilisation_pct) + "%");
  draw_past(sheet, "utilisation", utilisation_of(scene.snapshot, known.id), 100, Colour::kGood);
  draw_processes(sheet, job);
}

void draw_other(Sheet& sheet, const Scene& scene, const Row& row) {
  sheet.title("job " + row.share->id + " of " + base::printable(row.share->user));
  sheet.skip();
  sheet.line("cards", base::number_ranges(row.cards));
  sheet.line("memory", (row.used ? base::brief(*row.used) : "?") + " of " +
                           (row.granted ? base::brief(*row.granted) : "?"));
  sheet.line("idle since", since(row.share->idle_since, scene.snapshot.at), Colour::kWarn);
  sheet.line("", "more about it is shown to its user, and to administrators", Colour::kFaint);
}

void draw_foreign(Sheet& sheet, const Row& row) {
  sheet.title("outside mete");
  sheet.skip();
  if (!row.foreign->pid) {
    sheet.line("", base::printable(row.foreign->user) + "'s own daemon has claimed memory here");
  } else {
    sheet.line("process", std::to_string(*row.foreign->pid));
    sheet.line("program", row.foreign->name);
    sheet.line("user", row.foreign->user);
    sheet.line("memory", row.used ? base::brief(*row.used) : "not known");
    sheet.line("", "its memory is never granted to a job", Colour::kFaint);
  }
  sheet.line("card", base::number_ranges(row.cards));
}

}  // namespace

Canvas help_page(const Scene& scene, std::size_t columns) {
  struct Help {
    std::string_view keys;
    std::string_view words;
  };
  constexpr std::array kMoves{
      Help{"Up Down", "select; a click selects, the wheel scrolls"},
      Help{"PgUp PgDn", "move by a screen"},
      Help{"Home End", "go to the first or last row"},
      Help{"Tab", "go to the next section: jobs, outside, waiting"},
      Help{"[ ]", "scroll the cards"},
      Help{"Enter", "details of the selected row; Esc goes back"},
      Help{"l", "follow the log of the job; Ctrl-C comes back"},
      Help{"t", "show the processes of each job as a tree"},
      Help{"s S r", "sort by the next column, the previous one, reverse"},
      Help{"/", "show only matching rows; Esc shows all"},
      Help{"Ctrl-L", "redraw"},
      Help{"h ?", "this page"},
      Help{"q Ctrl-C", "quit"},
  };
  constexpr std::array kDeeds{
      Help{"H R", "hold a waiting job, release it"},
      Help{"c", "cancel the job; asks first"},
      Help{"T K I", "send TERM, KILL or INT to your own processes; asks first"},
  };
  const Signs& signs = top::signs(scene.setting.unicode);
  Sheet sheet(columns, signs);
  sheet.title("keys");
  for (const Help& help : kMoves) sheet.line(help.keys, help.words);
  sheet.skip();
  sheet.title(scene.setting.readonly ? "with --readonly these do nothing" : "changes");
  for (const Help& help : kDeeds) sheet.line(help.keys, help.words);
  sheet.skip();
  sheet.title("the bar of a card");
  sheet.line(signs.used, "used, job by job");
  sheet.line(signs.granted, "granted, and not used");
  sheet.line(signs.over, "held by a job beyond its grant: not granted to others");
  sheet.line(signs.foreign, "used outside mete: never granted");
  sheet.line(signs.free, "free");
  return sheet.done();
}

Canvas detail_page(const Scene& scene, const Row& row, std::size_t columns) {
  Sheet sheet(columns, signs(scene.setting.unicode));
  if (row.job != nullptr)
    draw_job(sheet, scene, row);
  else if (row.foreign != nullptr)
    draw_foreign(sheet, row);
  else
    draw_other(sheet, scene, row);
  return sheet.done();
}

void draw_question(Canvas& canvas, const Deed& deed, const Signs& signs) {
  const Size size = canvas.size();
  const std::string words = base::printable(deed.question);
  const std::size_t width =
      std::min(size.columns, std::max<std::size_t>(24, base::columns_of(words) + 6));
  const std::size_t left = (size.columns - width) / 2;
  const std::size_t top = size.rows > 5 ? size.rows / 2 - 2 : 0;
  const Style edge{Colour::kWarn, true};
  for (std::size_t row = top; row < std::min(size.rows, top + 4); ++row)
    canvas.fill({row, left}, width, {});
  for (std::size_t column = left; column < left + width; ++column) {
    canvas.set({top, column}, signs.line, edge);
    canvas.set({top + 3, column}, signs.line, edge);
  }
  canvas.put({top + 1, left + 3}, words, {Colour::kText, true}, width > 4 ? width - 4 : width);
  const std::size_t column =
      left + 3 + canvas.put({top + 2, left + 3}, "y", {Colour::kAccent, true});
  canvas.put({top + 2, column}, " yes", {});
  const std::size_t next = column + 7;
  canvas.put({top + 2, next + canvas.put({top + 2, next}, "n", {Colour::kAccent, true})}, " no",
             {});
}

}  // namespace mete::top
