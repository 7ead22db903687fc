// SPDX-License-Identifier: Apache-2.0
// See panes.h. Each column has a wanted width, from its contents, and a rank; on a narrow screen
// the columns with the highest rank are dropped first, and the text at the end takes the rest. The
// sorted column is never dropped: its title has the arrow. Bars are drawn last, over the colours of
// a selected row.
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

using core::JobState;
using Kind = Row::Kind;

enum class What {
  kId,
  kUser,
  kName,
  kState,
  kCard,
  kBar,
  kMemory,
  kUtil,
  kPast,
  kIdle,
  kTime,
  kText
};

struct Place {
  What what = What::kText;
  std::size_t column = 0;
  std::size_t width = 0;
  bool right = false;
};

std::optional<Sort> sort_of(What what) {
  switch (what) {
    case What::kId:
      return Sort::kId;
    case What::kUser:
      return Sort::kUser;
    case What::kName:
      return Sort::kName;
    case What::kState:
      return Sort::kState;
    case What::kCard:
      return Sort::kCard;
    case What::kBar:
    case What::kMemory:
      return Sort::kMemory;
    case What::kUtil:
    case What::kPast:
      return Sort::kUtil;
    case What::kIdle:
      return Sort::kIdle;
    case What::kTime:
      return Sort::kTime;
    case What::kText:
      return std::nullopt;
  }
  return std::nullopt;
}

std::string_view title_of(What what) {
  constexpr std::array<std::string_view, 12> kTitles{"ID",   "USER", "NAME",   "STATE",
                                                     "CARD", "",     "MEMORY", "UTIL",
                                                     "",     "IDLE", "TIME",   "COMMAND OR WAIT"};
  return kTitles[static_cast<std::size_t>(what)];
}

std::string id_of(const Row& row) {
  if (row.process != nullptr) return std::to_string(row.process->pid);
  if (row.job != nullptr) return to_string(row.job->view.job.id);
  if (row.foreign != nullptr) return row.foreign->pid ? std::to_string(*row.foreign->pid) : "-";
  return row.share->id;
}

std::string memory_of(const Row& row) {
  if (row.waits) {
    const core::Job& job = row.job->view.job;
    return job.grant.empty() ? wire::request_text(job) : wire::gpu_text(job);
  }
  const std::string used = row.used ? base::tenths_of_gib(*row.used) : "?";
  if (row.granted) return used + "/" + base::tenths_of_gib(*row.granted) + "G";
  return row.used ? used + "G" : "";
}

std::string idle_of(const Row& row, WallTime now) {
  const std::optional<WallTime> since = idle_since(row);
  return since ? base::brief_duration(*since, now) : "";
}

std::string time_of(const Row& row, WallTime now) {
  const std::optional<std::int64_t> seconds = seconds_of(row, now);
  return seconds ? base::clock_duration(*seconds) : "";
}

// The daemon reports something about it: memory outside its meter, or idleness.
bool is_remarkable(const Row& row) {
  return row.kind == Kind::kJob && !row.waits && !row.job->view.remark.empty() &&
         row.job->view.job.state != JobState::kParked;
}

// "│ └─ python"
std::string branched_name(const Row& row, const Signs& signs) {
  std::string text;
  for (const char level : row.branch) {
    const bool begins = level == '+' || level == '`';
    text += level == '+'   ? signs.branch
            : level == '`' ? signs.last_branch
            : level == '|' ? signs.stem
                           : " ";
    text += begins ? " " : "  ";
  }
  return text + name_of(row);
}

// The width of the widest row, within bounds.
template <class Text>
std::size_t widest(const std::vector<Row>& rows, std::size_t least, std::size_t most,
                   const Text& text) {
  std::size_t width = least;
  for (const Row& row : rows)
    if (row.kind != Kind::kSection) width = std::max(width, base::columns_of(text(row)));
  return std::min(width, most);
}

