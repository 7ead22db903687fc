// SPDX-License-Identifier: Apache-2.0
// See panes.h. A card takes two lines if there is room, otherwise one. The two-line form has the
// name and the gauges above, the bar and the figures below; the one-line form has as many of the
// figures as the width allows. The heading explains the signs.
#include <algorithm>
#include <string>

#include "base/brief.h"
#include "base/columns.h"
#include "top/panes.h"

namespace mete::top {

namespace {

using wire::CardView;
using wire::Snapshot;

constexpr double kStaleS = 5;  // then the daemon grants nothing

std::string percent(const std::optional<unsigned>& value) {
  return value ? std::to_string(*value) + "%" : "?";
}

std::string temperature(const CardView& card, const Signs& signs) {
  if (!card.temperature_c) return "";
  return std::to_string(*card.temperature_c) + std::string(signs.degree) + "C";
}

std::string power(const CardView& card) {
  if (!card.power_w) return "";
  std::string text = std::to_string(static_cast<int>(*card.power_w));
  if (card.power_limit_w) text += "/" + std::to_string(static_cast<int>(*card.power_limit_w));
  return text + "W";
}

std::string gib(const std::optional<Bytes>& bytes) {
  return bytes ? base::tenths_of_gib(*bytes) : "?";
}

// What is wrong with the card; "": nothing.
std::string trouble_of(const CardView& card) {
  if (card.state == "lost") return "lost: fell off the bus or needs a reset";
  if (!card.unusable.empty()) return "unusable: " + card.unusable;
  if (card.reading_age_s.value_or(0) > kStaleS)
    return "read " + base::brief_duration(static_cast<std::int64_t>(*card.reading_age_s)) + " ago";
  return card.state == "drained" ? "drained: no new jobs" : "";
}

std::optional<unsigned> used_pct(const CardView& card) {
  if (!card.used || !card.total || card.total->is_zero()) return std::nullopt;
  const std::optional<Bytes> scaled = card.used->checked_scale(100, card.total->count());
  return scaled ? std::optional(static_cast<unsigned>(scaled->count())) : std::nullopt;
}

std::uint32_t mib_of(const CardView& card) {
  return static_cast<std::uint32_t>(card.total.value_or(Bytes()).count() >> 20);
}

// "util  96% ⣿⣿⣷⣶": a figure and its course, within `width`.
struct Gauge {
  std::string_view label;
  std::optional<unsigned> value;
  const wire::Series* series;
  std::uint32_t most;
};
void draw_gauge(Canvas& canvas, At where, std::size_t width, const Gauge& gauge, Colour colour,
                const Signs& signs) {
  constexpr std::size_t kFigure = 5;
  canvas.put(where, gauge.label, {Colour::kFaint});
  where.column += gauge.label.size() + kFigure;
  const Style style{gauge.value ? colour_of_load(*gauge.value) : Colour::kFaint,
                    gauge.value.value_or(0) >= 50};
  canvas.put_right(where, percent(gauge.value), style);
  const std::size_t taken = gauge.label.size() + kFigure + 1;
  if (gauge.series == nullptr || width < taken + 4) return;
  draw_history(canvas, {where.row, where.column + 1}, width - taken, *gauge.series, gauge.most,
               colour, signs);
}

struct CardPen {
  Canvas& canvas;
  const Snapshot& snapshot;
  const Signs& signs;
  std::size_t name_width;  // of the widest
  std::size_t power_width;

  std::size_t width() const { return canvas.size().columns; }

  void head(At at, const CardView& card) const {
    canvas.put_right({at.row, 3}, std::to_string(card.index), {Colour::kAccent, true});
    canvas.put({at.row, 4}, card.name, {Colour::kText, true}, name_width);
  }

  // Two lines.
  void draw_roomy(std::size_t row, const CardView& card) const {
    head({row, 0}, card);
    std::size_t column = 4 + name_width + 1;
    const std::string trouble = trouble_of(card);
    canvas.put_right({row, column + 5}, temperature(card, signs), {heat_colour(card)});
    canvas.put_right({row, column + 6 + power_width}, power(card), {Colour::kFaint});
    column += 6 + power_width + 2;
    if (!trouble.empty()) {
      canvas.put({row, column}, "! " + trouble, {Colour::kHot, true}, width() - column - 1);
    } else {
      const std::size_t half = (width() - 1 - column) / 2;
      draw_gauge(canvas, {row, column}, half - 2,
                 {"util", card.utilisation_pct, utilisation_of(snapshot, card.uuid), 100},
                 Colour::kGood, signs);
      draw_gauge(canvas, {row, column + half}, half,
                 {"mem", used_pct(card), used_of(snapshot, card.uuid), mib_of(card)}, Colour::kOne,
                 signs);
    }
    draw_memory(row + 1, card);
  }

