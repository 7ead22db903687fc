// SPDX-License-Identifier: Apache-2.0
// See results_csv.h.
#include "sweep/results_csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <unordered_set>

#include "base/time.h"

namespace mete::sweep {

using Trial = wire::SweepDocument::Trial;

namespace {

constexpr std::array<std::string_view, 2> kBefore{"n", "state"};
constexpr std::array<std::string_view, 7> kAfter{"step",    "peak_bytes", "started_at", "ended_at",
                                                 "seconds", "job",        "why"};

// A text that is there and empty is "", to differ from nothing.
void append_field(std::string& line, std::string_view text) {
  const bool plain = !text.empty() && text.front() != ' ' && text.back() != ' ' &&
                     text.find_first_of(",\"\r\n") == std::string_view::npos;
  if (plain) {
    line += text;
    return;
  }
  line += '"';
  for (const char c : text) {
    if (c == '"') line += '"';
    line += c;
  }
  line += '"';
}

void append_metric(std::string& line, double value) {
  if (std::isnan(value)) {
    line += "NaN";
    return;
  }
  char text[32];
  line.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

// "12.345": exact, from milliseconds.
void append_seconds(std::string& line, std::int64_t ms) {
  ms = std::max<std::int64_t>(0, ms);
  const std::string rest = std::to_string(1000 + ms % 1000);
  line += std::to_string(ms / 1000) + "." + rest.substr(1);
}

}  // namespace

std::string csv_header(const std::vector<std::string>& parameters,
                       const std::vector<std::string>& metrics) {
  std::unordered_set<std::string> taken;
  for (const std::string_view name : kBefore) taken.emplace(name);
  for (const std::string_view name : kAfter) taken.emplace(name);
  std::string line;
  const auto add = [&](std::string name, std::string_view suffix) {
    while (!taken.insert(name).second) name += suffix;
    append_field(line += ',', name);
  };
  line = "n,state";
  for (const std::string& name : parameters) add(name, "_param");
  for (const std::string& name : metrics) add(name, "_metric");
  for (const std::string_view name : kAfter) (line += ',') += name;
  return line + "\n";
}

std::string csv_row(const Trial& trial, const std::vector<std::string>& parameters,
                    const std::vector<std::string>& metrics) {
  std::string line = std::to_string(trial.n) + "," + std::string(to_string(trial.state));
  for (const std::string& name : parameters) {
    line += ',';
    for (const auto& [other, value] : trial.params)
      if (other == name) {
        append_field(line, value.text);
        break;
      }
  }
  for (const std::string& name : metrics) {
    line += ',';
    if (const std::optional<double> value = core::sweep::value_of(trial.metrics, name))
      append_metric(line, *value);
  }
  line += ',';
  if (trial.step) line += std::to_string(*trial.step);
  line += ',';
  if (trial.peak) line += std::to_string(trial.peak->count());
  line += ',';
  if (trial.started) line += to_string(*trial.started);
  line += ',';
  if (trial.ended) line += to_string(*trial.ended);
  line += ',';
  if (trial.started && trial.ended) append_seconds(line, trial.ended->ms - trial.started->ms);
  line += ',';
  if (trial.job) line += to_string(*trial.job);
  line += ',';
  if (!trial.why.empty()) append_field(line, trial.why);
  return line + "\n";
}

std::vector<std::string> metrics_of(const wire::SweepDocument& sweep) {
  std::vector<std::string> names;
  for (const Trial& trial : sweep.trials)
    for (const core::sweep::Metric& metric : trial.metrics)
      if (std::find(names.begin(), names.end(), metric.name) == names.end())
        names.push_back(metric.name);
  return names;
}

std::string to_csv(const wire::SweepDocument& sweep) {
  std::vector<std::string> parameters;
  for (const wire::SweepDocument::Parameter& parameter : sweep.space)
    parameters.push_back(parameter.name);
  const std::vector<std::string> metrics = metrics_of(sweep);
  std::vector<const Trial*> over;
  for (const Trial& trial : sweep.trials)
    if (trial.state >= core::sweep::TrialState::kOk) over.push_back(&trial);
  std::stable_sort(over.begin(), over.end(),
                   [](const Trial* a, const Trial* b) { return a->n < b->n; });
  std::string csv = csv_header(parameters, metrics);
  for (const Trial* trial : over) csv += csv_row(*trial, parameters, metrics);
  return csv;
}

}  // namespace mete::sweep