// From left to right; the text at the end takes the rest.
std::vector<Place> places_of(const std::vector<Row>& rows, const Wanted& wanted,
                             std::size_t columns) {
  const bool wide = columns >= 120;
  const bool tree =
      std::any_of(rows.begin(), rows.end(), [](const Row& row) { return !row.branch.empty(); });
  const auto name = [](const Row& row) { return branched_name(row, top::signs(true)); };
  struct Wish {
    Place place;
    int rank;  // the highest is dropped first
  };
  std::vector<Wish> wishes{
      {{What::kId, 0, widest(rows, 3, 9, id_of), true}, 0},
      {{What::kUser, 0, widest(rows, 4, wide ? 12 : 8, user_of)}, 6},
      {{What::kName, 0, widest(rows, 5, (wide ? 24u : 14u) + (tree ? 8u : 0u), name)}, 1},
      {{What::kState, 0, widest(rows, 6, 9, state_of)}, 3},
      {{What::kCard, 0,
        widest(rows, 4, 8, [](const Row& row) { return base::number_ranges(row.cards); })},
       5},
      {{What::kBar, 0, columns >= 160 ? 16u : 10u}, columns >= 100 ? 8 : 12},
      {{What::kMemory, 0, widest(rows, 6, 13, memory_of), true}, 2},
      {{What::kUtil, 0, 4, true}, 4},
      {{What::kPast, 0, columns >= 180 ? 16u : 10u}, columns >= 140 ? 9 : 11},
      {{What::kIdle, 0, 4, true}, 10},
      {{What::kTime, 0, 8, true}, 7}};
  // The sorted column has room for the arrow beside its title.
  for (Wish& wish : wishes)
    if (sort_of(wish.place.what) == wanted.sort && !title_of(wish.place.what).empty()) {
      wish.place.width = std::max(wish.place.width, title_of(wish.place.what).size() + 1);
      wish.rank = 0;
    }
  constexpr std::size_t kLeastText = 16;  // "~14:20, 2 ahead"
  const auto taken = [&wishes] {
    std::size_t sum = 1;  // the mark
    for (const Wish& wish : wishes) sum += wish.place.width + 1;
    return sum;
  };
  // The text at the end is worth more than pictures and the idle time.
  constexpr int kWordsRank = 6;
  while (wishes.size() > 1) {
    const auto last = std::max_element(
        wishes.begin(), wishes.end(), [](const Wish& a, const Wish& b) { return a.rank < b.rank; });
    const std::size_t words = last->rank > kWordsRank ? kLeastText : 0;
    if (taken() + words <= columns && last->rank <= 10) break;
    wishes.erase(last);
  }
  std::vector<Place> places;
  std::size_t column = 2;
  for (const Wish& wish : wishes) {
    places.push_back(wish.place);
    places.back().column = column;
    column += wish.place.width + 1;
  }
  if (column + 8 <= columns) places.push_back({What::kText, column, columns - column, false});
  return places;
}

void draw_titles(Canvas& canvas, std::size_t row, const std::vector<Place>& places,
                 const Wanted& wanted, const Signs& signs) {
  for (const Place& place : places) {
    std::string title(title_of(place.what));
    const std::optional<Sort> sort = sort_of(place.what);
    const bool sorted = sort == wanted.sort && !title.empty();
    if (sorted) title += wanted.reverse ? signs.down : signs.up;
    const Style style{Colour::kTitle, sorted};
    if (place.right && base::columns_of(title) <= place.width)
      canvas.put_right({row, place.column + place.width}, title, style);
    else
      canvas.put({row, place.column}, title, style, place.width);
  }
}

struct ListPen {
  Canvas& canvas;
  const Scene& scene;
  const std::vector<Place>& places;
  const Signs& signs;

  WallTime now() const { return scene.snapshot.at; }

  void section(std::size_t row, const std::string& title) const {
    for (std::size_t column = 0; column < canvas.size().columns; ++column)
      canvas.set({row, column}, signs.line, {Colour::kFaint});
    canvas.put({row, 2}, " " + title + " ", {Colour::kTitle});
  }

  std::string text_of(const Row& row, const Place& place) const {
    switch (place.what) {
      case What::kId:
        return id_of(row);
      case What::kUser:
        return row.process == nullptr ? user_of(row) : "";
      case What::kName:
        return branched_name(row, signs);
      case What::kState:
        return state_of(row);
      case What::kCard:
        return row.waits ? "" : base::number_ranges(row.cards);
      case What::kMemory:
        return memory_of(row);
      case What::kUtil:
        return row.utilisation_pct ? std::to_string(*row.utilisation_pct) + "%" : "";
      case What::kIdle:
        return idle_of(row, now());
      case What::kTime:
        return time_of(row, now());
      case What::kText:
        return last_words(row, now(), place.width);
      case What::kBar:
      case What::kPast:
        return "";
    }
    return "";
  }

