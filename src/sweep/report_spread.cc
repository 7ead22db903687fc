// SPDX-License-Identifier: Apache-2.0
// Plots of how results spread (report_plots.h): the histogram, boxes for each value of a parameter,
// and two parameters as axes. Whiskers of a box reach to the farthest result within 1.5 times the
// distance of the quartiles. Two listed parameters, or very many results, give cells with the mean
// of their results and of their colours; otherwise there is a mark for each result.
#include <algorithm>
#include <cmath>

#include "sweep/markup.h"
#include "sweep/report_plots.h"

namespace mete::sweep {

// ---- histogram ---------------------------------------------------------------------------------

Plot histogram_plot(const Results& results) {
  const std::vector<double> values = results.values();
  if (values.size() < 3) return {};
  constexpr double kHeight = 290;
  const Area area = half_area(kHeight);
  const Scale across = Scale::of_metric(values, results.sweep().maximize);
  const auto bins = static_cast<std::size_t>(
      std::clamp(2 * std::cbrt(static_cast<double>(values.size())), 5.0, 40.0));
  std::vector<std::size_t> counts(bins);
  for (const double value : values)
    ++counts[std::min(bins - 1,
                      static_cast<std::size_t>(across.part(value) * static_cast<double>(bins)))];
  const std::size_t most = *std::max_element(counts.begin(), counts.end());
  const Scale up = Scale::of_counts(0, static_cast<double>(most) * 1.05);
  std::string svg = open_svg(kHalfWidth, kHeight, "histogram of " + results.sweep().metric) +
                    axes(area, across.ticks(6), up.ticks(std::min<std::size_t>(5, most + 1)),
                         results.sweep().metric, "trials");
  const auto edge = [bins](std::size_t i) {
    return static_cast<double>(i) / static_cast<double>(bins);
  };
  for (std::size_t i = 0; i < bins; ++i) {
    if (counts[i] == 0) continue;
    const double x = area.x(edge(i));
    const double y = area.y(up.part(static_cast<double>(counts[i])));
    svg += "<rect class=\"bar\" x=\"" + place_text(x + 0.7) + "\" y=\"" + place_text(y) +
           "\" width=\"" + place_text(area.x(edge(i + 1)) - x - 1.4) + "\" height=\"" +
           place_text(area.top + area.height - y) + "\"" +
           titled(number_text(across.value(edge(i)), 4) + " to " +
                  number_text(across.value(edge(i + 1)), 4) + ": " + count_text(counts[i]) +
                  (counts[i] == 1 ? " trial" : " trials")) +
           "rect>\n";
  }
  const TrialResult& best = results.all()[results.plotted().front()];
  const double x = area.x(across.part(best.value));
  svg += "<path class=\"bestline\" d=\"M" + place_text(x) + " " + place_text(area.top) + "v" +
         place_text(area.height) + "\"" + titled("best: " + number_text(best.value)) + "path>\n";
  return {svg + "</svg>\n", beyond_note(results, across)};
}

// ---- boxes -------------------------------------------------------------------------------------

namespace {

struct Box {
  double low, lower, median, upper, high;  // whiskers, quartiles
};

double quantile(const std::vector<double>& sorted, double part) {
  const double at = part * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double rest = at - static_cast<double>(below);
  return sorted[below] * (1 - rest) + sorted[above] * rest;
}

// Whiskers reach to the farthest value within 1.5 times the distance of the quartiles.
Box box_of(const std::vector<double>& sorted) {
  Box box{0, quantile(sorted, 0.25), quantile(sorted, 0.5), quantile(sorted, 0.75), 0};
  const double reach = 1.5 * (box.upper - box.lower);
  box.low = *std::find_if(sorted.begin(), sorted.end(),
                          [&](double value) { return value >= box.lower - reach; });
  box.high = *std::find_if(sorted.rbegin(), sorted.rend(),
                           [&](double value) { return value <= box.upper + reach; });
  return box;
}

std::string box_svg(const Area& area, double x, double half, const Scale& up, const Box& box,
                    const std::string& title) {
  const auto y = [&](double value) { return area.y(up.part(value)); };
  const std::string middle = "M" + place_text(x) + " ";
  const std::string left = place_text(x - half);
  const double height = std::max(1.0, y(box.lower) - y(box.upper));
  const auto end = [&](double value) {
    return "M" + place_text(x - half / 2) + " " + place_text(y(value)) + "h" + place_text(half);
  };
  const std::string whiskers = middle + place_text(y(box.high)) + "V" + place_text(y(box.upper)) +
                               middle + place_text(y(box.lower)) + "V" + place_text(y(box.low)) +
                               end(box.high) + end(box.low);
  return "<g class=\"box\"><title>" + html_text(title) + "</title><path d=\"" + whiskers +
         "\"/><rect x=\"" + left + "\" y=\"" + place_text(y(box.upper)) + "\" width=\"" +
         place_text(half * 2) + "\" height=\"" + place_text(height) +
         "\" rx=\"2\"/><path class=\"median\" d=\"M" + left + " " + place_text(y(box.median)) +
         "h" + place_text(half * 2) + "\"/></g>\n";
}

}  // namespace

Plot box_plot(const Results& results, const ParameterScale& parameter) {
  const std::size_t names = parameter.scale().names();
  if (names < 2 || results.plotted().empty()) return {};
  std::vector<std::vector<double>> values(names);
  for (const std::size_t i : results.plotted())
    if (const auto place = parameter.place(*results.all()[i].trial))
      values[*place].push_back(results.all()[i].value);
  std::vector<std::size_t> used;
  for (std::size_t i = 0; i < names; ++i)
    if (!values[i].empty()) used.push_back(i);
  if (used.size() < 2) return {};
  const std::vector<std::size_t> shown = evenly(used, kMostBoxes);
  std::vector<Box> boxes;
  std::vector<double> ends;
  for (const std::size_t i : shown) {
    std::sort(values[i].begin(), values[i].end());
    boxes.push_back(box_of(values[i]));
    ends.insert(ends.end(), {boxes.back().low, boxes.back().high});
  }
  constexpr double kHeight = 250;
  const Area area = half_area(kHeight);
  const Scale up = Scale::of_metric(std::move(ends), results.sweep().maximize);
  const std::vector<Tick> all = parameter.scale().ticks(names);
  std::vector<Tick> across;
  const auto slot = [&](std::size_t i) {
    return (static_cast<double>(i) + 0.5) / static_cast<double>(shown.size());
  };
  for (std::size_t i = 0; i < shown.size(); ++i) across.push_back({slot(i), all[shown[i]].text});
  std::string svg = open_svg(kHalfWidth, kHeight,
                             results.sweep().metric + " for each value of " + parameter.name()) +
                    axes(area, across, up.ticks(5), parameter.name(), results.sweep().metric);
  const double half = std::min(22.0, area.width / static_cast<double>(shown.size()) * 0.34);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const std::size_t count = values[shown[i]].size();
    const Box& box = boxes[i];
    svg += box_svg(area, area.x(slot(i)), half, up, box,
                   clipped(parameter.name(), 40) + " " + clipped(all[shown[i]].text, 60) + ": " +
                       "median " + number_text(box.median) + ", quartiles " +
                       number_text(box.lower) + " and " + number_text(box.upper) + ", " +
                       count_text(count) + (count == 1 ? " trial" : " trials"));
  }
  return {svg + "</svg>\n", shown_note(shown.size(), used.size(), "values")};
}

