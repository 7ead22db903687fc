// SPDX-License-Identifier: Apache-2.0
// The plots of a sweep as SVG text for a page whose style sets the colours (report_page.h): classes
// c0 to c9 go from the worst results to the best, s-ok and others are states of trials. Values in,
// text out; every text is escaped. A plot with nothing to show is "".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "sweep/report.h"
#include "sweep/results.h"
#include "sweep/scale.h"

namespace mete::sweep {

inline constexpr std::size_t kMostMarks = 2'000;  // of one plot
inline constexpr std::size_t kMostLines = 1'000;  // of parallel coordinates
inline constexpr std::size_t kMostCurves = 60;
inline constexpr std::size_t kMostAxes = 12;     // of parallel coordinates
inline constexpr std::size_t kMostBoxes = 16;    // values of one parameter
inline constexpr std::size_t kMostBars = 1'500;  // of trials over cards and time
inline constexpr std::size_t kMostLanes = 120;   // rows of them
inline constexpr std::size_t kMostCards = 32;

struct Plot {
  std::string svg;
  std::string note = {};  // what is missing: "2,000 of 10,000 trials are shown."; not escaped
  std::string key = {};   // HTML: what the colours mean
};

Plot metric_plot(const Results& results);
// The trials whose curves are drawn, best first: the best ones, and some of all others.
std::vector<std::uint64_t> curves_shown(const Results& results);
Plot curves_plot(const Results& results, const Curves& curves);

// ---- report_spread.cc --------------------------------------------------------------------------

Plot histogram_plot(const Results& results);
// The metric for each value of a listed parameter.
Plot box_plot(const Results& results, const ParameterScale& parameter);
// The two parameters as axes, the metric as colour: the mean of each cell, or one mark per trial.
Plot heat_plot(const Results& results, const ParameterScale& across, const ParameterScale& up);

// ---- report_lines.cc ---------------------------------------------------------------------------

// Its script (report_page.h) reads the points of the lines.
Plot parallel_plot(const Results& results, const std::vector<ParameterScale>& parameters);
// A bar for each trial on each of its cards; of many trials, how many ran at once.
Plot lanes_plot(const Results& results);

// ---- common parts ------------------------------------------------------------------------------

// The area between the axes, in units of the viewBox.
struct Area {
  double left = 58;
  double top = 14;
  double width = 408;
  double height = 210;
  double x(double part) const { return left + part * width; }
  double y(double part) const { return top + (1 - part) * height; }
};
// Of a plot in one of the two columns of the page.
inline constexpr double kHalfWidth = 480;
Area half_area(double height);
// `kind`: a class of the page, "wide" for a plot that scrolls on a phone.
std::string open_svg(double width, double height, const std::string& title,
                     const std::string& kind = "");
std::string svg_text(double x, double y, std::string_view anchor, const std::string& text);
// Lines of the grid, ticks and the names of both axes.
std::string axes(const Area& area, const std::vector<Tick>& across, const std::vector<Tick>& up,
                 const std::string& name_across, const std::string& name_up);
// The end of a start tag, a text for the pointer, and "</".
std::string titled(const std::string& text);
std::string label_of(const TrialResult& result, const std::string& metric);
// At most `most` plotted results in the order of drawing, the best last.
std::vector<std::size_t> drawn(const Results& results, std::size_t most);
// HTML: a colour of the key and what it means.
std::string swatch(const std::string& of_class, const std::string& text);
// "12 results are beyond the axis, at its edge."
std::string beyond_note(const Results& results, const Scale& scale);
std::string shown_note(std::size_t shown, std::size_t all, std::string_view what);

}  // namespace mete::sweep