  Style style_of(const Row& row, What what) const {
    const bool ours = row.kind == Kind::kJob;
    if (what == What::kState && row.kind == Kind::kForeign) return {Colour::kForeign};
    if (what == What::kState && ours) return {colour_of_state(row.job->view.job.state)};
    if (what == What::kId) return {ours ? Colour::kAccent : Colour::kFaint, ours};
    if (what == What::kIdle) return {Colour::kWarn};
    if (what == What::kUtil) return {colour_of_load(row.utilisation_pct.value_or(0))};
    if (what == What::kText && is_remarkable(row)) return {Colour::kHot};
    if (what == What::kText && (row.waits || !ours))
      return {row.waits ? Colour::kWarn : Colour::kFaint};
    const bool on_card = row.process != nullptr && row.process->card;
    if (what == What::kName) return {ours || on_card ? Colour::kText : Colour::kFaint, ours};
    return {ours || what == What::kMemory ? Colour::kText : Colour::kFaint};
  }

  void draw_words(std::size_t line, const Row& row) const {
    for (const Place& place : places) {
      const std::string text = text_of(row, place);
      const Style style = style_of(row, place.what);
      if (place.right && base::columns_of(base::printable(text)) <= place.width)
        canvas.put_right({line, place.column + place.width}, text, style);
      else
        canvas.put({line, place.column}, text, style, place.width);
    }
  }

  void draw_pictures(std::size_t line, const Row& row) const {
    for (const Place& place : places) {
      const At at{line, place.column};
      if (place.what == What::kBar && row.granted)
        draw_grant_bar(canvas, at, place.width, row.used, *row.granted, Colour::kOne, signs);
      if (place.what == What::kPast) draw_past(at, place.width, row);
    }
  }

  void draw_past(At at, std::size_t width, const Row& row) const {
    if (row.kind != Kind::kJob || row.waits) return;
    const core::JobId id = row.job->view.job.id;
    if (const wire::Series* past = utilisation_of(scene.snapshot, id); past != nullptr)
      draw_history(canvas, at, width, *past, 100, Colour::kGood, signs);
  }
};

}  // namespace

Colour colour_of_state(JobState state) {
  switch (state) {
    case JobState::kRunning:
      return Colour::kGood;
    case JobState::kParking:
    case JobState::kParked:
    case JobState::kUnparking:
      return Colour::kOther;
    case JobState::kStopping:
      return Colour::kHot;
    default:
      return Colour::kWarn;
  }
}

std::string last_words(const Row& row, WallTime now, std::size_t width) {
  if (row.kind == Kind::kForeign) return row.foreign->pid ? "" : "claimed by another daemon";
  if (row.kind != Kind::kJob) return "";
  const std::string reason = wire::reason_text(row.job->view, now);
  if (reason.empty()) return command_of(row);
  if (is_remarkable(row)) return "! " + reason;
  if (!row.waits) return reason;
  // The forecast and the place come first; the reason follows if there is room for some of it.
  constexpr std::size_t kSomeWords = 12;
  const std::string brief = wire::brief_reason(row.job->view, row.place, now);
  if (brief.empty()) return reason;
  return base::columns_of(brief) + 2 + kSomeWords > width ? brief : brief + "; " + reason;
}

std::optional<Sort> sort_at(const Scene& scene, const View& view, Size size, std::size_t column) {
  for (const Place& place :
       places_of(rows_of(scene.snapshot, view.wanted), view.wanted, size.columns))
    if (column >= place.column && column < place.column + place.width) return sort_of(place.what);
  return std::nullopt;
}

void draw_list(Canvas& canvas, const Scene& scene, const View& view, const Geometry& geometry,
               const std::vector<Row>& rows) {
  const Signs& signs = top::signs(scene.setting.unicode);
  const std::vector<Place> places = places_of(rows, view.wanted, canvas.size().columns);
  if (geometry.titles) draw_titles(canvas, geometry.list_top - 1, places, view.wanted, signs);
  if (rows.empty()) {
    canvas.put({geometry.list_top, 4},
               view.wanted.filter.empty() ? "no job waits or runs" : "no row matches the filter",
               {Colour::kFaint});
    return;
  }
  const ListPen pen{canvas, scene, places, signs};
  const Window window = window_of(rows, view, geometry.list_lines);
  const std::optional<std::size_t> selected = selected_row(rows, view);
  for (std::size_t i = 0; i < window.rows; ++i) {
    const Row& row = rows[window.first + i];
    const std::size_t line = geometry.list_top + i;
    if (row.kind == Kind::kSection) {
      pen.section(line, row.title);
      continue;
    }
    pen.draw_words(line, row);
    if (window.first + i == selected && !scene.setting.once) {
      canvas.set({line, 0}, signs.mark, {Colour::kText, true});
      canvas.invert_row(line);
    }
    pen.draw_pictures(line, row);  // a bar looks the same on every row
  }
  if (window.below > 0)
    canvas.put({geometry.list_top + window.rows, 4},
               "… " + std::to_string(window.below) + " more below", {Colour::kFaint});
}

}  // namespace mete::top
