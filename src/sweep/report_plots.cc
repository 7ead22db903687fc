// SPDX-License-Identifier: Apache-2.0
// See report_plots.h. Plots that lie in two columns of the page have a viewBox 480 wide, so that
// their text is readable on a phone too. A mark is as short as possible, since there are up to
// 2,000 of them: a path per kind of mark where no text for the pointer is needed, otherwise an
// element with a class for its colour. The best results are always among the marks, and are drawn
// last.
#include "sweep/report_plots.h"

#include <algorithm>
#include <cmath>

#include "sweep/markup.h"

namespace mete::sweep {

using core::sweep::TrialState;

// ---- common parts ------------------------------------------------------------------------------

std::string open_svg(double width, double height, const std::string& title,
                     const std::string& kind) {
  return "<svg" + (kind.empty() ? "" : " class=\"" + kind + "\"") + " viewBox=\"0 0 " +
         place_text(width) + " " + place_text(height) + "\" role=\"img\" aria-label=\"" +
         html_text(title) + "\">\n";
}

std::string svg_text(double x, double y, std::string_view anchor, const std::string& text) {
  return "<text x=\"" + place_text(x) + "\" y=\"" + place_text(y) + "\" text-anchor=\"" +
         std::string(anchor) + "\">" + html_text(text) + "</text>";
}

std::string axes(const Area& area, const std::vector<Tick>& across, const std::vector<Tick>& up,
                 const std::string& name_across, const std::string& name_up) {
  std::string path;
  std::string text;
  for (const Tick& tick : up) {
    path += "M" + place_text(area.left) + " " + place_text(area.y(tick.part)) + "h" +
            place_text(area.width);
    text += svg_text(area.left - 7, area.y(tick.part) + 4, "end", clipped(tick.text, 9));
  }
  const std::size_t room = across.empty() ? 10 : 66 / across.size();
  for (const Tick& tick : across) {
    path += "M" + place_text(area.x(tick.part)) + " " + place_text(area.top + area.height) + "v4";
    // A number at the right end stays within the picture.
    const bool end = tick.part > 0.97 && tick.text.size() > 3;
    text += svg_text(area.x(tick.part) + (end ? 12 : 0), area.top + area.height + 17,
                     end ? "end" : "middle", clipped(tick.text, std::max<std::size_t>(3, room)));
  }
  text += "<g class=\"name\">" +
          svg_text(area.left + area.width, area.top + area.height + 34, "end",
                   clipped(name_across, 40)) +
          svg_text(4, area.top - 4, "start", clipped(name_up, 40)) + "</g>";
  return "<path class=\"grid\" d=\"" + path + "\"/>" + text + "\n";
}

std::string shown_note(std::size_t shown, std::size_t all, std::string_view what) {
  if (shown >= all) return "";
  return count_text(shown) + " of " + count_text(all) + " " + std::string(what) + " are shown.";
}

Area half_area(double height) {
  constexpr double kTop = 26;  // the name of the vertical axis is above it
  constexpr double kBottom = 42;
  return {58, kTop, kHalfWidth - 58 - 14, height - kTop - kBottom};
}

std::string label_of(const TrialResult& result, const std::string& metric) {
  return "trial " + std::to_string(result.trial->n) + ": " + clipped(metric, 30) + " " +
         number_text(result.value);
}

std::string titled(const std::string& text) { return "><title>" + html_text(text) + "</title></"; }

std::string swatch(const std::string& of_class, const std::string& text) {
  std::string html = "<span><i class=\"";
  html.append(of_class).append("\"></i>").append(html_text(text)).append("</span>");
  return html;
}

std::vector<std::size_t> drawn(const Results& results, std::size_t most) {
  std::vector<std::size_t> chosen = evenly(results.plotted(), most);
  std::reverse(chosen.begin(), chosen.end());
  return chosen;
}

std::string beyond_note(const Results& results, const Scale& scale) {
  std::size_t count = 0;
  for (const std::size_t i : results.plotted())
    if (!scale.shows(results.all()[i].value)) ++count;
  if (count == 0) return "";
  return count == 1 ? "1 result is beyond the axis, at its edge."
                    : count_text(count) + " results are beyond the axis, at its edge.";
}

namespace {

std::string both(const std::string& a, const std::string& b) {
  return a.empty() || b.empty() ? a + b : a + " " + b;
}

// A line of steps through the records, to the last trial.
std::string best_line(const Results& results, const Area& area, const Scale& across,
                      const Scale& up) {
  const std::vector<std::size_t> records = evenly(results.records(), kMostMarks);
  if (records.empty()) return "";
  std::string path;
  for (const std::size_t i : records) {
    const TrialResult& result = results.all()[i];
    const double x = area.x(across.part(static_cast<double>(result.trial->n)));
    const std::string y = place_text(area.y(up.part(result.value)));
    path += path.empty() ? "M" + place_text(x) + " " + y : "H" + place_text(x) + "V" + y;
  }
  path += "H" + place_text(area.left + area.width);
  return "<path class=\"bestline\" d=\"" + path + "\"/>\n";
}

}  // namespace

// ---- metric over trials ------------------------------------------------------------------------

Plot metric_plot(const Results& results) {
  if (results.plotted().empty()) return {};
  const std::string& metric = results.sweep().metric;
  constexpr double kHeight = 290;
  const Area area = half_area(kHeight);
  const double last = static_cast<double>(results.all().back().trial->n);
  const Scale across = Scale::of_counts(0, std::max(last, 2.0));
  const Scale up = Scale::of_metric(results.values(), results.sweep().maximize);
  std::string svg = open_svg(kHalfWidth, kHeight, metric + " of each trial, with the best so far") +
                    axes(area, across.ticks(6), up.ticks(6), "trial", metric);
  // Failed trials are ticks below the axis.
  std::vector<double> failed;
  for (const TrialResult& result : results.all())
    if (result.trial->state == TrialState::kFailed)
      failed.push_back(area.x(across.part(static_cast<double>(result.trial->n))));
  std::string path;
  for (const double x : evenly(failed, kMostMarks / 4))
    path += "M" + place_text(x) + " " + place_text(area.top + area.height) + "v-6";
  if (!path.empty()) svg += "<path class=\"failed\" d=\"" + path + "\"/>\n";
  const std::vector<std::size_t> marks = drawn(results, kMostMarks);
  const char* const radius = marks.size() > 500 ? "2" : marks.size() > 100 ? "2.8" : "3.6";
  for (const std::size_t i : marks) {
    const TrialResult& result = results.all()[i];
    svg += "<circle class=\"c" + std::to_string(result.level) + (result.counts ? "" : " hollow") +
           "\" cx=\"";
    append_place(svg, area.x(across.part(static_cast<double>(result.trial->n))));
    svg += "\" cy=\"";
    append_place(svg, area.y(up.part(result.value)));
    svg += "\" r=\"" + std::string(radius) + "\"" + titled(label_of(result, metric)) + "circle>\n";
  }
  svg += best_line(results, area, across, up);
  return {svg + "</svg>\n", both(shown_note(marks.size(), results.plotted().size(), "trials"),
                                 beyond_note(results, up))};
}

// ---- learning curves ---------------------------------------------------------------------------

std::vector<std::uint64_t> curves_shown(const Results& results) {
  constexpr std::size_t kBest = 10;
  std::vector<std::uint64_t> shown;
  std::vector<std::uint64_t> rest;
  for (const std::size_t i : results.ranked())
    if (const wire::SweepDocument::Trial& trial = *results.all()[i].trial;
        trial.state != TrialState::kPending)
      (shown.size() < kBest ? shown : rest).push_back(trial.n);
  for (const std::uint64_t n : evenly(rest, kMostCurves - kBest)) shown.push_back(n);
  return shown;
}

namespace {

constexpr std::size_t kHighlighted = 5;
constexpr std::size_t kMostPoints = 200;  // of a curve
constexpr double kCurveReach = 6;         // curves begin far from where they end

std::vector<CurvePoint> finite_points(const std::vector<CurvePoint>& points) {
  std::vector<CurvePoint> finite;
  for (const CurvePoint& point : points)
    if (std::isfinite(point.step) && std::isfinite(point.value)) finite.push_back(point);
  return evenly(finite, kMostPoints);
}

}  // namespace

Plot curves_plot(const Results& results, const Curves& curves) {
  struct Line {
    const TrialResult* result;
    std::vector<CurvePoint> points;
  };
  std::vector<Line> lines;
  std::vector<double> values;
  double first = 0;
  double last = 0;
  for (const std::uint64_t n : curves_shown(results)) {
    const auto found = curves.find(n);
    if (found == curves.end()) continue;
    const auto result =
        std::lower_bound(results.all().begin(), results.all().end(), n,
                         [](const TrialResult& a, std::uint64_t b) { return a.trial->n < b; });
    Line line{&*result, finite_points(found->second)};
    if (line.points.empty()) continue;
    for (const CurvePoint& point : line.points) {
      first = values.empty() ? point.step : std::min(first, point.step);
      last = values.empty() ? point.step : std::max(last, point.step);
      values.push_back(point.value);
    }
    lines.push_back(std::move(line));
  }
  if (lines.empty()) return {};
  constexpr double kHeight = 290;
  const Area area = half_area(kHeight);
  const Scale across = Scale::of_numbers(first, last, false);
  const Scale up = Scale::of_metric(std::move(values), results.sweep().maximize, kCurveReach);
  std::string svg = open_svg(kHalfWidth, kHeight, "learning curves: " + results.sweep().metric) +
                    axes(area, across.ticks(6), up.ticks(6), "step", results.sweep().metric);
  std::string key;
  for (std::size_t i = lines.size(); i-- > 0;) {  // the best last
    const Line& line = lines[i];
    std::string path;
    for (const CurvePoint& point : line.points) {
      path += path.empty() ? "M" : " ";
      append_place(path, area.x(across.part(point.step)));
      path += ' ';
      append_place(path, area.y(up.part(point.value)));
    }
    if (line.points.size() == 1) path += "h3";
    const bool best = i < kHighlighted && line.result->plotted;
    if (best)
      key.insert(0,
                 swatch("k" + std::to_string(i), "trial " + std::to_string(line.result->trial->n)));
    svg += "<path class=\"curve" + std::string(best ? " best k" + std::to_string(i) : "") +
           "\" d=\"" + path + "\"" +
           titled("trial " + std::to_string(line.result->trial->n) + ": " +
                  number_text(line.points.back().value) + " at step " +
                  number_text(line.points.back().step)) +
           "path>\n";
  }
  std::size_t all = 0;
  for (const TrialResult& result : results.all())
    if (result.trial->state != TrialState::kPending) ++all;
  return {svg + "</svg>\n", shown_note(curves_shown(results).size(), all, "curves"), key};
}

}  // namespace mete::sweep