// ---- heat map ----------------------------------------------------------------------------------

namespace {

constexpr std::size_t kCells = 24;
constexpr std::size_t kMostDots = 600;  // more than that, and cells are clearer

// How many cells an axis has.
std::size_t cells_of(const ParameterScale& parameter) {
  return parameter.listed() ? std::min(kCells, parameter.scale().names()) : kCells;
}

std::string cells_svg(const Results& results, const ParameterScale& across,
                      const ParameterScale& up, const Area& area) {
  const std::size_t columns = cells_of(across);
  const std::size_t rows = cells_of(up);
  struct Cell {
    std::size_t count = 0;
    double level = 0;
    double mean = 0;  // running
  };
  std::vector<Cell> cells(columns * rows);
  const auto cell_at = [](double part, std::size_t count) {
    return std::min(count - 1, static_cast<std::size_t>(part * static_cast<double>(count)));
  };
  for (const std::size_t i : results.plotted()) {
    const TrialResult& result = results.all()[i];
    const std::optional<double> x = across.part(*result.trial);
    const std::optional<double> y = up.part(*result.trial);
    if (!x || !y) continue;
    Cell& cell = cells[cell_at(*y, rows) * columns + cell_at(*x, columns)];
    const auto count = static_cast<double>(++cell.count);
    cell.level += static_cast<double>(result.level);
    cell.mean += result.value / count - cell.mean / count;
  }
  const double width = area.width / static_cast<double>(columns);
  const double height = area.height / static_cast<double>(rows);
  std::string svg;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const Cell& cell = cells[i];
    if (cell.count == 0) continue;
    const auto level =
        static_cast<std::size_t>(std::lround(cell.level / static_cast<double>(cell.count)));
    const std::size_t row = i / columns;
    svg += "<rect class=\"c" + std::to_string(level) + "\" x=\"" +
           place_text(area.left + width * static_cast<double>(i % columns) + 0.5) + "\" y=\"" +
           place_text(area.top + area.height - height * static_cast<double>(row + 1) + 0.5) +
           "\" width=\"" + place_text(width - 1) + "\" height=\"" + place_text(height - 1) + "\"" +
           titled("mean " + number_text(cell.mean) + " of " + count_text(cell.count) +
                  (cell.count == 1 ? " trial" : " trials")) +
           "rect>\n";
  }
  return svg;
}

