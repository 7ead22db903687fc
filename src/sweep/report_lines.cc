// SPDX-License-Identifier: Apache-2.0
// Plots across the whole page (report_plots.h): parallel coordinates, and trials over cards and
// time. Their viewBox is 1120 wide; on a phone they scroll. Parallel coordinates are polylines in
// the order worst to best; the script of the page reads their points when an axis is brushed. On
// each card, a trial gets the first lane that is free when it starts; more than kMostBars bars
// would be no wider than a hair, and the mean number of trials at once is drawn instead.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/time.h"
#include "sweep/markup.h"
#include "sweep/report_plots.h"

namespace mete::sweep {

using core::sweep::TrialState;

namespace {

constexpr double kWide = 1120;

// ---- parallel coordinates ----------------------------------------------------------------------

struct Axis {
  std::string name;
  const Scale* scale;
  double x;
};

constexpr Area kLinesArea{84, 44, kWide - 84 - 66, 270};
constexpr double kUnused = 26;  // below the axis: the parameter is not in use

std::string axis_svg(const Axis& axis, bool first) {
  const Area& area = kLinesArea;
  std::string text = "<g class=\"axis\" tabindex=\"0\" role=\"group\" aria-label=\"" +
                     html_text(axis.name) + "\" data-x=\"" + place_text(axis.x) + "\"><path d=\"M" +
                     place_text(axis.x) + " " + place_text(area.top) + "v" +
                     place_text(area.height) + "\"/>";
  text += "<g class=\"name\">" + svg_text(axis.x, area.top - 14, "middle", clipped(axis.name, 16)) +
          "</g>";
  for (const Tick& tick : axis.scale->ticks(axis.scale->names() > 0 ? 14 : 6))
    text += svg_text(axis.x + (first ? -7 : 7), area.y(tick.part) + 4, first ? "end" : "start",
                     clipped(tick.text, 10));
  return text + "<rect class=\"brush\" x=\"" + place_text(axis.x - 11) + "\" y=\"0\" width=\"22\"" +
         " height=\"0\" rx=\"3\"/><rect class=\"hit\" x=\"" + place_text(axis.x - 20) + "\" y=\"" +
         place_text(area.top - 6) + "\" width=\"40\" height=\"" +
         place_text(area.height + kUnused + 12) + "\"/></g>\n";
}

}  // namespace

Plot parallel_plot(const Results& results, const std::vector<ParameterScale>& parameters) {
  std::vector<const ParameterScale*> used;
  for (const ParameterScale& parameter : parameters)
    if (parameter.used() > 1 && used.size() + 1 < kMostAxes) used.push_back(&parameter);
  if (used.empty() || results.plotted().empty()) return {};
  const Area& area = kLinesArea;
  const Scale metric = Scale::of_metric(results.values(), results.sweep().maximize);
  const auto x_of = [&](std::size_t i) {
    return area.x(static_cast<double>(i) / static_cast<double>(used.size()));
  };
  std::vector<std::size_t> shown = evenly(results.plotted(), kMostLines);
  std::reverse(shown.begin(), shown.end());
  std::string lines;
  bool unused = false;
  for (const std::size_t i : shown) {
    const TrialResult& result = results.all()[i];
    lines += "<polyline class=\"c" + std::to_string(result.level) + "\" points=\"";
    for (std::size_t k = 0; k < used.size(); ++k) {
      const std::optional<double> part = used[k]->part(*result.trial);
      unused = unused || !part;
      append_place(lines, x_of(k));
      lines += ',';
      append_place(lines, part ? area.y(*part) : area.y(0) + kUnused);
      lines += ' ';
    }
    append_place(lines, x_of(used.size()));
    lines += ',';
    append_place(lines, area.y(metric.part(result.value)));
    lines += "\"><title>trial " + std::to_string(result.trial->n) + ": " +
             number_text(result.value) + "</title></polyline>\n";
  }
  std::string svg = open_svg(kWide, area.top + area.height + kUnused + 16,
                             "parallel coordinates of the parameters and " + results.sweep().metric,
                             shown.size() > 150 ? "wide parallel many" : "wide parallel");
  svg += "<g class=\"lines\">" + lines + "</g>\n";
  for (std::size_t k = 0; k < used.size(); ++k)
    svg += axis_svg({used[k]->name(), &used[k]->scale(), x_of(k)}, k == 0);
  svg += axis_svg({results.sweep().metric, &metric, x_of(used.size())}, false);
  if (unused) svg += svg_text(area.left - 7, area.y(0) + kUnused + 4, "end", "not used");
  return {svg + "</svg>\n", shown_note(shown.size(), results.plotted().size(), "trials")};
}

// ---- trials over cards and time ----------------------------------------------------------------

namespace {

struct Span {
  const TrialResult* result;
  std::int64_t from_ms;
  std::int64_t to_ms;
  std::size_t lane = 0;
};

struct Card {
  std::string name;
  std::vector<Span> spans;  // by their begin
  std::size_t lanes = 0;
};

// The cards in the order of their indexes, trials without a card last.
std::vector<Card> cards_of(const Results& results) {
  std::map<std::uint64_t, Card> cards;
  for (const TrialResult& result : results.all()) {
    const wire::SweepDocument::Trial& trial = *result.trial;
    if (!trial.started) continue;
    const std::int64_t end = trial.ended ? trial.ended->ms : results.sweep().at.ms;
    const Span span{&result, trial.started->ms, std::max(end, trial.started->ms)};
    for (const std::uint32_t card : trial.cards) cards[card].spans.push_back(span);
    if (trial.cards.empty()) cards[UINT64_MAX].spans.push_back(span);
  }
  std::vector<Card> list;
  for (auto& [index, card] : cards) {
    card.name = index == UINT64_MAX ? "no card" : "card " + std::to_string(index);
    std::stable_sort(card.spans.begin(), card.spans.end(),
                     [](const Span& a, const Span& b) { return a.from_ms < b.from_ms; });
    std::vector<std::int64_t> free_at;  // of each lane
    for (Span& span : card.spans) {
      const auto lane = std::find_if(free_at.begin(), free_at.end(),
                                     [&](std::int64_t at) { return at <= span.from_ms; });
      span.lane = static_cast<std::size_t>(lane - free_at.begin());
      if (lane == free_at.end()) free_at.emplace_back();
      free_at[span.lane] = std::max(span.to_ms, span.from_ms + 1);
      if (free_at.size() > kMostLanes) break;  // not drawn as bars
    }
    card.lanes = free_at.size();
    list.push_back(std::move(card));
  }
  return list;
}

// Round durations since the beginning, at most eight.
std::vector<Tick> time_ticks(double seconds) {
  constexpr std::array kSteps{1,     2,     5,      10,     15,     30,      60,     120,
                              300,   600,   900,    1800,   3600,   7200,    14400,  21600,
                              43200, 86400, 172800, 432000, 864000, 2592000, 8640000};
  double step = kSteps.back();
  for (const int each : kSteps)
    if (seconds / each <= 8) {
      step = each;
      break;
    }
  std::vector<Tick> ticks;
  for (int i = 0; i <= 8 && i * step <= seconds; ++i)
    ticks.push_back({seconds > 0 ? i * step / seconds : 0,
                     base::duration_in_words(static_cast<std::int64_t>(i * step))});
  return ticks;
}

std::string time_axis(const Area& area, double seconds, const std::string& since) {
  std::string path;
  std::string text;
  for (const Tick& tick : time_ticks(seconds)) {
    path += "M" + place_text(area.x(tick.part)) + " " + place_text(area.top) + "v" +
            place_text(area.height + 4);
    text += svg_text(area.x(tick.part), area.top + area.height + 18, "middle", tick.text);
  }
  return "<path class=\"grid\" d=\"" + path + "\"/>" + text + "<g class=\"name\">" +
         svg_text(area.left + area.width, area.top + area.height + 36, "end", since) + "</g>\n";
}

std::string_view class_of(TrialState state) {
  switch (state) {
    case TrialState::kOk:
      return "s-ok";
    case TrialState::kFailed:
      return "s-failed";
    case TrialState::kStopped:
      return "s-stopped";
    default:
      return "s-running";
  }
}

struct TimeFrame {
  Area area;
  std::int64_t begin_ms = 0;
  std::int64_t end_ms = 0;
  double x(std::int64_t ms) const {
    const double all = std::max(1.0, static_cast<double>(end_ms - begin_ms));
    return area.x(std::clamp(static_cast<double>(ms - begin_ms) / all, 0.0, 1.0));
  }
};

std::string bars_of(const Card& card, const TimeFrame& frame, double y, double lane_height,
                    const std::string& metric) {
  std::string svg;
  for (const Span& span : card.spans) {
    const wire::SweepDocument::Trial& trial = *span.result->trial;
    const double x = frame.x(span.from_ms);
    const double width = std::max(1.2, frame.x(span.to_ms) - x - 0.8);
    const double top = y + lane_height * static_cast<double>(span.lane);
    std::string label = "trial " + std::to_string(trial.n) + ": " +
                        std::string(to_string(trial.state)) + ", " +
                        base::duration_in_words((span.to_ms - span.from_ms) / 1000);
    if (span.result->has_metric)
      label += ", " + clipped(metric, 30) + " " + number_text(span.result->value);
    svg += "<rect class=\"" + std::string(class_of(trial.state)) + "\" x=\"" + place_text(x) +
           "\" y=\"" + place_text(top + 0.5) + "\" width=\"" + place_text(width) + "\" height=\"" +
           place_text(std::max(1.0, lane_height - 1)) + "\"" +
           (lane_height > 8 ? " rx=\"2\"" : "") + "><title>" + html_text(label) +
           "</title></rect>\n";
    const std::string n = std::to_string(trial.n);
    if (lane_height >= 14 && width > 8 * static_cast<double>(n.size()) + 4)
      svg += "<text class=\"in\" x=\"" + place_text(x + 4) + "\" y=\"" +
             place_text(top + lane_height / 2 + 4) + "\">" + n + "</text>";
  }
  return svg;
}

// The mean number of trials in each of equal intervals, as an area of this height.
std::string course_of(const Card& card, const TimeFrame& frame, double y, double height) {
  constexpr std::size_t kIntervals = 280;
  std::vector<double> mean(kIntervals);
  const double all = std::max(1.0, static_cast<double>(frame.end_ms - frame.begin_ms));
  const auto place = [&](std::int64_t ms) {
    return std::clamp(static_cast<double>(ms - frame.begin_ms) / all, 0.0, 1.0) * kIntervals;
  };
  for (const Span& span : card.spans) {
    const double from = place(span.from_ms);
    const double to = place(span.to_ms);
    for (auto i = static_cast<std::size_t>(from); i < kIntervals; ++i) {
      const double covered =
          std::min(to, static_cast<double>(i + 1)) - std::max(from, static_cast<double>(i));
      if (covered <= 0) break;
      mean[i] += covered;
    }
  }
  const double most = std::max(1e-9, *std::max_element(mean.begin(), mean.end()));
  std::string path = "M" + place_text(frame.area.left) + " " + place_text(y + height);
  for (std::size_t i = 0; i < kIntervals; ++i) {
    path += "V" + place_text(y + height - (height - 4) * mean[i] / most) + "H" +
            place_text(frame.area.x(static_cast<double>(i + 1) / kIntervals));
  }
  path += "V" + place_text(y + height) + "Z";
  return svg_text(frame.area.left - 9, y + height / 2 + 20, "end", "≤ " + number_text(most, 2)) +
         "<path class=\"course\" d=\"" + path + "\"><title>" +
         html_text(card.name + ": at most " + number_text(most, 3) + " trials at once") +
         "</title></path>\n";
}

}  // namespace

Plot lanes_plot(const Results& results) {
  std::vector<Card> cards = cards_of(results);
  if (cards.empty()) return {};
  const std::size_t all_cards = cards.size();
  cards.resize(std::min(all_cards, kMostCards));
  std::size_t bars = 0;
  std::size_t lanes = 0;
  TimeFrame frame;
  frame.begin_ms = results.sweep().started.ms;
  for (const Card& card : cards) {
    bars += card.spans.size();
    lanes += card.lanes;
    for (const Span& span : card.spans) {
      frame.begin_ms = std::min(frame.begin_ms, span.from_ms);
      frame.end_ms = std::max(frame.end_ms, span.to_ms);
    }
  }
  const bool as_bars = bars <= kMostBars && lanes <= kMostLanes;
  const double lane_height =
      as_bars ? std::clamp(420.0 / static_cast<double>(std::max<std::size_t>(1, lanes)), 5.0, 18.0)
              : 0;
  constexpr double kGap = 10;
  constexpr double kCourse = 56;
  std::string body;
  frame.area = {70, 8, kWide - 70 - 20, 0};
  double y = frame.area.top;
  for (const Card& card : cards) {
    const double height = as_bars ? lane_height * static_cast<double>(card.lanes) : kCourse;
    body += svg_text(frame.area.left - 9, y + height / 2 + 4, "end", card.name);
    body += as_bars ? bars_of(card, frame, y, lane_height, results.sweep().metric)
                    : course_of(card, frame, y, height);
    y += height + kGap;
  }
  frame.area.height = y - frame.area.top - kGap / 2;
  const double seconds = static_cast<double>(frame.end_ms - frame.begin_ms) / 1000;
  std::string note = shown_note(cards.size(), all_cards, "cards");
  if (!as_bars)
    note = "How many trials ran at once on each card, the mean of each interval." +
           (note.empty() ? "" : " " + note);
  return {open_svg(kWide, y + 44, "trials over cards and time", "wide") +
              time_axis(frame.area, seconds, "since " + moment_text(WallTime{frame.begin_ms})) +
              body + "</svg>\n",
          note};
}

}  // namespace mete::sweep