  void draw_memory(std::size_t row, const CardView& card) const {
    const bool wide = width() >= 104;
    struct Part {
      std::string figure;
      std::string_view word;
    };
    std::vector<Part> parts{{gib(card.used), wide ? " used  " : "/"}};
    if (wide) parts.push_back({base::tenths_of_gib(card.granted), " granted  "});
    if (wide) parts.push_back({base::tenths_of_gib(card.grantable), " free for jobs  "});
    parts.push_back({gib(card.total), wide ? " GiB" : " GiB  "});
    if (!wide) parts.push_back({base::tenths_of_gib(card.grantable), " free"});
    // Figures of five columns each, so that they are aligned.
    std::size_t taken = 0;
    for (const Part& part : parts)
      taken += std::max<std::size_t>(5, part.figure.size()) + part.word.size();
    const std::size_t begin = width() > taken + 2 ? width() - taken - 1 : width();
    std::size_t column = begin;
    for (const Part& part : parts) {
      column += std::max<std::size_t>(5, part.figure.size());
      canvas.put_right({row, column}, part.figure, {Colour::kText});
      column += canvas.put({row, column}, part.word, {Colour::kFaint});
    }
    if (begin > 4 + 10) draw_card_bar(canvas, {row, 4}, begin - 4 - 1, card, signs);
  }

  // One line: as much of it as there is room for.
  void draw_compact(std::size_t row, const CardView& card) const {
    canvas.put_right({row, 3}, std::to_string(card.index), {Colour::kAccent, true});
    std::size_t column = 4;
    if (width() >= 40) {
      canvas.put({row, column}, card.type.empty() ? card.name : card.type, {Colour::kText, true},
                 6);
      column += 7;
    }
    if (const std::string trouble = trouble_of(card); !trouble.empty()) {
      canvas.put({row, column}, "! " + trouble, {Colour::kHot, true});
      return;
    }
    if (width() >= 60) {
      canvas.put_right({row, column + 4}, temperature(card, signs), {heat_colour(card)});
      column += 5;
    }
    canvas.put_right({row, column + 4}, percent(card.utilisation_pct),
                     {colour_of_load(card.utilisation_pct.value_or(0))});
    column += 5;
    if (const wire::Series* past = utilisation_of(snapshot, card.uuid); width() >= 76 && past) {
      draw_history(canvas, {row, column}, width() >= 110 ? 16 : 8, *past, 100, Colour::kGood,
                   signs);
      column += (width() >= 110 ? 16 : 8) + 1;
    }
    std::string figures;
    if (width() >= 30) figures = gib(card.used) + "/" + gib(card.total) + "G";
    if (width() >= 70) {
      const std::string free = base::tenths_of_gib(card.grantable);
      figures += std::string(free.size() < 6 ? 7 - free.size() : 1, ' ') + free + " free";
    }
    const std::size_t right =
        width() - std::min(width(), figures.size() + (figures.empty() ? 0 : 1));
    if (right > column + 4) draw_card_bar(canvas, {row, column}, right - column - 1, card, signs);
    canvas.put({row, right}, figures, {Colour::kText});
  }

