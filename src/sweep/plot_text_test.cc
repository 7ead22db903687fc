// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/columns.h"
#include "base/text.h"
#include "sweep/report.h"

namespace mete::sweep {
namespace {

using core::sweep::TrialState;

wire::SweepDocument with_losses(const std::vector<double>& values) {
  wire::SweepDocument sweep;
  sweep.metric = "loss";
  for (std::size_t i = 0; i < values.size(); ++i) {
    wire::SweepDocument::Trial trial;
    trial.n = i + 1;
    trial.state = TrialState::kOk;
    trial.metrics = {{"loss", values[i]}};
    sweep.trials.push_back(trial);
  }
  return sweep;
}

std::size_t widest(const std::string& text) {
  std::size_t most = 0;
  for (const std::string_view line : base::split(text, '\n'))
    most = std::max(most, base::columns_of(line));
  return most;
}

TEST(PlotText, APlotFillsItsWidthAndHeightExactly) {
  const wire::SweepDocument sweep = with_losses({5, 4, 6, 3, 3.5, 2, 8, 1, 1.5, 2.25, 7, 3});
  for (const std::size_t width : {24u, 40u, 80u, 133u})
    for (const std::size_t height : {6u, 12u, 30u})
      for (const bool ascii : {false, true}) {
        const std::string text = plot_text(sweep, width, height, ascii);
        EXPECT_EQ(widest(text), width) << text;
        EXPECT_EQ(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')), height);
      }
}

TEST(PlotText, AsciiShowsTrialsAndTheBestSoFar) {
  EXPECT_EQ(plot_text(with_losses({4, 5, 2, 3, 1}), 30, 10, true),
            "loss, best 1 (trial 5)\n"
            "  |       o\n"
            "  |\n"
            "4 +o-------------\n"
            "  |             -      o\n"
            "2 +             o-------------\n"
            "  |                          -\n"
            "  |                          o\n"
            "  +---------------------------\n"
            "          2            4\n");
}

TEST(PlotText, AsciiHasNothingElse) {
  wire::SweepDocument sweep = with_losses({4, 5, 2, 3, 1});
  const std::string text = plot_text(sweep, 60, 12, true);
  EXPECT_TRUE(std::all_of(text.begin(), text.end(),
                          [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }));
  EXPECT_NE(plot_text(sweep, 60, 12, false).find("\xe2\xa0"), std::string::npos);
}

TEST(PlotText, NothingToDrawIsOneLine) {
  EXPECT_EQ(plot_text(with_losses({}), 40, 10, false), "No results of loss yet.\n");
  EXPECT_EQ(plot_text(with_losses({std::numeric_limits<double>::quiet_NaN()}), 40, 10, false),
            "No results of loss yet.\n");
  wire::SweepDocument over = with_losses({});
  over.state = core::sweep::SweepState::kDone;
  EXPECT_EQ(plot_text(over, 40, 10, false), "No results of loss.\n");
  EXPECT_EQ(plot_text({}, 40, 10, false), "No metric to draw.\n");
}

TEST(PlotText, OneTrialAndExtremeValuesAreDrawn) {
  for (const auto& values :
       {std::vector<double>{3}, std::vector<double>{0, 0}, std::vector<double>{1e308, -1e308, 0},
        std::vector<double>{1e-320, 1}, std::vector<double>{-1e-9, 1e12, 5, 6, 7}}) {
    const std::string text = plot_text(with_losses(values), 50, 10, false);
    EXPECT_EQ(widest(text), 50u) << text;
    EXPECT_NE(text.find("\xe2\xa0"), std::string::npos) << text;
  }
}

TEST(PlotText, ANameOfAnotherUserCannotMoveTheCursor) {
  wire::SweepDocument sweep = with_losses({1, 2});
  sweep.metric = "a\x1b[2J";
  for (auto& trial : sweep.trials) trial.metrics[0].name = sweep.metric;
  EXPECT_EQ(plot_text(sweep, 40, 10, true).find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace mete::sweep