// Marks in the middle of a listed value would cover each other: a small shift, always the same for
// a trial.
double shifted(double part, const ParameterScale& parameter, std::uint64_t n, std::uint64_t salt) {
  if (!parameter.listed()) return part;
  const std::uint64_t mixed = (n * 0x9e3779b97f4a7c15u) >> salt;
  const double shift = static_cast<double>(mixed % 1000) / 1000 - 0.5;
  return part + 0.5 * shift / static_cast<double>(parameter.scale().names());
}

}  // namespace

Plot heat_plot(const Results& results, const ParameterScale& across, const ParameterScale& up) {
  if (results.plotted().empty()) return {};
  constexpr double kHeight = 290;
  const Area area = half_area(kHeight);
  std::string marks;
  if ((across.listed() && up.listed()) || results.plotted().size() > kMostDots) {
    marks = cells_svg(results, across, up, area);
  } else {
    for (const std::size_t i : drawn(results, kMostMarks)) {
      const TrialResult& result = results.all()[i];
      const std::optional<double> x = across.part(*result.trial);
      const std::optional<double> y = up.part(*result.trial);
      if (!x || !y) continue;
      marks += "<circle class=\"c" + std::to_string(result.level) + "\" cx=\"" +
               place_text(area.x(shifted(*x, across, result.trial->n, 20))) + "\" cy=\"" +
               place_text(area.y(shifted(*y, up, result.trial->n, 40))) + "\" r=\"5\"" +
               titled(label_of(result, results.sweep().metric)) + "circle>\n";
    }
  }
  if (marks.empty()) return {};
  return {open_svg(kHalfWidth, kHeight,
                   results.sweep().metric + " by " + across.name() + " and " + up.name()) +
              axes(area, across.scale().ticks(6), up.scale().ticks(7), across.name(), up.name()) +
              marks + "</svg>\n",
          ""};
}

}  // namespace mete::sweep
