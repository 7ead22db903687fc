// SPDX-License-Identifier: Apache-2.0
// See chart.h. Lengths are in units of the viewBox, which is as wide as the page at its widest. An
// area is a path along the upper sums and back along the lower ones; narrow invisible columns above
// it carry the text for the pointer. Bars are rectangles with a small gap.
#include "simulate/chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace mete::simulate {

namespace {

constexpr double kWidth = 880;
constexpr double kLeft = 52;
constexpr double kRight = 12;
constexpr double kTop = 10;
constexpr double kHeight = 200;  // of the plot
constexpr double kBottom = 26;
constexpr double kBar = 22;
constexpr double kBarGap = 12;
constexpr double kBarLeft = 120;
constexpr double kBarRight = 110;

std::string at(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string text_at(double x, double y, std::string_view anchor, const std::string& text) {
  return "<text x=\"" + at(x) + "\" y=\"" + at(y) + "\" text-anchor=\"" + std::string(anchor) +
         "\">" + html_text(text) + "</text>";
}

std::string open_svg(double height, const std::string& title) {
  return "<svg viewBox=\"0 0 " + at(kWidth) + " " + at(height) + "\" role=\"img\" aria-label=\"" +
         html_text(title) + "\">\n";
}

class Frame {
 public:
  explicit Frame(const AreaChart& chart) : chart_(chart) {
    if (chart.points.empty()) return;
    first_ = chart.points.front().x;
    last_ = chart.points.back().x;
  }
  double x(double value) const {
    const double part = last_ > first_ ? (value - first_) / (last_ - first_) : 0;
    return kLeft + part * (kWidth - kLeft - kRight);
  }
  double y(double value) const {
    return kTop + kHeight * (1 - std::clamp(value / chart_.top, 0.0, 1.0));
  }

 private:
  const AreaChart& chart_;
  double first_ = 0;
  double last_ = 0;
};

std::string grid(const AreaChart& chart, const Frame& frame) {
  std::string text;
  for (int i = 0; i <= 4; ++i) {
    const double value = chart.top * i / 4;
    const std::string y = at(frame.y(value));
    text += "<line class=\"grid\" x1=\"" + at(kLeft) + "\" x2=\"" + at(kWidth - kRight) +
            "\" y1=\"" + y + "\" y2=\"" + y + "\"/>" +
            text_at(kLeft - 8, frame.y(value) + 4, "end", short_number(value) + chart.unit) + "\n";
  }
  for (const AreaChart::Tick& tick : chart.ticks)
    text += text_at(frame.x(tick.x), kTop + kHeight + 18, "middle", tick.text) + "\n";
  return text;
}

// The layer between the sums up to it.
std::string layer(const AreaChart& chart, const Frame& frame, std::size_t which) {
  const auto sum = [&](const AreaPoint& point, std::size_t layers) {
    double total = 0;
    for (std::size_t i = 0; i < layers; ++i) total += point.y[i];
    return total;
  };
  std::string upper;
  std::string lower;
  for (const AreaPoint& point : chart.points) {
    const std::string x = at(frame.x(point.x));
    upper += (upper.empty() ? "M" : " L") + x + " " + at(frame.y(sum(point, which + 1)));
    lower.insert(0, " L" + x + " " + at(frame.y(sum(point, which))));
  }
  const std::string colour = "var(" + chart.colours[which] + ")";
  return "<path d=\"" + upper + lower + " Z\" style=\"fill:" + colour +
         ";fill-opacity:" + (which == 0 ? ".28" : ".5") + "\"/><path d=\"" + upper +
         "\" style=\"fill:none;stroke:" + colour + ";stroke-width:1.6;stroke-linejoin:round\"/>\n";
}

// Narrow columns that light up and show the label.
std::string pointers(const AreaChart& chart, const Frame& frame) {
  std::string text;
  for (std::size_t i = 0; i + 1 < chart.points.size(); ++i) {
    const double x = frame.x(chart.points[i].x);
    text += "<rect class=\"point\" x=\"" + at(x) + "\" y=\"" + at(kTop) + "\" width=\"" +
            at(std::max(0.1, frame.x(chart.points[i + 1].x) - x)) + "\" height=\"" + at(kHeight) +
            "\"><title>" + html_text(chart.points[i].label) + "</title></rect>\n";
  }
  return text;
}

}  // namespace

std::string html_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string short_number(double value) {
  char text[64];
  const bool whole = std::abs(value - std::round(value)) < 0.005;
  std::snprintf(text, sizeof text,
                whole || value >= 100 ? "%.0f"
                : value < 1           ? "%.2f"
                                      : "%.1f",
                value);
  std::string digits = text;
  const std::size_t end = std::min(digits.find('.'), digits.size());
  for (std::size_t i = end; i > 3 + (digits[0] == '-' ? 1 : 0);) digits.insert(i -= 3, ",");
  return digits;
}

std::string area_svg(const AreaChart& chart) {
  const Frame frame(chart);
  std::string text = open_svg(kTop + kHeight + kBottom, chart.title) + grid(chart, frame);
  for (std::size_t i = 0; i < chart.colours.size(); ++i) text += layer(chart, frame, i);
  return text + pointers(chart, frame) + "</svg>\n";
}

std::string bars_svg(const std::string& title, const std::vector<StackedBar>& bars,
                     const std::vector<std::string>& colours) {
  const double room = kWidth - kBarLeft - kBarRight;
  std::string text = open_svg(static_cast<double>(bars.size()) * (kBar + kBarGap), title);
  double y = kBarGap / 2;
  for (const StackedBar& bar : bars) {
    text += text_at(kBarLeft - 10, y + kBar / 2 + 4, "end", bar.name) + "\n";
    double x = kBarLeft;
    for (std::size_t i = 0; i < bar.parts.size(); ++i) {
      const double width = room * bar.parts[i] / 100;
      if (width <= 0) continue;
      // A gap between neighbours, so that they can be distinguished without colours.
      text += "<rect class=\"part\" x=\"" + at(x) + "\" y=\"" + at(y) + "\" width=\"" +
              at(std::max(1.0, width - 1.5)) + "\" height=\"" + at(kBar) +
              "\" rx=\"2\" style=\"fill:var(" + colours[i] + ")\"><title>" +
              html_text(bar.labels[i]) + "</title></rect>\n";
      x += width;
    }
    text += text_at(kBarLeft + room + 8, y + kBar / 2 + 4, "start", bar.value) + "\n";
    y += kBar + kBarGap;
  }
  return text + "</svg>\n";
}

}  // namespace mete::simulate
