// SPDX-License-Identifier: Apache-2.0
// See sweep_text.h. Names of metrics, reasons and values come from programs and other users: every
// text goes through base::printable() or a Table, which does that. A trial has a column for each
// parameter that varies, or one column for all of them where there are many.
#include "cli/sweep_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "base/brief.h"
#include "base/moment.h"
#include "base/process.h"
#include "base/text.h"
#include "cli/sweep_document.h"
#include "cli/table.h"
#include "sweep/markup.h"
#include "sweep/report.h"
#include "sweep/results.h"

namespace mete::cli {

using core::sweep::SweepState;
using core::sweep::TrialState;
using wire::SweepDocument;
using wire::SweepRow;

namespace {

constexpr std::size_t kBar = 16;            // columns
constexpr std::size_t kMaxName = 16;        // of a sweep in the line of progress
constexpr std::size_t kMostParameters = 5;  // with a column each
constexpr std::size_t kDefaultWidth = 80;
constexpr std::size_t kPlotRows = 12;
constexpr std::size_t kMostImportance = 10;  // rows

std::uint64_t over(const SweepRow& row) { return row.ok + row.failed + row.stopped; }

std::string bar(std::uint64_t done, std::uint64_t all) {
  const std::size_t filled =
      all == 0 ? 0 : static_cast<std::size_t>(std::min(done, all) * kBar / all);
  return "[" + std::string(filled, '#') + std::string(kBar - filled, '.') + "]";
}

std::string counted(std::uint64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::int64_t seconds(WallTime from, WallTime to) {
  return std::max<std::int64_t>(0, (to.ms - from.ms) / 1000);
}

std::string states_text(const SweepRow& row) {
  std::string text = std::to_string(row.ok) + " ok";
  if (row.failed > 0) text += ", " + std::to_string(row.failed) + " failed";
  if (row.stopped > 0) text += ", " + std::to_string(row.stopped) + " stopped early";
  return text;
}

std::string metric_text(double value) { return sweep::number_text(value, 6); }

}  // namespace

std::string numbered(std::uint64_t count, std::string_view noun) {
  return sweep::count_text(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

// ---- rows --------------------------------------------------------------------------------------

std::string best_text(const SweepDocument::Best& best) {
  return base::printable(best.metric) + " " + metric_text(best.value) + " of trial " +
         std::to_string(best.n);
}

std::string counts_text(const SweepRow& row) {
  const std::uint64_t done = over(row);
  std::string text = row.wanted ? std::to_string(done) + " of " + counted(*row.wanted, "trial")
                                : counted(done, "trial");
  text += done == 1 && !row.wanted ? " is over" : " are over";
  return done == 0 ? text : text + ": " + states_text(row);
}

std::string progress_line(const SweepRow& row, WallTime now) {
  const std::uint64_t done = over(row);
  std::string line = fit_columns(base::printable(row.name), kMaxName) + " ";
  if (row.wanted)
    line += bar(done, *row.wanted) + " " + std::to_string(done) + "/" + std::to_string(*row.wanted);
  else
    line += std::to_string(done) + " done";
  if (row.running > 0) line += ", " + std::to_string(row.running) + " run";
  if (row.failed > 0) line += ", " + std::to_string(row.failed) + " failed";
  if (row.state != SweepState::kRunning) line += ", " + std::string(to_string(row.state));
  if (row.best)
    line += ", best " + fit_columns(base::printable(row.best->metric), kMaxName) + " " +
            sweep::number_text(row.best->value, 4);
  if (row.end_forecast) line += ", ends ~" + base::moment(*row.end_forecast, now);
  if (row.state == SweepState::kRunning && !row.why.empty())
    line += ", waits: " + base::printable(row.why);
  return line;
}

std::string end_text(const SweepRow& row, WallTime now) {
  std::string text =
      "sweep " + base::printable(row.name) + " is " + std::string(to_string(row.state));
  if (!row.why.empty()) text += ": " + base::printable(row.why);
  text += "; " + states_text(row) + ", in " +
          base::duration_in_words(seconds(row.started, row.ended.value_or(now)));
  if (row.best) text += "; best " + best_text(*row.best);
  return text;
}

std::string failures_text(const SweepDocument& sweep) {
  struct Reason {
    std::uint64_t count = 0;
    std::uint64_t first = 0;  // trial
  };
  std::map<std::string, Reason> reasons;
  std::uint64_t failed = 0;
  for (const SweepDocument::Trial& trial : sweep.trials) {
    if (trial.state != TrialState::kFailed) continue;
    ++failed;
    Reason& reason = reasons[trial.why];
    if (++reason.count == 1) reason.first = trial.n;
  }
  if (failed == 0) return "";
  const auto most = std::max_element(reasons.begin(), reasons.end(), [](auto& a, auto& b) {
    return a.second.count < b.second.count ||
           (a.second.count == b.second.count && a.second.first > b.second.first);
  });
  const std::string first = std::to_string(most->second.first);
  std::string text =
      failed == 1 ? "trial " + first + " failed" : counted(failed, "trial") + " failed";
  if (most->second.count < failed) text += ", " + std::to_string(most->second.count) + " of them";
  if (!most->first.empty()) text += ": " + base::printable(most->first);
  return text + "; mete sweep logs " + base::printable(sweep.name) + " " + first +
         " shows the output of trial " + first;
}

std::string row_text(const SweepRow& row) {
  std::string text =
      "sweep " + base::printable(row.name) + " is " + std::string(to_string(row.state));
  if (row.state == SweepState::kPaused && row.running > 0)
    text +=
        "; " + counted(row.running, "running trial") + (row.running == 1 ? " finishes" : " finish");
  if (row.state == SweepState::kStopped)
    text += row.running > 0 ? "; " + counted(row.running, "trial") +
                                  (row.running == 1 ? " is" : " are") + " being ended"
                            : "; mete sweep resume " + base::printable(row.name) + " continues it";
  if (row.state == SweepState::kRunning) text += "; " + counts_text(row);
  if (row.state == SweepState::kRunning && !row.why.empty())
    text += "; its next trial waits: " + base::printable(row.why);
  return text;
}

std::string sweeps_table(const wire::SweepsDocument& document, bool users,
                         std::optional<std::size_t> width) {
  Table table({{"NAME", Align::kLeft, 24, false, 12},
               {"USER", Align::kLeft, 12, false, 6},
               {"STATE"},
               {"TRIALS", Align::kRight},
               {"RUN", Align::kRight},
               {"FAILED", Align::kRight},
               {"BEST", Align::kLeft, 28, false, 12},
               {"TIME", Align::kRight, 0, false, 0, 3},
               {"ENDS", Align::kLeft, 0, false, 0, 2},
               {"WHY", Align::kLeft, 40, false, 10, 1}});
  for (const SweepRow& row : document.sweeps)
    table.add({row.name, users ? row.user : "", to_string(row.state),
               std::to_string(over(row)) + (row.wanted ? "/" + std::to_string(*row.wanted) : ""),
               row.running == 0 ? "" : std::to_string(row.running),
               row.failed == 0 ? "" : std::to_string(row.failed),
               row.best ? row.best->metric + " " + metric_text(row.best->value) : "",
               base::clock_duration(seconds(row.started, row.ended.value_or(document.at))),
               row.end_forecast ? "~" + base::moment(*row.end_forecast, document.at) : "",
               row.why});
  return table.text(width);
}

// ---- trials ------------------------------------------------------------------------------------

namespace {

// The parameters that differ between trials.
std::vector<std::string> varying(const SweepDocument& sweep) {
  std::vector<std::string> names;
  for (const SweepDocument::Parameter& parameter : sweep.space)
    if (parameter.values.size() != 1) names.push_back(parameter.name);
  return names;
}

std::string value_text(const SweepDocument::Trial& trial, const std::string& name) {
  for (const auto& [param, value] : trial.params)
    if (param == name)
      return value.kind == core::sweep::Value::Kind::kReal && value.text.size() > 10
                 ? sweep::number_text(value.number, 6)
                 : value.text;
  return "";
}

std::string params_text(const SweepDocument::Trial& trial, const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names)
    if (const std::string value = value_text(trial, name); !value.empty())
      text += (text.empty() ? "" : " ") + name + "=" + value;
  return text;
}

std::string time_of(const SweepDocument::Trial& trial, WallTime now) {
  if (!trial.started) return "";
  if (!trial.ended && trial.state != TrialState::kRunning) return "";
  return base::clock_duration(seconds(*trial.started, trial.ended.value_or(now)));
}

}  // namespace

TrialList best_and_running(const SweepDocument& sweep, std::size_t best, std::size_t running) {
  TrialList list;
  const sweep::Results results(sweep);
  for (const std::size_t i : results.ranked())
    if (const sweep::TrialResult& each = results.all()[i]; each.plotted && list.size() < best)
      list.push_back(each.trial);
  // Without a metric the latest ones say most.
  if (sweep.metric.empty())
    for (std::size_t i = results.all().size(); i-- > 0 && list.size() < best;)
      if (results.all()[i].trial->state >= TrialState::kOk) list.push_back(results.all()[i].trial);
  for (const sweep::TrialResult& each : results.all())
    if (each.trial->state == TrialState::kRunning && running > 0) {
      list.push_back(each.trial);
      --running;
    }
  return list;
}

TrialList all_ranked(const SweepDocument& sweep) {
  TrialList list;
  const sweep::Results results(sweep);
  for (const std::size_t i : results.ranked()) list.push_back(results.all()[i].trial);
  return list;
}

std::string trials_table(const SweepDocument& sweep, const TrialList& trials,
                         std::optional<std::size_t> width) {
  const std::vector<std::string> names = varying(sweep);
  const bool apart = names.size() <= kMostParameters;
  // Titles must outlive the table.
  std::vector<std::string> titles{base::printable(sweep.metric)};
  std::vector<Column> columns{{"TRIAL", Align::kRight}, {"STATE"}, {titles.front(), Align::kRight}};
  if (apart)
    for (const std::string& name : names) columns.push_back({name, Align::kRight, 24, false, 8});
  else
    columns.push_back({"PARAMETERS", Align::kLeft, 0, false, 20});
  for (const Column& column :
       {Column{"STEP", Align::kRight, 0, false, 0, 2},
        Column{"SHARE", Align::kRight, 0, false, 0, 4},
        Column{"PEAK", Align::kRight, 0, false, 0, 3}, Column{"TIME", Align::kRight},
        Column{"JOB", Align::kRight, 0, false, 0, 5},
        Column{"WHY", Align::kLeft, 60, false, 10, 1}})
    columns.push_back(column);
  Table table(std::move(columns));
  for (const SweepDocument::Trial* trial : trials) {
    const std::optional<double> value = core::sweep::value_of(trial->metrics, sweep.metric);
    std::vector<std::string> cells{std::to_string(trial->n), std::string(to_string(trial->state)),
                                   value ? metric_text(*value) : ""};
    if (apart)
      for (const std::string& name : names) cells.push_back(value_text(*trial, name));
    else
      cells.push_back(params_text(*trial, names));
    cells.push_back(trial->step ? std::to_string(*trial->step) : "");
    cells.push_back(trial->granted ? base::brief(*trial->granted) : "");
    cells.push_back(trial->peak ? base::brief(*trial->peak) : "");
    cells.push_back(time_of(*trial, sweep.at));
    cells.push_back(trial->job ? to_string(*trial->job) : "");
    cells.push_back(trial->why);
    table.add(cells);
  }
  return table.text(width);
}

// ---- one sweep ---------------------------------------------------------------------------------

std::string importance_text(const SweepDocument& sweep, std::optional<std::size_t> width) {
  if (sweep.importance.empty()) return "";
  Table table({{"IMPORTANCE", Align::kLeft, 24, false, 8},
               {"%", Align::kRight},
               {"±", Align::kRight},
               {"CORRELATION", Align::kRight}});
  std::size_t rows = 0;
  for (const SweepDocument::Importance& each : sweep.importance) {
    if (++rows > kMostImportance) break;
    table.add(
        {each.param, sweep::number_text(std::round(each.pct * 10) / 10, 4),
         sweep::number_text(std::round(each.plus_minus_pct * 10) / 10, 4),
         each.correlation ? sweep::number_text(std::round(*each.correlation * 100) / 100, 3) : ""});
  }
  return table.text(width);
}

namespace {

SweepRow row_of(const SweepDocument& sweep) {
  SweepRow row;
  row.name = sweep.name;
  row.state = sweep.state;
  row.why = sweep.why;
  row.started = sweep.started;
  row.ended = sweep.ended;
  row.wanted = sweep.wanted;
  for (const SweepDocument::Trial& trial : sweep.trials) {
    if (trial.state == TrialState::kPending) ++row.pending;
    if (trial.state == TrialState::kRunning) ++row.running;
    if (trial.state == TrialState::kOk) ++row.ok;
    if (trial.state == TrialState::kFailed) ++row.failed;
    if (trial.state == TrialState::kStopped) ++row.stopped;
  }
  row.best = sweep.best;
  row.end_forecast = sweep.end_forecast;
  return row;
}

std::string head_text(const SweepDocument& sweep) {
  const SweepRow row = row_of(sweep);
  std::string text =
      "sweep " + base::printable(sweep.name) + ": " + std::string(to_string(sweep.state));
  if (!sweep.why.empty()) text += " · " + base::printable(sweep.why);
  text += " · started " + base::moment(sweep.started, sweep.at);
  if (sweep.ended)
    text += ", ended " + base::moment(*sweep.ended, sweep.at);
  else if (sweep.end_forecast)
    text += " · ends about " + base::moment(*sweep.end_forecast, sweep.at);
  text += "\n  trials   " + counts_text(row);
  if (row.running > 0) text += ", " + std::to_string(row.running) + " running";
  if (row.pending > 0) text += ", " + std::to_string(row.pending) + " pending";
  if (const std::string failures = failures_text(sweep); !failures.empty())
    text += "\n  failed   " + failures;
  text += "\n  sampler  " + base::printable(sweep.sampler);
  if (sweep.seed) text += ", seed " + std::to_string(*sweep.seed);
  if (!sweep.metric.empty())
    text += std::string("\n  goal     ") + (sweep.maximize ? "maximize " : "minimize ") +
            base::printable(sweep.metric);
  if (!sweep.target.empty()) text += ", until " + base::printable(sweep.target);
  std::vector<std::string> dropped;
  for (const SweepDocument::Parameter& parameter : sweep.space)
    for (const std::string& value : parameter.dropped)
      dropped.push_back(base::printable(parameter.name + "=" + value));
  if (!dropped.empty()) text += "\n  dropped  " + base::join(dropped, ", ") + " (--reduce)";
  if (sweep.best) text += "\n  best     " + best_text(*sweep.best);
  if (!sweep.results.empty()) text += "\n  results  " + base::printable(sweep.results);
  text += "\n  command  " + base::printable(sweep::shell_line(sweep.command));
  return text;
}

}  // namespace

std::string sweep_text(const SweepDocument& sweep, std::optional<std::size_t> width, bool ascii) {
  std::string text = wrapped(head_text(sweep), width);
  constexpr std::size_t kBest = 10, kRunning = 16;
  if (const TrialList trials = best_and_running(sweep, kBest, kRunning); !trials.empty())
    text += "\n\n" + trials_table(sweep, trials, width);
  constexpr std::size_t kMostWidth = 120;
  if (!sweep.metric.empty() && !sweep.trials.empty()) {
    std::string plot = sweep::plot_text(sweep, std::min(width.value_or(kDefaultWidth), kMostWidth),
                                        kPlotRows, ascii);
    while (plot.ends_with('\n')) plot.pop_back();
    text += "\n\n" + plot;
  }
  if (const std::string importance = importance_text(sweep, width); !importance.empty())
    text += "\n\n" + importance;
  return text;
}

bool has_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string value = base::to_lower(base::variable(name));
    if (value.empty()) continue;
    return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return true;
}

}  // namespace mete::cli
