// SPDX-License-Identifier: Apache-2.0
// See report.h. The page is one string: a head with its style, what the sweep is and how far it
// got, then sections from the most to the least important: best trial, importance, plots, all
// results. A section with nothing to show is left out, or says why it is empty. The page forbids
// itself to load anything, so that not even a mistake in here could tell anyone that it was opened.
#include "sweep/report.h"

#include <algorithm>
#include <cmath>

#include "base/brief.h"
#include "base/text.h"
#include "core/sweep/fill.h"
#include "sweep/markup.h"
#include "sweep/report_page.h"
#include "sweep/report_plots.h"
#include "sweep/report_tables.h"
#include "sweep/results.h"
#include "sweep/scale.h"

namespace mete::sweep {

using core::sweep::SweepState;
using core::sweep::TrialState;

namespace {

std::string duration(std::int64_t ms) {
  return base::duration_in_words(std::max<std::int64_t>(0, ms) / 1000);
}

std::string section(const std::string& title, const std::string& about, const std::string& body) {
  return "<section>\n<h2>" + html_text(title) + "</h2>\n" +
         (about.empty() ? "" : "<p>" + html_text(about) + "</p>\n") + body + "</section>\n";
}

std::string plot_section(const std::string& title, const std::string& about, const Plot& plot,
                         const std::string& key = "") {
  if (plot.svg.empty()) return "";
  const std::string keys = key + plot.key;
  return section(title, about + (plot.note.empty() ? "" : " " + plot.note),
                 (keys.empty() ? "" : "<div class=\"key\">" + keys + "</div>\n") + plot.svg);
}

std::string figure(const std::string& name, const std::string& value, const std::string& note) {
  return "<div class=\"figure\"><span>" + html_text(name) + "</span><b>" + html_text(value) +
         "</b><span>" + html_text(note) + "</span></div>\n";
}

// ---- top ---------------------------------------------------------------------------------------

constexpr TrialState kInOrder[] = {TrialState::kOk, TrialState::kStopped, TrialState::kFailed,
                                   TrialState::kRunning, TrialState::kPending};

std::string progress(const Results& results) {
  const std::size_t made = results.all().size();
  const auto all =
      static_cast<double>(std::max<std::uint64_t>({1, made, results.sweep().wanted.value_or(0)}));
  std::string bar;
  std::string key;
  for (const TrialState state : kInOrder) {
    const std::size_t count = results.count(state);
    if (count == 0) continue;
    const std::string name(to_string(state));
    if (state != TrialState::kPending)
      bar += "<i class=\"b-" + name +
             "\" style=\"width:" + place_text(100 * static_cast<double>(count) / all) + "%\"></i>";
    key += swatch("b-" + name, count_text(count) + " " + name);
  }
  if (const std::uint64_t wanted = results.sweep().wanted.value_or(0); wanted > made)
    key += swatch("b-pending", count_text(wanted - made) + " not begun");
  return "<div class=\"progress\" role=\"img\" aria-label=\"" + count_text(made) + " trials\">" +
         bar + "</div>\n<div class=\"key\">" + key + "</div>\n";
}

std::string top(const Results& results) {
  const wire::SweepDocument& sweep = results.sweep();
  const std::string state(to_string(sweep.state));
  std::string html = "<header>\n<div class=\"top\"><h1>" + html_text(clipped(sweep.name, 120)) +
                     "</h1><span class=\"chip " +
                     (sweep.state == SweepState::kDone ? "ok" : state) + "\">" + state +
                     "</span></div>\n<p class=\"meta\">";
  std::string meta;
  const auto add = [&meta](const std::string& text) {
    meta += (meta.empty() ? "" : " · ") + html_text(text);
  };
  if (!sweep.user.empty()) add(clipped(sweep.user, 64));
  if (!sweep.metric.empty())
    add((sweep.maximize ? "maximize " : "minimize ") + clipped(sweep.metric, 64));
  if (!sweep.sampler.empty())
    add("sampler " + clipped(sweep.sampler, 32) +
        (sweep.seed ? ", seed " + std::to_string(*sweep.seed) : ""));
  if (!sweep.target.empty()) add("target " + clipped(sweep.target, 120));
  add(moment_text(sweep.started) + (sweep.ended ? " to " + moment_text(*sweep.ended) : ""));
  if (!sweep.why.empty()) add(clipped(sweep.why, 200));
  html += meta + "</p>\n";
  if (!sweep.command.empty())
    html += "<pre aria-label=\"command\">" + html_text(shell_line(sweep.command)) + "</pre>\n";
  return html + "</header>\n";
}

std::string figures(const Results& results) {
  const wire::SweepDocument& sweep = results.sweep();
  const std::int64_t end = (sweep.ended ? *sweep.ended : sweep.at).ms;
  std::string html = "<div class=\"figures\">\n";
  const std::size_t over = results.count(TrialState::kOk) + results.count(TrialState::kFailed) +
                           results.count(TrialState::kStopped);
  html += figure("Trials over", count_text(over),
                 sweep.wanted ? "of " + count_text(*sweep.wanted) : "no limit");
  html += figure("Running", count_text(results.count(TrialState::kRunning)),
                 count_text(results.count(TrialState::kPending)) + " pending");
  html += figure("Failed", count_text(results.count(TrialState::kFailed)),
                 count_text(results.count(TrialState::kStopped)) + " stopped early");
  std::string forecast = "in all";
  if (!sweep.ended)
    forecast = sweep.end_forecast ? "until about " + moment_text(*sweep.end_forecast) : "so far";
  html += figure("Time", duration(end - sweep.started.ms), forecast);
  double busy_ms = 0;
  for (const TrialResult& result : results.all())
    if (result.trial->started)
      busy_ms +=
          std::max(0.0, static_cast<double>((result.trial->ended ? result.trial->ended->ms : end) -
                                            result.trial->started->ms));
  if (busy_ms > 0 && end > sweep.started.ms)
    html += figure("Trials at once",
                   number_text(busy_ms / static_cast<double>(end - sweep.started.ms), 3),
                   "mean; " + duration(static_cast<std::int64_t>(busy_ms)) + " of trials");
  return html + "</div>\n";
}

// ---- best --------------------------------------------------------------------------------------

const TrialResult* best_of(const Results& results) {
  if (results.sweep().best)
    for (const TrialResult& result : results.all())
      if (result.trial->n == results.sweep().best->n) return &result;
  if (results.plotted().empty()) return nullptr;
  const TrialResult& first = results.all()[results.ranked().front()];
  return first.counts ? &first : nullptr;
}

std::string best_section(const Results& results) {
  const wire::SweepDocument& sweep = results.sweep();
  const TrialResult* const best = best_of(results);
  if (best == nullptr) {
    std::string why = "No trial has ended yet.";
    if (sweep.metric.empty())
      why = "The sweep has no metric to minimize or maximize.";
    else if (results.count(TrialState::kOk) > 0)
      why = "No trial that ended has a number for this metric.";
    else if (results.count(TrialState::kFailed) > 0)
      why = "No trial has succeeded.";
    return section("Best trial", "", "<p class=\"empty\">" + why + "</p>\n");
  }
  const double value = sweep.best ? sweep.best->value : best->value;
  std::string body = "<div class=\"value\">" + number_text(value, 8) + "</div><p>" +
                     html_text(clipped(sweep.metric, 64)) + " of trial " +
                     std::to_string(best->trial->n);
  if (best->trial->step) body += ", at step " + std::to_string(*best->trial->step);
  body += "</p>\n<div class=\"params\">";
  for (const auto& [name, setting] : best->trial->params)
    body += "<span>" + html_text(clipped(name, 64)) + " <b>" +
            html_text(clipped(setting.text, 120)) + "</b></span>";
  body += "</div>\n";
  if (!sweep.command.empty()) {
    const std::string command = html_text(command_line_of(sweep, *best->trial));
    body += "<div class=\"copy\"><pre aria-label=\"command of the best trial\">" + command +
            "</pre><button type=\"button\" data-copy=\"" + command + "\">Copy</button></div>\n";
  }
  return section("Best trial", "", body);
}

std::string importance_section(const Results& results) {
  const std::string table = importance_table(results);
  if (table.empty()) {
    if (results.plotted().empty()) return "";
    return section("Importance", "",
                   "<p class=\"empty\">Importance needs at least eight results that differ."
                   "</p>\n");
  }
  return section("Importance",
                 "How much of the variance of the metric each parameter alone explains, with one "
                 "standard deviation; Spearman's correlation with the metric.",
                 table);
}

// ---- plots -------------------------------------------------------------------------------------

std::string ramp() {
  std::string cells;
  for (std::size_t i = 0; i < kLevels; ++i) cells += "<i class=\"c" + std::to_string(i) + "\"></i>";
  return "<span class=\"ramp\" title=\"each colour is a tenth of the trials\">worst<span "
         "class=\"cells\">" +
         cells + "</span>best</span>";
}

// Those that vary, most important first; equals in the order of the space.
std::vector<ParameterScale> by_importance(const wire::SweepDocument& sweep) {
  std::vector<ParameterScale> parameters;
  for (std::size_t i = 0; i < sweep.space.size(); ++i) {
    ParameterScale parameter(sweep, i);
    if (parameter.used() > 1) parameters.push_back(std::move(parameter));
  }
  const auto place = [&sweep](const ParameterScale& parameter) {
    const auto found =
        std::find_if(sweep.importance.begin(), sweep.importance.end(),
                     [&](const auto& each) { return each.param == parameter.name(); });
    return found - sweep.importance.begin();
  };
  std::stable_sort(parameters.begin(), parameters.end(),
                   [&](const auto& a, const auto& b) { return place(a) < place(b); });
  return parameters;
}

std::string metric_plots(const Results& results, const Curves& curves) {
  const Plot metric = metric_plot(results);
  std::string key = "<span><i style=\"background:var(--failed)\"></i>best so far</span>";
  if (results.count(TrialState::kFailed) > 0) key += "<span>short lines below: failed</span>";
  if (results.count(TrialState::kStopped) > 0) key += "<span>hollow: stopped early</span>";
  return plot_section("Metric over trials", "One mark for each trial.", metric, key) +
         plot_section("Learning curves", "The best five in colour.", curves_plot(results, curves)) +
         plot_section("Distribution", "How often each result came; the line is the best.",
                      histogram_plot(results));
}

std::string parameter_plots(const Results& results, const std::vector<ParameterScale>& parameters) {
  constexpr std::size_t kMostBoxPlots = 8;
  std::string html;
  if (parameters.size() >= 2) {
    const Plot heat = heat_plot(results, parameters[0], parameters[1]);
    html += plot_section(
        clipped(parameters[0].name(), 30) + " and " + clipped(parameters[1].name(), 30),
        results.sweep().importance.empty()
            ? "Two parameters, coloured by the metric."
            : "The two most important parameters, coloured by the metric.",
        heat, ramp());
  }
  std::size_t boxes = 0;
  for (const ParameterScale& parameter : parameters) {
    if (!parameter.listed() || boxes == kMostBoxPlots) continue;
    const std::string box = plot_section("By " + clipped(parameter.name(), 40),
                                         "Median, quartiles, and the range without outliers.",
                                         box_plot(results, parameter));
    boxes += box.empty() ? 0 : 1;
    html += box;
  }
  return html;
}

std::string parallel_section(const Results& results,
                             const std::vector<ParameterScale>& parameters) {
  const Plot plot = parallel_plot(results, parameters);
  if (plot.svg.empty()) return "";
  return section("Parallel coordinates",
                 "One line for each trial. Drag along an axis, or use the arrow keys, to select a "
                 "range; a double click or Escape clears it." +
                     (plot.note.empty() ? "" : " " + plot.note),
                 "<div class=\"tools\">" + ramp() +
                     "<button type=\"button\" id=\"unbrush\" disabled>Clear selection</button>"
                     "<span id=\"brushed\" role=\"status\"></span></div>\n<div class=\"scroll\">" +
                     plot.svg + "</div>\n");
}

std::string lanes_section(const Results& results) {
  const Plot plot = lanes_plot(results);
  if (plot.svg.empty()) return "";
  std::string key;
  for (const TrialState state :
       {TrialState::kOk, TrialState::kStopped, TrialState::kFailed, TrialState::kRunning})
    if (results.count(state) > 0)
      key += swatch("b-" + std::string(to_string(state)), std::string(to_string(state)));
  return section("Trials over cards and time", plot.note,
                 (plot.note.empty() ? "<div class=\"key\">" + key + "</div>\n" : "") +
                     "<div class=\"scroll\">" + plot.svg + "</div>\n");
}

// ---- all results -------------------------------------------------------------------------------

std::string all_section(const Results& results) {
  if (results.all().empty()) return "";
  const AllResults all = all_results(results);
  std::string about = results.plotted().empty() ? "" : "Best first. ";
  about += "The filter takes words and conditions: ok lr<0.01 bs=32.";
  if (all.rows < results.all().size())
    about += " The best " + count_text(all.rows) + " of " + count_text(results.all().size()) +
             " trials are shown.";
  about += " Numbers drawn from a range have six digits here";
  about += results.sweep().results.empty()
               ? "."
               : "; all digits are in " + clipped(results.sweep().results, 200) + ".";
  return section(
      "All results", about,
      "<div class=\"tools\"><input id=\"filter\" type=\"search\" placeholder=\"Filter\" "
      "aria-label=\"filter\" spellcheck=\"false\" autocapitalize=\"off\" autocomplete=\"off\">"
      "<span id=\"shown\" role=\"status\"></span><div class=\"pages\"><button type=\"button\" "
      "id=\"previous\">Previous</button><span id=\"where\"></span><button type=\"button\" "
      "id=\"next\">Next</button></div></div>\n<noscript><p>This table needs JavaScript. "
      "<code>mete sweep report -o csv</code> prints it.</p></noscript>\n<div class=\"scroll\" "
      "tabindex=\"0\" role=\"region\" aria-label=\"all results\"><table><thead><tr "
      "id=\"head\"></tr></thead><tbody id=\"body\"></tbody></table></div>\n<script "
      "type=\"application/json\" id=\"data\">" +
          all.json + "</script>\n");
}

std::string head(const wire::SweepDocument& sweep) {
  return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
         "name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<meta "
         "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
         "'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
         "<title>" +
         html_text(clipped(sweep.name, 120)) + " - mete sweep</title>\n<style>" + report_style() +
         "</style>\n</head>\n<body>\n<main>\n";
}

}  // namespace

std::vector<std::uint64_t> curves_shown(const wire::SweepDocument& sweep) {
  return curves_shown(Results(sweep));
}

std::string command_line_of(const wire::SweepDocument& sweep,
                            const wire::SweepDocument::Trial& trial) {
  std::vector<std::string> names;
  for (const wire::SweepDocument::Parameter& parameter : sweep.space)
    names.push_back(parameter.name);
  const auto filled = [&](const core::sweep::Params& params) {
    return core::sweep::fill_command(sweep.command, names, params, sweep.as_flags);
  };
  const std::vector<std::string> words = filled(trial.params);
  // A parameter that the command does not name reaches the program by its environment.
  std::string line;
  for (const auto& param : trial.params) {
    core::sweep::Params others = trial.params;
    std::erase(others, param);
    if (filled(others) == words)
      line += "METE_PARAM_" + core::sweep::environment_name(param.first) + "=" +
              shell_line({param.second.text}) + " ";
  }
  return line + shell_line(words);
}

std::string to_html(const wire::SweepDocument& sweep, const Curves& curves,
                    const ReportOptions& options) {
  const Results results(sweep);
  const std::vector<ParameterScale> parameters = by_importance(sweep);
  std::string html = head(sweep) + top(results) + figures(results) + progress(results) +
                     "<div class=\"rows\">\n<div class=\"cols\">\n" + best_section(results) +
                     importance_section(results) + "</div>\n";
  if (const std::string best = best_table(results, options.best); !best.empty())
    html += section("Best trials", "", best);
  if (const std::string plots =
          metric_plots(results, curves) + parameter_plots(results, parameters);
      !plots.empty())
    html += "<div class=\"cols\">\n" + plots + "</div>\n";
  html += parallel_section(results, parameters) + lanes_section(results);
  if (const std::string failures = failures_table(results); !failures.empty())
    html += section("Failures", "", failures);
  html += all_section(results) + "</div>\n<footer>Made by mete" +
          (options.version.empty() ? "" : " " + html_text(options.version)) + ", " +
          moment_text(sweep.at) + ".</footer>\n</main>\n<script>" + std::string(report_script()) +
          "</script>\n</body>\n</html>\n";
  return html;
}

}  // namespace mete::sweep
