// SPDX-License-Identifier: Apache-2.0
// Charts as SVG text for an HTML page whose style sets the colours (report.cc): areas over time and
// bars. Values in, text out; every text is escaped. Colours are variables of the page, so that a
// dark page has other ones.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mete::simulate {

std::string html_text(std::string_view text);  // & < > " escaped
std::string short_number(double value);        // "12", "0.4", "1,240"

// One place on the x axis; layers are listed from the bottom.
struct AreaPoint {
  double x = 0;
  std::vector<double> y;
  std::string label;  // shown for the pointer
};

struct AreaChart {
  std::string title;  // for screen readers
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

// One bar across the page, in percent.
struct StackedBar {
  std::string name;
  std::string value;  // at its end
  std::vector<double> parts;
  std::vector<std::string> labels;  // of each part, shown for the pointer
};
std::string bars_svg(const std::string& title, const std::vector<StackedBar>& bars,
                     const std::vector<std::string>& colours);

}  // namespace mete::simulate
