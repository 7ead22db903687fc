// SPDX-License-Identifier: Apache-2.0
// The report of a sweep as one HTML page that needs nothing else: summary, best trials, importance
// of the parameters, plots, all results. Plots are SVG, made here; a small script in the page
// sorts the table and lets parallel coordinates be brushed. Light and dark, phone and laptop.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "wire/sweep.h"

namespace mete::sweep {

struct CurvePoint {
  double step = 0;
  double value = 0;
};
using Curves = std::map<std::uint64_t, std::vector<CurvePoint>>;  // by trial

// The lines that a trial reported: {"step":3,"val_loss":0.41}. Lines that are no such object, or
// have no such metric, are left out; without a step, the number of the line counts, from 1. In the
// order of the steps; if a step comes twice (the trial ran again), the later line counts. At most
// `most` points, evenly chosen, the last one included.
std::vector<CurvePoint> read_curve(std::string_view lines, std::string_view metric,
                                   std::size_t most = 200);

// The trials whose curves the report draws, at most 60: only their files need to be read.
std::vector<std::uint64_t> curves_shown(const wire::SweepDocument& sweep);

// The command of a trial for a POSIX shell, ready to paste: with METE_PARAM_NAME=VALUE before it
// for each parameter that it does not name.
std::string command_line_of(const wire::SweepDocument& sweep,
                            const wire::SweepDocument::Trial& trial);

struct ReportOptions {
  std::string version;    // of mete, for the footer
  std::size_t best = 10;  // rows in the table of the best
};
std::string to_html(const wire::SweepDocument& sweep, const Curves& curves,
                    const ReportOptions& options);

// A plot of the metric over the trials for a terminal, `width` columns (at least 24) and `height`
// rows (at least 6), with the best so far as a line; braille characters, or ASCII. One line of text
// if there is nothing to draw.
std::string plot_text(const wire::SweepDocument& sweep, std::size_t width, std::size_t height,
                      bool ascii);

}  // namespace mete::sweep
