// SPDX-License-Identifier: Apache-2.0
#include "sweep/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sweep/markup.h"
#include "sweep/report_plots.h"
#include "sweep/report_tables.h"
#include "sweep/results.h"
#include "sweep/scale.h"
#include "wire/fields.h"

namespace mete::sweep {
namespace {

using core::sweep::guess;
using core::sweep::of_real;
using core::sweep::of_text;
using core::sweep::SweepState;
using core::sweep::TrialState;
using Listed = wire::SweepDocument::Parameter;
using Trial = wire::SweepDocument::Trial;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++found;
  return found;
}
bool has(const std::string& text, const std::string& what) {
  return text.find(what) != std::string::npos;
}

// The page without what its scripts contain.
std::string without_scripts(std::string html) {
  for (std::size_t at = html.find("<script"); at != std::string::npos;
       at = html.find("<script", at + 1)) {
    const std::size_t begin = html.find('>', at) + 1;
    html.erase(begin, html.find("</script>", begin) - begin);
  }
  return html;
}

// Every tag that is opened is closed, in the right order.
std::string unbalanced(const std::string& page) {
  const std::string html = without_scripts(page);
  std::vector<std::string> open;
  for (std::size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    const std::size_t end = html.find('>', at);
    if (end == std::string::npos) return "a tag does not end";
    std::string tag = html.substr(at + 1, end - at - 1);
    const std::string name = tag.substr(0, tag.find_first_of(" \n/", 1));
    if (tag.ends_with('/') || tag.starts_with('!') || name == "meta" || name == "input") continue;
    if (!tag.starts_with('/')) {
      open.push_back(name);
    } else {
      if (open.empty() || "/" + open.back() != tag) return tag;
      open.pop_back();
    }
  }
  return open.empty() ? "" : open.back();
}

// Coordinates that are no numbers, in any attribute.
bool has_bad_numbers(const std::string& html) {
  for (const char* bad : {"\"nan", "\"-nan", "\"inf", "\"-inf", " nan", ",nan", "Vnan", "Hnan",
                          ",inf", "Vinf", "Hinf", ",-inf", ",-nan"})
    if (has(without_scripts(html), bad)) return true;
  return false;
}

wire::Json data_of(const std::string& html) {
  const std::string begin = "id=\"data\">";
  const std::size_t at = html.find(begin) + begin.size();
  Result<wire::Json> json = wire::parse_json(html.substr(at, html.find("</script>", at) - at));
  EXPECT_TRUE(json);
  return json ? *json : wire::Json();
}

Listed range(std::string name, double min, double max, bool log = false) {
  Listed parameter;
  parameter.name = std::move(name);
  parameter.min = min;
  parameter.max = max;
  parameter.log = log;
  return parameter;
}
Listed list(std::string name, const std::vector<std::string>& words) {
  Listed parameter;
  parameter.name = std::move(name);
  for (const std::string& word : words) parameter.values.push_back(guess(word));
  return parameter;
}

wire::SweepDocument sweep_of(std::size_t trials) {
  wire::SweepDocument sweep;
  sweep.name = "night";
  sweep.user = "anna";
  sweep.metric = "loss";
  sweep.state = SweepState::kDone;
  sweep.started = {1'763'559'600'000};
  sweep.at = {sweep.started.ms + 3'600'000};
  sweep.wanted = trials;
  sweep.command = {"python", "train.py", "--lr", "{lr}", "--opt", "{opt}"};
  sweep.space = {range("lr", 1e-5, 1e-1, true), list("opt", {"adam", "sgd"}),
                 list("bs", {"16", "32", "64"})};
  static constexpr const char* kOpts[] = {"adam", "sgd"};
  static constexpr const char* kSizes[] = {"16", "32", "64"};
  for (std::size_t i = 0; i < trials; ++i) {
    Trial trial;
    trial.n = i + 1;
    trial.params = {{"lr", of_real(std::pow(10, -5 + 4 * static_cast<double>(i * 7 % 100) / 100))},
                    {"opt", guess(kOpts[i % 2])},
                    {"bs", guess(kSizes[i % 3])}};
    trial.state = TrialState::kOk;
    trial.metrics = {{"loss", 0.5 + 0.25 * std::sin(static_cast<double>(i))}};
    trial.started = WallTime{sweep.started.ms + static_cast<std::int64_t>(i / 2) * 10'000};
    trial.ended = WallTime{trial.started->ms + 9'000};
    trial.cards = {static_cast<std::uint32_t>(i % 2)};
    sweep.trials.push_back(trial);
  }
  return sweep;
}

std::string page(const wire::SweepDocument& sweep, const Curves& curves = {}) {
  return to_html(sweep, curves, {"1.2.3", 10});
}

TEST(Report, APageHasAllItsPlotsAndNeedsNothingElse) {
  wire::SweepDocument sweep = sweep_of(24);
  sweep.importance = {{"lr", 60, 10, 0.5}, {"bs", 20, 30, {}}};
  Curves curves;
  curves[3] = {{1, 0.9}, {2, 0.7}};
  const std::string html = page(sweep, curves);
  EXPECT_EQ(unbalanced(html), "");
  for (const char* title : {"Best trial", "Importance", "Best trials", "Metric over trials",
                            "Learning curves", "Distribution", "lr and bs", "By opt", "By bs",
                            "Parallel coordinates", "Trials over cards and time", "All results"})
    EXPECT_TRUE(has(html, std::string("<h2>") + title + "</h2>")) << title;
  EXPECT_TRUE(has(html, "prefers-color-scheme:dark"));
  EXPECT_TRUE(has(html, "mete 1.2.3"));
  for (const char* outside : {"http:", "https:", "src=\"", "url(", "@import", "<link", "href"})
    EXPECT_FALSE(has(html, outside)) << outside;
  EXPECT_FALSE(has_bad_numbers(html));
}

TEST(Report, TheBestTrialIsShownWithItsCommand) {
  wire::SweepDocument sweep = sweep_of(5);
  sweep.trials[2].metrics[0].value = 0.0125;
  sweep.trials[2].params[0].second = of_real(0.25);
  sweep.best = wire::SweepDocument::Best{3, "loss", 0.0125};
  const std::string bs = "METE_PARAM_BS=" + sweep.trials[2].params[2].second.text;
  EXPECT_EQ(command_line_of(sweep, sweep.trials[2]), bs + " python train.py --lr 0.25 --opt adam");
  const std::string html = page(sweep);
  EXPECT_TRUE(has(html, "<div class=\"value\">0.0125</div><p>loss of trial 3</p>"));
  EXPECT_TRUE(has(html, "data-copy=\"" + bs + " python train.py --lr 0.25 --opt adam\""));
}

TEST(Report, TheHighestValueIsBestWhenMaximizing) {
  wire::SweepDocument sweep = sweep_of(6);
  for (Trial& trial : sweep.trials) trial.metrics[0].value = static_cast<double>(trial.n % 5);
  sweep.maximize = true;
  const Results results(sweep);
  EXPECT_EQ(results.all()[results.ranked().front()].trial->n, 4u);
  EXPECT_EQ(results.records(), (std::vector<std::size_t>{0, 1, 2, 3}));
  sweep.maximize = false;
  const Results lowest(sweep);
  EXPECT_EQ(lowest.all()[lowest.ranked().front()].trial->n, 5u);
  EXPECT_EQ(lowest.records(), (std::vector<std::size_t>{0, 4}));
}

TEST(Report, AStoppedTrialIsNoRecordAndRanksBelowFinishedOnes) {
  wire::SweepDocument sweep = sweep_of(3);
  sweep.trials[1].state = TrialState::kStopped;
  sweep.trials[1].metrics[0].value = 0.01;
  const Results results(sweep);
  EXPECT_EQ(results.ranked().back(), 1u);
  for (const std::size_t record : results.records()) EXPECT_NE(record, 1u);
  EXPECT_EQ(results.plotted().size(), 3u);
  EXPECT_TRUE(has(metric_plot(results).svg, " hollow\""));
}

TEST(Report, MetricsOfFailedAndRunningTrialsAreNoResults) {
  wire::SweepDocument sweep = sweep_of(3);
  sweep.trials[0].state = TrialState::kFailed;
  sweep.trials[1].state = TrialState::kRunning;
  const Results results(sweep);
  EXPECT_EQ(results.plotted(), std::vector<std::size_t>{2});
  EXPECT_EQ(results.ranked(), (std::vector<std::size_t>{2, 1, 0}));
}

TEST(Report, ParametersThatAreFlagsAreInTheCommand) {
  wire::SweepDocument sweep = sweep_of(1);
  sweep.command = {"train"};
  sweep.as_flags = true;
  EXPECT_TRUE(command_line_of(sweep, sweep.trials[0]).ends_with(" --opt adam --bs 16"));
}

// A program that reads its parameters from the environment had `python train.py` as its best
// command.
TEST(Report, ParametersThatTheCommandDoesNotNameAreItsEnvironment) {
  wire::SweepDocument sweep = sweep_of(1);
  sweep.trials[0].params = {{"batch-size", core::sweep::guess("16")},
                            {"opt", core::sweep::of_text("a b")},
                            {"lr", core::sweep::guess("0.5")}};
  sweep.space.resize(3);
  sweep.space[0].name = "batch-size";
  sweep.space[1].name = "opt";
  sweep.space[2].name = "lr";
  sweep.command = {"train", "--lr", "{lr}"};
  EXPECT_EQ(command_line_of(sweep, sweep.trials[0]),
            "METE_PARAM_BATCH_SIZE=16 METE_PARAM_OPT='a b' train --lr 0.5");
}

TEST(Report, TextsOfUsersAreEscapedEverywhere) {
  wire::SweepDocument sweep = sweep_of(12);
  const std::string evil =
      "</script><img src=\"x\" onerror='a()'>&\xe2\x80\xae\xe2\x80\xa8\x1b[31m";
  sweep.name = sweep.user = sweep.metric = sweep.why = sweep.target = sweep.sampler = evil;
  sweep.results = evil;
  sweep.command = {"sh", evil, "{lr}"};
  sweep.space[1].name = evil;
  sweep.space[1].values = {of_text(evil), of_text("<!--<script>")};
  sweep.importance = {{evil, 60, 10, 0.5}};
  for (Trial& trial : sweep.trials) {
    trial.params[1] = {evil, sweep.space[1].values[trial.n % 2]};
    trial.metrics[0].name = evil;
    trial.why = evil;
    if (trial.n % 4 == 0) trial.state = TrialState::kFailed;
  }
  sweep.best = wire::SweepDocument::Best{1, evil, 0.5};
  Curves curves;
  curves[1] = {{1, 0.9}, {2, 0.7}};
  const std::string html = page(sweep, curves);
  EXPECT_EQ(unbalanced(html), "");
  EXPECT_EQ(count(html, "<script"), 2u);
  EXPECT_EQ(count(html, "</script>"), 2u);
  for (const char* raw : {"<img", "<!--", "\xe2\x80\xae", "\xe2\x80\xa8", "\x1b"})
    EXPECT_FALSE(has(html, raw)) << raw;
  EXPECT_FALSE(has(without_scripts(html), "onerror='"));
  const wire::Json data = data_of(html);
  EXPECT_EQ(data["columns"][4][0].get<std::string>().substr(0, 13), "</script><img");
}

TEST(Report, TheTableOfAllResultsIsBestFirstAndExactForListedValues) {
  wire::SweepDocument sweep = sweep_of(3);
  sweep.space[2] = list("bs", {"1e1", "0x20"});
  sweep.trials[0].params[2].second = guess("1e1");
  sweep.trials[1].params.pop_back();
  sweep.trials[2].params[2].second = guess("0x20");
  sweep.trials[2].metrics[0].value = 0.001;
  sweep.trials[0].metrics.push_back({"acc", 0.25});
  sweep.trials[0].peak = Bytes::from_mib(2048);
  const wire::Json data = data_of(page(sweep));
  ASSERT_EQ(data["rows"].size(), 3u);
  EXPECT_EQ(data["columns"].dump(),
            R"([["trial","number"],["state","state"],["loss","number"],["acc","number"],)"
            R"(["lr","number"],["opt",""],["bs",""],["time","s"],["peak","mib"],)"
            R"(["cards","number"]])");
  EXPECT_EQ(data["metric"], 2);
  EXPECT_EQ(data["rows"][0][0], 3);
  EXPECT_EQ(data["rows"][0][6], "0x20");
  EXPECT_EQ(data["rows"][0][3], nullptr);
  for (const wire::Json& row : data["rows"]) {
    EXPECT_EQ(row.size(), data["columns"].size() + 1);
    if (row[0] == 1) {
      EXPECT_EQ(row[6], "1e1");
      EXPECT_EQ(row[3], 0.25);
      EXPECT_EQ(row[8], 2048);
    }
    if (row[0] == 2) {
      EXPECT_EQ(row[6], nullptr);
    }
    EXPECT_EQ(row[7], 9);
  }
}

TEST(Report, ATableThatWouldBeTooLargeKeepsTheBest) {
  const wire::SweepDocument sweep = sweep_of(500);
  const Results results(sweep);
  const AllResults all = all_results(results, 5'000);
  EXPECT_LE(all.json.size(), 5'000u);
  ASSERT_GT(all.rows, 20u);
  ASSERT_LT(all.rows, 500u);
  const Result<wire::Json> json = wire::parse_json(all.json);
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["rows"].size(), all.rows);
  for (std::size_t i = 0; i < all.rows; ++i)
    EXPECT_EQ((*json)["rows"][i][0], results.all()[results.ranked()[i]].trial->n);
}

TEST(Report, ValuesThatAreNoNumbersAreShownAndNotPlotted) {
  wire::SweepDocument sweep = sweep_of(10);
  sweep.trials[3].metrics[0].value = kNan;
  sweep.trials[4].metrics[0].value = std::numeric_limits<double>::infinity();
  sweep.trials[5].metrics.clear();
  const std::string html = page(sweep);
  EXPECT_EQ(count(metric_plot(Results(sweep)).svg, "<circle"), 7u);
  EXPECT_EQ(count(html, "\"NaN\""), 1u + count(std::string(page(sweep_of(1))), "\"NaN\""));
  EXPECT_TRUE(has(html, ",\"inf\","));
  EXPECT_FALSE(has_bad_numbers(html));
}

TEST(Report, ExtremeValuesDoNotBreakAnything) {
  wire::SweepDocument sweep = sweep_of(12);
  const double values[] = {1e308,   -1e308, 5e-324, 0,        1, 1e-300,
                           1.7e308, -0.0,   1e15,   1e15 + 1, 2, 3};
  for (std::size_t i = 0; i < 12; ++i) sweep.trials[i].metrics[0].value = values[i];
  sweep.space[0].min = -1e308;
  sweep.space[0].max = 1e308;
  sweep.trials[0].started = WallTime{0};
  sweep.trials[1].ended = WallTime{sweep.trials[1].started->ms - 5'000};
  sweep.importance = {{"lr", 1e9, kNan, kNan}};
  for (const bool maximize : {false, true}) {
    sweep.maximize = maximize;
    const std::string html = page(sweep);
    EXPECT_EQ(unbalanced(html), "");
    EXPECT_FALSE(has_bad_numbers(html));
  }
  for (Trial& trial : sweep.trials) trial.metrics[0].value = 1e15;
  EXPECT_EQ(unbalanced(page(sweep)), "");
}

TEST(Report, APageWithoutResultsSaysSo) {
  EXPECT_TRUE(has(page(sweep_of(0)), "No trial has ended yet."));
  wire::SweepDocument failed = sweep_of(4);
  for (Trial& trial : failed.trials) {
    trial.state = TrialState::kFailed;
    trial.metrics.clear();
    trial.why = trial.n == 2 ? "out of memory" : "exit code 1";
  }
  const std::string html = page(failed);
  EXPECT_TRUE(has(html, "No trial has succeeded."));
  EXPECT_TRUE(has(html, "<td class=\"num\">3</td><td>exit code 1</td><td>1, 3, 4</td>"));
  wire::SweepDocument no_metric = sweep_of(4);
  no_metric.metric = "";
  EXPECT_TRUE(has(page(no_metric), "The sweep has no metric to minimize or maximize."));
  EXPECT_FALSE(has(page(no_metric), "Metric over trials"));
  for (const std::string& each :
       {page(sweep_of(0)), html, page(no_metric), page(sweep_of(1)), page(wire::SweepDocument{})}) {
    EXPECT_EQ(unbalanced(each), "");
    EXPECT_FALSE(has_bad_numbers(each));
  }
}

TEST(Report, ParametersOfTextsAloneHaveAHeatMapAndBoxes) {
  wire::SweepDocument sweep = sweep_of(12);
  sweep.space = {list("opt", {"adam", "sgd"}), list("net", {"a", "b", "c"})};
  static constexpr const char* kNets[] = {"a", "b", "c"};
  for (Trial& trial : sweep.trials)
    trial.params = {trial.params[1], {"net", guess(kNets[trial.n % 3])}};
  const std::string html = page(sweep);
  EXPECT_TRUE(has(html, "<h2>opt and net</h2>"));
  EXPECT_TRUE(has(html, "<h2>By net</h2>"));
  EXPECT_EQ(count(heat_plot(Results(sweep), ParameterScale(sweep, 0), ParameterScale(sweep, 1)).svg,
                  "<rect"),
            6u);
  EXPECT_EQ(unbalanced(html), "");
}

TEST(Report, TenThousandTrialsAreThinnedAndStayBelowThreeMegabytes) {
  wire::SweepDocument sweep = sweep_of(10'000);
  for (int i = 0; i < 4; ++i) {
    sweep.space.push_back(range("extra" + std::to_string(i), 0, 1));
    for (Trial& trial : sweep.trials)
      trial.params.emplace_back("extra" + std::to_string(i),
                                of_real(std::fmod(static_cast<double>(trial.n) * 0.618034, 1)));
  }
  sweep.trials[7'000].metrics[0].value = 0.001;
  const std::string html = page(sweep);
  EXPECT_LT(html.size(), 3'000'000u);
  EXPECT_EQ(data_of(html)["rows"].size(), 10'000u);
  EXPECT_TRUE(has(html, "2,000 of 10,000 trials are shown."));
  EXPECT_TRUE(has(html, "1,000 of 10,000 trials are shown."));
  EXPECT_LE(count(html, "<circle"), kMostMarks);
  EXPECT_EQ(count(html, "<polyline"), kMostLines);
  // The best is among the marks and the lines.
  EXPECT_TRUE(has(html, "<title>trial 7001: loss 0.001</title>"));
  EXPECT_TRUE(has(html, "<title>trial 7001: 0.001</title></polyline>"));
  EXPECT_TRUE(has(html, "class=\"course\""));
}

TEST(Report, AParameterThatIsNotInUseLiesBelowItsAxis) {
  wire::SweepDocument sweep = sweep_of(6);
  const auto parallel = [&] {
    std::vector<ParameterScale> scales;
    for (std::size_t i = 0; i < sweep.space.size(); ++i) scales.emplace_back(sweep, i);
    return parallel_plot(Results(sweep), scales).svg;
  };
  EXPECT_FALSE(has(parallel(), "not used"));
  sweep.trials[3].params.pop_back();
  EXPECT_TRUE(has(parallel(), "not used"));
  EXPECT_EQ(count(parallel(), "class=\"axis\""), 4u);
}

TEST(Report, TrialsThatOverlapOnACardHaveLanesOfTheirOwn) {
  wire::SweepDocument sweep = sweep_of(3);
  for (Trial& trial : sweep.trials) trial.cards = {2};
  sweep.trials[0].started = sweep.trials[1].started = sweep.started;
  sweep.trials[2].started = sweep.trials[0].ended;
  sweep.trials[2].ended.reset();
  sweep.trials[2].state = TrialState::kRunning;
  const std::string svg = lanes_plot(Results(sweep)).svg;
  EXPECT_TRUE(has(svg, ">card 2</text>"));
  EXPECT_EQ(count(svg, "y=\"8.5\" width"), 2u);   // trials 1 and 3
  EXPECT_EQ(count(svg, "y=\"26.5\" width"), 1u);  // trial 2
  EXPECT_TRUE(has(svg, "trial 3: running, 59 min 51 s"));
  for (Trial& trial : sweep.trials) trial.cards.clear();
  EXPECT_TRUE(has(lanes_plot(Results(sweep)).svg, ">no card</text>"));
}

TEST(Report, ImportanceHasWhiskersWithinTheTrackAndTheCorrelation) {
  wire::SweepDocument sweep = sweep_of(3);
  sweep.importance = {{"lr", 60, 10, -0.5}, {"bs", 5, 30, {}}};
  const std::string html = importance_table(Results(sweep));
  EXPECT_TRUE(has(html, "<i style=\"width:60%\"></i><u style=\"left:50%;width:20%\">"));
  EXPECT_TRUE(has(html, "<u style=\"left:0%;width:35%\">"));
  EXPECT_TRUE(has(html,
                  "60 ± 10 %</span><span class=\"r\">\xe2\x88\x92"
                  "0.5</span>"));
}

TEST(Report, CurvesOfTheBestAndOfSomeOthersAreShown) {
  wire::SweepDocument sweep = sweep_of(1'000);
  sweep.trials[500].metrics[0].value = 0.01;
  sweep.trials[9].state = TrialState::kPending;
  const std::vector<std::uint64_t> shown = curves_shown(sweep);
  ASSERT_EQ(shown.size(), kMostCurves);
  EXPECT_EQ(shown.front(), 501u);
  EXPECT_EQ(std::count(shown.begin(), shown.end(), 10u), 0);
  Curves curves;
  curves[501] = {{1, 5}, {2, kNan}, {3, 4}};
  curves[77'777] = {{1, 5}};
  const std::string svg = curves_plot(Results(sweep), curves).svg;
  EXPECT_EQ(count(svg, "class=\"curve"), 1u);
  EXPECT_TRUE(has(svg, "trial 501: 4 at step 3"));
}

TEST(Scale, ALogAxisHasPowersOfTenAndAListOnePlaceEach) {
  const wire::SweepDocument sweep = sweep_of(4);
  const ParameterScale lr(sweep, 0);
  std::vector<std::string> texts;
  for (const Tick& tick : lr.scale().ticks(6)) texts.push_back(tick.text);
  EXPECT_EQ(texts, (std::vector<std::string>{"1e-5", "0.0001", "0.001", "0.01", "0.1"}));
  EXPECT_DOUBLE_EQ(lr.scale().part(1e-3), 0.5);
  const ParameterScale bs(sweep, 2);
  EXPECT_DOUBLE_EQ(*bs.part(sweep.trials[1]), 0.5);
  EXPECT_EQ(bs.scale().ticks(9)[2].text, "64");
}

TEST(Scale, OneDivergedTrialDoesNotFlattenThePlot) {
  std::vector<double> values;
  values.reserve(51);
  for (int i = 0; i < 50; ++i) values.push_back(1 + i * 0.01);
  values.push_back(1e9);
  const Scale lowest = Scale::of_metric(values, false);
  EXPECT_FALSE(lowest.shows(1e9));
  EXPECT_TRUE(lowest.shows(1));
  EXPECT_GT(lowest.part(1.49) - lowest.part(1), 0.2);
  EXPECT_TRUE(Scale::of_metric(values, true).shows(1e9));  // the best
}

TEST(Scale, ALongListOfNumbersIsAscendingWhateverItsOrder) {
  wire::SweepDocument sweep = sweep_of(1);
  sweep.space[2] = list("bs", {"64", "16", "32"});
  const std::vector<Tick> ticks = ParameterScale(sweep, 2).scale().ticks(3);
  EXPECT_EQ(ticks[0].text, "16");
  EXPECT_EQ(ticks[2].text, "64");
}

TEST(Markup, AShellReadsTheSameWords) {
  EXPECT_EQ(shell_line({"python", "a b", "it's", "", "--x=1", "{lr}", "{a,b}"}),
            R"(python 'a b' 'it'\''s' '' --x=1 {lr} '{a,b}')");
  EXPECT_EQ(shell_line({"A=1", "~", "*"}), "'A=1' '~' '*'");
  EXPECT_EQ(shell_line({"echo", "a\nb'\\", "$HOME"}), R"(echo $'a\x0ab\'\\' '$HOME')");
}

TEST(Markup, NumbersAreShort) {
  EXPECT_EQ(number_text(0.1 + 0.2), "0.3");
  EXPECT_EQ(number_text(120'000), "120000");
  EXPECT_EQ(number_text(1.25e-7), "1.25e-7");
  EXPECT_EQ(number_text(3e20), "3e20");
  EXPECT_EQ(number_text(-0.0), "0");
  EXPECT_EQ(number_text(kNan), "NaN");
  EXPECT_EQ(place_text(-12.04), "-12");
  EXPECT_EQ(place_text(0.96), "1");
  EXPECT_EQ(place_text(-0.04), "0");
  EXPECT_EQ(count_text(1'234'567), "1,234,567");
}

TEST(Curve, LinesThatAreNoReportsAreLeftOut) {
  const std::vector<CurvePoint> points = read_curve(
      "{\"step\":1,\"loss\":0.5}\nrubbish\n{\"loss\":0.4}\n\n{\"step\":9,\"acc\":1}\n"
      "{\"step\":5,\"loss\":\"x\"}\n[1,2]\n{\"step\":12,\"loss\":0.25}",
      "loss");
  ASSERT_EQ(points.size(), 3u);
  EXPECT_EQ(points[1].step, 3);  // of the line
  EXPECT_EQ(points[1].value, 0.4);
  EXPECT_EQ(points[2].step, 12);
  EXPECT_TRUE(read_curve("", "loss").empty());
  EXPECT_TRUE(read_curve(std::string(1'000'000, '['), "loss").empty());
  EXPECT_TRUE(read_curve("{\"loss\":1e999}\n{\"loss\":NaN}\n", "loss").empty());
}

TEST(Curve, TheLastPointIsKeptAndALaterRunReplacesAnEarlierOne) {
  std::string lines;
  for (int i = 1; i <= 1'000; ++i)
    lines += "{\"step\":" + std::to_string(i) + ",\"loss\":" + std::to_string(i) + "}\n";
  lines += "{\"step\":1,\"loss\":-1}\n";
  const std::vector<CurvePoint> points = read_curve(lines, "loss", 50);
  ASSERT_EQ(points.size(), 50u);
  EXPECT_EQ(points.front().value, -1);
  EXPECT_EQ(points.back().step, 1'000);
  EXPECT_EQ(read_curve(lines, "loss", 1).front().step, 1'000);
  EXPECT_TRUE(read_curve(lines, "loss", 0).empty());
}

}  // namespace
}  // namespace mete::sweep
