// SPDX-License-Identifier: Apache-2.0
// See report_tables.h. The JSON has a list of columns, each [name, kind], and a list of rows, best
// first; the last field of a row is the level of its colour, -1 for none. Kinds: "" text, "number",
// "state" (an index), "mib", "s". Values that were drawn from a range have six significant digits;
// the best trial and the commands have all digits.
#include "sweep/report_tables.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "base/brief.h"
#include "base/bytes.h"
#include "base/text.h"
#include "base/time.h"
#include "sweep/markup.h"
#include "sweep/report.h"
#include "sweep/results_csv.h"

namespace mete::sweep {

using core::sweep::TrialState;
using core::sweep::Value;
using Trial = wire::SweepDocument::Trial;

namespace {

constexpr std::size_t kLongest = 120;  // columns of a text in a table
constexpr int kStates = 5;             // of trials

const Value* value_in(const Trial& trial, const std::string& name, std::size_t hint) {
  if (hint < trial.params.size() && trial.params[hint].first == name)
    return &trial.params[hint].second;
  for (const auto& [other, value] : trial.params)
    if (other == name) return &value;
  return nullptr;
}

double seconds_of(const Trial& trial) {
  return static_cast<double>(std::max<std::int64_t>(0, trial.ended->ms - trial.started->ms)) / 1000;
}

std::string cell(const std::string& text, bool number) {
  return (number ? "<td class=\"num\">" : "<td>") + html_text(text) + "</td>";
}
std::string heading(const std::string& text, bool number) {
  return std::string("<th scope=\"col\"") + (number ? " class=\"num\">" : ">") + html_text(text) +
         "</th>";
}

bool is_text(const Value& value) {
  return value.kind == Value::Kind::kText || value.kind == Value::Kind::kBool;
}
bool has_text(const wire::SweepDocument::Parameter& parameter) {
  return std::any_of(parameter.values.begin(), parameter.values.end(), is_text);
}

// Values that were drawn from a range are shortened.
bool is_drawn(const Value& value, const wire::SweepDocument::Parameter& parameter) {
  return value.kind == Value::Kind::kReal && parameter.values.empty();
}
std::string shown_value(const Value& value, const wire::SweepDocument::Parameter& parameter) {
  return is_drawn(value, parameter) ? number_text(value.number) : clipped(value.text, kLongest);
}

std::string chip(TrialState state) {
  const std::string name(to_string(state));
  return "<span class=\"chip " + name + "\">" + name + "</span>";
}

}  // namespace

// ---- the best ----------------------------------------------------------------------------------

std::string best_table(const Results& results, std::size_t rows) {
  const wire::SweepDocument& sweep = results.sweep();
  std::string body;
  std::size_t shown = 0;
  for (const std::size_t i : results.ranked()) {
    const TrialResult& result = results.all()[i];
    if (!result.plotted || shown == rows) break;
    const Trial& trial = *result.trial;
    body += "<tr>" + cell(std::to_string(++shown), true) + cell(std::to_string(trial.n), true) +
            "<td class=\"num\"><span class=\"dot c" + std::to_string(result.level) + "\"></span>" +
            number_text(result.value, 8) + "</td>";
    for (std::size_t k = 0; k < sweep.space.size(); ++k) {
      const Value* const value = value_in(trial, sweep.space[k].name, k);
      body += cell(value ? shown_value(*value, sweep.space[k]) : "-", !has_text(sweep.space[k]));
    }
    const bool timed = trial.started && trial.ended;
    body += "<td>" + chip(trial.state) + "</td>" +
            cell(timed ? base::clock_duration(static_cast<std::int64_t>(seconds_of(trial))) : "-",
                 true) +
            cell(!trial.peak             ? "-"
                 : trial.peak->is_zero() ? "0"
                                         : to_string(*trial.peak),
                 true);
    body += sweep.command.empty()
                ? "<td></td>"
                : "<td><button type=\"button\" data-copy=\"" +
                      html_text(command_line_of(sweep, trial)) + "\">Copy command</button></td>";
    body += "</tr>\n";
  }
  if (shown == 0) return "";
  std::string head =
      heading("#", true) + heading("trial", true) + heading(clipped(sweep.metric, 40), true);
  for (const wire::SweepDocument::Parameter& parameter : sweep.space)
    head += heading(clipped(parameter.name, 40), !has_text(parameter));
  return "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"best trials\"><table>"
         "<thead><tr>" +
         head + heading("state", false) + heading("time", true) + heading("peak", true) +
         "<th></th></tr></thead><tbody>\n" + body + "</tbody></table></div>\n";
}

// ---- importance --------------------------------------------------------------------------------

std::string importance_table(const Results& results) {
  if (results.sweep().importance.empty()) return "";
  std::string html =
      "<div class=\"imp\"><span class=\"h\">parameter</span><span class=\"h\">share of the "
      "variance</span><span class=\"h r\"></span><span class=\"h r\">correlation</span>\n";
  const auto percent = [](double pct) {
    return place_text(std::isfinite(pct) ? std::clamp(pct, 0.0, 100.0) : 0);
  };
  for (const wire::SweepDocument::Importance& each : results.sweep().importance) {
    const std::string name = html_text(clipped(each.param, 40));
    const double low = std::max(0.0, each.pct - each.plus_minus_pct);
    const double high = std::min(100.0, each.pct + each.plus_minus_pct);
    std::string correlation = "-";
    if (each.correlation) {
      const double r = std::round(*each.correlation * 100) / 100;
      correlation = r > 0 ? "+" : r < 0 ? "\xe2\x88\x92" : "";
      correlation += number_text(std::abs(r), 2);
    }
    const std::string words =
        percent(each.pct) + " percent, plus or minus " + percent(each.plus_minus_pct);
    const std::string rounded =
        percent(std::round(each.pct)) + " ± " + percent(std::round(each.plus_minus_pct)) + " %";
    html.append("<span class=\"n\" title=\"").append(name).append("\">").append(name);
    html += "</span><div class=\"track\" role=\"img\" aria-label=\"" + words;
    html += "\"><i style=\"width:" + percent(each.pct);
    html += "%\"></i><u style=\"left:" + percent(low);
    html += "%;width:" + percent(high - low);
    html += "%\"></u></div><span class=\"r\">" + rounded;
    html += "</span><span class=\"r\">" + correlation + "</span>\n";
  }
  return html + "</div>\n";
}

// ---- failures ----------------------------------------------------------------------------------

std::string failures_table(const Results& results) {
  constexpr std::size_t kReasons = 8;
  struct Reason {
    std::string why;
    std::vector<std::uint64_t> trials;
  };
  std::vector<Reason> reasons;
  std::map<std::string_view, std::size_t> places;
  for (const TrialResult& result : results.all()) {
    if (result.trial->state != TrialState::kFailed) continue;
    const auto [place, added] = places.emplace(result.trial->why, reasons.size());
    if (added) reasons.push_back({result.trial->why, {}});
    reasons[place->second].trials.push_back(result.trial->n);
  }
  if (reasons.empty()) return "";
  std::stable_sort(reasons.begin(), reasons.end(), [](const Reason& a, const Reason& b) {
    return a.trials.size() > b.trials.size();
  });
  std::string html = "<div class=\"scroll\"><table class=\"fit\"><thead><tr>" +
                     heading("trials", true) + heading("why", false) + heading("which", false) +
                     "</tr></thead><tbody>\n";
  for (std::size_t i = 0; i < std::min(kReasons, reasons.size()); ++i) {
    const Reason& reason = reasons[i];
    std::string which;
    for (std::size_t k = 0; k < std::min<std::size_t>(6, reason.trials.size()); ++k)
      which += (k > 0 ? ", " : "") + std::to_string(reason.trials[k]);
    if (reason.trials.size() > 6) which += ", …";
    html += "<tr>" + cell(count_text(reason.trials.size()), true) +
            cell(reason.why.empty() ? "-" : clipped(reason.why, kLongest), false) +
            cell(which, false) + "</tr>\n";
  }
  html += "</tbody></table></div>\n";
  if (reasons.size() > kReasons)
    html += "<p>" + count_text(kReasons) + " of " + count_text(reasons.size()) +
            " reasons are shown.</p>\n";
  return html;
}

// ---- all results -------------------------------------------------------------------------------

namespace {

void append_number(std::string& out, double value) {
  if (std::isfinite(value))
    out += number_text(value);
  else
    out += "\"" + number_text(value) + "\"";
}

// Which columns any trial has something for.
struct Columns {
  explicit Columns(const Results& results) : metrics(metrics_of(results.sweep())) {
    for (const Trial& trial : results.sweep().trials) {
      step = step || trial.step;
      peak = peak || trial.peak;
      granted = granted || trial.granted;
      time = time || (trial.started && trial.ended);
      cards = cards || !trial.cards.empty();
      job = job || trial.job;
      why = why || !trial.why.empty();
    }
    // The goal's metric first.
    const auto goal = std::find(metrics.begin(), metrics.end(), results.sweep().metric);
    if (goal != metrics.end()) std::rotate(metrics.begin(), goal, goal + 1);
    for (const wire::SweepDocument::Parameter& parameter : results.sweep().space)
      texts.push_back(has_text(parameter));
  }
  std::vector<std::string> metrics;
  std::vector<bool> texts;  // of the parameters
  bool step = false, peak = false, granted = false, time = false, cards = false, job = false,
       why = false;
};

std::string columns_json(const Results& results, const Columns& columns) {
  std::string json = R"([["trial","number"],["state","state"])";
  const auto add = [&](std::string_view name, std::string_view kind) {
    ((((json += ",[") += script_text(clipped(name, 40))) += ",\"") += kind) += "\"]";
  };
  for (const std::string& metric : columns.metrics) add(metric, "number");
  for (std::size_t k = 0; k < columns.texts.size(); ++k)
    add(results.sweep().space[k].name, columns.texts[k] ? "" : "number");
  if (columns.step) add("step", "number");
  if (columns.time) add("time", "s");
  if (columns.peak) add("peak", "mib");
  if (columns.granted) add("granted", "mib");
  if (columns.cards) add("cards", "number");
  if (columns.job) add("job", "number");
  if (columns.why) add("why", "");
  return json + "]";
}

void append_value(std::string& out, const Value* value,
                  const wire::SweepDocument::Parameter& parameter) {
  if (value == nullptr)
    out += "null";
  else if (is_drawn(*value, parameter))
    append_number(out, value->number);
  else if (value->kind == Value::Kind::kInteger && std::abs(value->number) < 1e15 &&
           value->text == std::to_string(static_cast<std::int64_t>(value->number)))
    out += value->text;
  else
    out += script_text(clipped(value->text, kLongest));
}

void append_mib(std::string& out, const std::optional<Bytes>& bytes) {
  out += bytes ? std::to_string(bytes->count() >> 20) : "null";
}

std::string row_json(const Results& results, const Columns& columns, const TrialResult& result) {
  const wire::SweepDocument& sweep = results.sweep();
  const Trial& trial = *result.trial;
  std::string row =
      "[" + std::to_string(trial.n) + "," + std::to_string(static_cast<int>(trial.state)) + ",";
  for (const std::string& metric : columns.metrics) {
    const std::optional<double> value = core::sweep::value_of(trial.metrics, metric);
    if (value)
      append_number(row, *value);
    else
      row += "null";
    row += ',';
  }
  for (std::size_t k = 0; k < sweep.space.size(); ++k) {
    append_value(row, value_in(trial, sweep.space[k].name, k), sweep.space[k]);
    row += ',';
  }
  if (columns.step) row += (trial.step ? std::to_string(*trial.step) : "null") + ",";
  if (columns.time) {
    const double seconds = trial.started && trial.ended ? seconds_of(trial) : 0;
    row +=
        (trial.started && trial.ended ? number_text(seconds, seconds < 100 ? 3 : 6) : "null") + ",";
  }
  if (columns.peak) append_mib(row, trial.peak), row += ',';
  if (columns.granted) append_mib(row, trial.granted), row += ',';
  if (columns.cards)
    row += script_text(trial.cards.empty() ? "" : base::number_ranges(trial.cards)) + ",";
  if (columns.job) row += (trial.job ? script_text(to_string(*trial.job)) : "null") + ",";
  if (columns.why) row += script_text(clipped(trial.why, kLongest)) + ",";
  return row + (result.plotted ? std::to_string(result.level) : "-1") + "]";
}

}  // namespace

AllResults all_results(const Results& results, std::size_t most_bytes) {
  const Columns columns(results);
  AllResults all;
  const bool metric = !columns.metrics.empty() && columns.metrics.front() == results.sweep().metric;
  all.json = "{\"columns\":" + columns_json(results, columns) + ",\"states\":[";
  for (int i = 0; i < kStates; ++i)
    all.json += (i > 0 ? "," : "") + script_text(to_string(static_cast<TrialState>(i)));
  all.json += "],\"metric\":" + std::string(metric ? "2" : "-1") + ",\"rows\":[";
  for (const std::size_t i : results.ranked()) {
    const std::string row = row_json(results, columns, results.all()[i]);
    if (all.json.size() + row.size() + 4 > most_bytes) break;
    if (all.rows++ > 0) all.json += ",\n";
    all.json += row;
  }
  all.json += "]}";
  return all;
}

}  // namespace mete::sweep
