// SPDX-License-Identifier: Apache-2.0
// Charts as SVG text, to stand in an HTML page whose style gives the colours (report.cc): areas
// over time and bars. Values in, text out; every text is escaped. Colours are the page's variables,
// so that a page in the dark has other ones.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mete::simulate {

std::string html_text(std::string_view text);  // & < > " escaped
std::string short_number(double value);        // "12", "0.4", "1,240"

// One place on the x axis; what lies above each other is given from below.
struct AreaPoint {
  double x = 0;
  std::vector<double> y;
  std::string label;  // what is said when one points at it
};

struct AreaChart {
  std::string title;  // for those who cannot see it
  std::vector<AreaPoint> points;
  std::vector<std::string> colours;  // of each layer: "--alloc"
  double top = 100;                  // of the y axis
  std::string unit;                  // after its numbers: " %"
  struct Tick {
    double x = 0;
    std::string text;
  };
  std::vector<Tick> ticks;
};
std::string area_svg(const AreaChart& chart);

// One bar across the page, in parts of a hundred.
struct StackedBar {
  std::string name;
  std::string value;  // at its end
  std::vector<double> parts;
  std::vector<std::string> labels;  // of each part, when one points at it
};
std::string bars_svg(const std::string& title, const std::vector<StackedBar>& bars,
                     const std::vector<std::string>& colours);

}  // namespace mete::simulate
