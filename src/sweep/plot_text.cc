// SPDX-License-Identifier: Apache-2.0
// plot_text() of report.h. The plot is a grid of dots: 2 by 4 in a character of braille, or one
// character each in ASCII, where `o` is a trial and `-` the best so far. Beside it are a few values
// of the metric, below it numbers of trials, above it what is shown. Lines are built to `width`
// columns and lose their blanks at the end; the axis always has all of them.
#include <algorithm>
#include <cmath>

#include "base/columns.h"
#include "sweep/markup.h"
#include "sweep/report.h"
#include "sweep/results.h"
#include "sweep/scale.h"

namespace mete::sweep {

namespace {

class Dots {
 public:
  Dots(std::size_t columns, std::size_t rows, bool ascii)
      : columns_(columns), rows_(rows), ascii_(ascii), cells_(columns * rows, ascii ? ' ' : 0) {}

  std::size_t width() const { return ascii_ ? columns_ : columns_ * 2; }
  std::size_t height() const { return ascii_ ? rows_ : rows_ * 4; }
  // From the left and the top. `line`: of the best so far, below the marks of trials.
  void set(std::size_t x, std::size_t y, bool line) {
    if (ascii_) {
      std::uint8_t& cell = cells_[y * columns_ + x];
      if (!line || cell == ' ') cell = line ? '-' : 'o';
      return;
    }
    // The bits of a character: 1 8 / 2 16 / 4 32 / 64 128.
    constexpr std::uint8_t kBits[4][2] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};
    cells_[y / 4 * columns_ + x / 2] |= kBits[y % 4][x % 2];
  }
  std::string row(std::size_t y) const {
    std::string text;
    for (std::size_t x = 0; x < columns_; ++x) {
      const std::uint8_t cell = cells_[y * columns_ + x];
      if (ascii_ || cell == 0) {
        text += ascii_ ? static_cast<char>(cell) : ' ';
      } else {  // U+2800 + cell
        text += '\xe2';
        text += static_cast<char>(0xa0 | cell >> 6);
        text += static_cast<char>(0x80 | (cell & 0x3f));
      }
    }
    return text;
  }

 private:
  std::size_t columns_;
  std::size_t rows_;
  bool ascii_;
  std::vector<std::uint8_t> cells_;
};

std::size_t place(double part, std::size_t count) {
  return std::min(count - 1,
                  static_cast<std::size_t>(std::lround(part * static_cast<double>(count - 1))));
}

void draw(Dots& dots, const Results& results, const Scale& across, const Scale& up) {
  const auto x_of = [&](const TrialResult& result) {
    return place(across.part(static_cast<double>(result.trial->n)), dots.width());
  };
  const auto y_of = [&](const TrialResult& result) {
    return dots.height() - 1 - place(up.part(result.value), dots.height());
  };
  const std::vector<std::size_t>& records = results.records();
  for (std::size_t i = 0; i < records.size(); ++i) {
    const TrialResult& from = results.all()[records[i]];
    const bool last = i + 1 == records.size();
    const std::size_t end = last ? dots.width() - 1 : x_of(results.all()[records[i + 1]]);
    const std::size_t y = y_of(from);
    for (std::size_t x = x_of(from); x <= end; ++x) dots.set(x, y, true);
    if (last) continue;
    const std::size_t next = y_of(results.all()[records[i + 1]]);
    for (std::size_t at = std::min(y, next); at <= std::max(y, next); ++at) dots.set(end, at, true);
  }
  for (const std::size_t i : results.plotted())
    dots.set(x_of(results.all()[i]), y_of(results.all()[i]), false);
}

// Numbers below the axis, none over another; the last one ends at the right edge.
std::string numbers_below(const Scale& across, std::size_t columns) {
  std::string line(columns, ' ');
  std::size_t next = 0;  // the first free column
  for (const Tick& tick : across.ticks(std::clamp<std::size_t>(columns / 10, 3, 10))) {
    const std::size_t size = tick.text.size();
    if (size > columns) continue;
    const std::size_t middle = place(tick.part, columns);
    const std::size_t at = std::min(middle - std::min(middle, size / 2), columns - size);
    if (at < next) continue;
    line.replace(at, size, tick.text);
    next = at + size + 2;
  }
  return line;
}

std::string without_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string title_of(const Results& results, const Scale& up, std::size_t width) {
  const wire::SweepDocument& sweep = results.sweep();
  std::size_t beyond = 0;
  for (const double value : results.values()) beyond += up.shows(value) ? 0 : 1;
  std::string title = sweep.metric;
  const std::size_t last =
      results.records().empty() ? results.plotted().front() : results.records().back();
  title += results.records().empty()
               ? ""
               : ", best " + number_text(results.all()[last].value) + " (trial " +
                     std::to_string(results.all()[last].trial->n) + ")";
  if (beyond > 0) title += ", " + count_text(beyond) + " beyond the edge";
  return clipped(title, width);
}

}  // namespace

std::string plot_text(const wire::SweepDocument& sweep, std::size_t width, std::size_t height,
                      bool ascii) {
  width = std::clamp<std::size_t>(width, 24, 1'000);
  height = std::clamp<std::size_t>(height, 6, 300);
  const Results results(sweep);
  if (sweep.metric.empty()) return "No metric to draw.\n";
  if (results.plotted().empty())
    return clipped("No results of " + clipped(sweep.metric, 40) +
                       (sweep.state == core::sweep::SweepState::kDone ? "." : " yet."),
                   width) +
           "\n";
  const Scale up = Scale::of_metric(results.values(), sweep.maximize);
  const std::size_t rows = height - 3;  // the title, the axis, its numbers
  std::vector<std::string> beside(rows);
  std::size_t margin = 0;
  for (const Tick& tick : up.ticks(std::max<std::size_t>(3, rows / 3))) {
    std::string& text = beside[rows - 1 - place(tick.part, rows)];
    text = clipped(tick.text, 10);
    margin = std::max(margin, base::columns_of(text));
  }
  const std::size_t columns = width - margin - 2;
  const Scale across = Scale::of_counts(static_cast<double>(results.all().front().trial->n),
                                        static_cast<double>(results.all().back().trial->n));
  Dots dots(columns, rows, ascii);
  draw(dots, results, across, up);
  std::string text = title_of(results, up, width) + "\n";
  for (std::size_t y = 0; y < rows; ++y) {
    const std::string& number = beside[y];
    const std::string line = std::string(margin - base::columns_of(number), ' ') + number + ' ';
    text += without_blanks(
        line + (ascii ? (number.empty() ? "|" : "+") : (number.empty() ? "│" : "┤")) + dots.row(y));
  }
  text += std::string(margin + 1, ' ') + (ascii ? "+" : "└");
  for (std::size_t x = 0; x < columns; ++x) text += ascii ? "-" : "─";
  return text + "\n" +
         without_blanks(std::string(margin + 2, ' ') + numbers_below(across, columns));
}

}  // namespace mete::sweep