  static Colour heat_colour(const CardView& card) {
    const int heat = card.temperature_c.value_or(0);
    return heat >= 85 ? Colour::kHot : heat >= 75 ? Colour::kWarn : Colour::kFaint;
  }
};

void draw_heading(Canvas& canvas, std::size_t row, bool over, const Signs& signs) {
  for (std::size_t column = 0; column < canvas.size().columns; ++column)
    canvas.set({row, column}, signs.line, {Colour::kFaint});
  canvas.put({row, 2}, " CARDS ", {Colour::kTitle});
  struct Entry {
    std::string_view sign;
    std::string_view word;
    Colour colour;
  };
  std::vector<Entry> legend = {{signs.used, "used", Colour::kOne},
                               {signs.granted, "granted", Colour::kOne},
                               {signs.foreign, "outside", Colour::kForeign},
                               {signs.free, "free", Colour::kFaint}};
  // A rare sign is in the legend only when it occurs.
  if (over) legend.insert(legend.begin() + 2, {signs.over, "beyond its grant", Colour::kHot});
  std::size_t taken = 2;
  for (const Entry& entry : legend) taken += entry.word.size() + 3;
  if (canvas.size().columns < taken + 14) return;
  std::size_t column = canvas.size().columns - taken - 1;
  canvas.put({row, column++}, " ", {});
  for (const Entry& entry : legend) {
    canvas.set({row, column}, entry.sign, {entry.colour});
    canvas.set({row, column + 1}, " ", {});
    column += 2 + canvas.put({row, column + 2}, entry.word, {Colour::kFaint});
    canvas.set({row, column++}, " ", {});
  }
}

template <class Key>
const wire::Series* first_series(const std::map<Key, wire::Past>& all, const Key& key,
                                 std::vector<wire::Series> wire::Past::*figure) {
  const auto found = all.find(key);
  if (found == all.end() || (found->second.*figure).empty()) return nullptr;
  return &(found->second.*figure).front();
}

}  // namespace

Colour colour_of_load(unsigned percent) {
  return percent == 0 ? Colour::kFaint : percent >= 50 ? Colour::kGood : Colour::kText;
}

const wire::Series* utilisation_of(const Snapshot& snapshot, const std::string& uuid) {
  if (!snapshot.history) return nullptr;
  return first_series(snapshot.history->cards, uuid, &wire::Past::utilisation_pct);
}
const wire::Series* used_of(const Snapshot& snapshot, const std::string& uuid) {
  if (!snapshot.history) return nullptr;
  return first_series(snapshot.history->cards, uuid, &wire::Past::used_mib);
}
const wire::Series* utilisation_of(const Snapshot& snapshot, core::JobId job) {
  if (!snapshot.history) return nullptr;
  return first_series(snapshot.history->jobs, job, &wire::Past::utilisation_pct);
}
const wire::Series* used_of(const Snapshot& snapshot, core::JobId job) {
  if (!snapshot.history) return nullptr;
  return first_series(snapshot.history->jobs, job, &wire::Past::used_mib);
}

void draw_cards(Canvas& canvas, const Scene& scene, const View& view, const Geometry& geometry) {
  const std::vector<CardView>& cards = scene.snapshot.cards;
  const Signs& signs = top::signs(scene.setting.unicode);
  const bool over = std::any_of(cards.begin(), cards.end(),
                                [](const CardView& card) { return !card.over.is_zero(); });
  if (geometry.heading) draw_heading(canvas, geometry.cards_top - 1, over, signs);
  if (geometry.cards_lines == 0) return;
  if (cards.empty()) {
    const bool read = scene.snapshot.trouble.empty();
    canvas.put({geometry.cards_top, 4},
               read ? "this machine has no cards" : "no card could be read", {Colour::kFaint});
    return;
  }
  CardPen pen{canvas, scene.snapshot, signs, 6, 0};
  for (const CardView& card : cards) {
    pen.name_width =
        std::max(pen.name_width, std::min<std::size_t>(20, base::columns_of(card.name)));
    pen.power_width = std::max(pen.power_width, power(card).size());
  }
  const std::size_t places = geometry.cards_lines / geometry.lines_each;
  const bool all = places >= cards.size();
  const std::size_t shown = all ? cards.size() : places - (places > 1 ? 1 : 0);
  const std::size_t first = std::min(view.first_card, cards.size() - shown);
  for (std::size_t i = 0; i < shown; ++i) {
    const std::size_t row = geometry.cards_top + i * geometry.lines_each;
    if (geometry.lines_each == 2)
      pen.draw_roomy(row, cards[first + i]);
    else
      pen.draw_compact(row, cards[first + i]);
  }
  if (!all && places > 1)
    canvas.put({geometry.cards_top + shown * geometry.lines_each, 4},
               "… " + std::to_string(cards.size() - shown) + " more cards, [ and ] move",
               {Colour::kFaint});
}

}  // namespace mete::top
