// SPDX-License-Identifier: Apache-2.0
// See sweep_document.h.
#include "cli/sweep_document.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "core/sweep/importance.h"
#include "sweep/results.h"

namespace mete::cli {

using core::sweep::Params;
using core::sweep::Value;
using wire::SweepDocument;

namespace {

bool is_number(const Value& value) {
  return value.kind == Value::Kind::kInteger || value.kind == Value::Kind::kReal;
}

// The listed value that a value of the document stands for; nullptr: none.
const Value* listed(const std::vector<Value>& values, const Value& value) {
  for (const Value& each : values)
    if (each.text == value.text) return &each;
  for (const Value& each : values)
    if (is_number(each) && is_number(value) && each.number == value.number) return &each;
  return nullptr;
}

}  // namespace

void settle_values(SweepDocument& sweep) {
  std::map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < sweep.space.size(); ++i) places[sweep.space[i].name] = i;
  const auto place = [&](const auto& param) {
    const auto found = places.find(param.first);
    return found == places.end() ? places.size() : found->second;
  };
  for (SweepDocument::Trial& trial : sweep.trials) {
    std::stable_sort(trial.params.begin(), trial.params.end(),
                     [&](const auto& a, const auto& b) { return place(a) < place(b); });
    for (auto& [name, value] : trial.params) {
      const auto found = places.find(name);
      if (found == places.end()) continue;
      if (const Value* as_written = listed(sweep.space[found->second].values, value))
        value = *as_written;
    }
  }
}

std::optional<core::sweep::Space> space_of(const SweepDocument& sweep) {
  std::vector<std::string> names;
  for (const SweepDocument::Parameter& parameter : sweep.space) names.push_back(parameter.name);
  std::vector<core::sweep::Parameter> parameters;
  for (const SweepDocument::Parameter& parameter : sweep.space) {
    core::sweep::Parameter& added = parameters.emplace_back();
    added.name = parameter.name;
    if (!parameter.values.empty())
      added.domain = parameter.values;
    else
      added.domain = core::sweep::Range{parameter.min.value_or(0), parameter.max.value_or(1),
                                        parameter.log, parameter.integer, parameter.range_step};
    if (parameter.when.empty()) continue;
    Result<core::sweep::Expression> when = core::sweep::Expression::parse(parameter.when, names);
    if (!when) return std::nullopt;
    added.when = *std::move(when);
  }
  Result<core::sweep::Space> space = core::sweep::Space::make(std::move(parameters));
  if (!space) return std::nullopt;
  return *std::move(space);
}

void add_importance(SweepDocument& sweep) {
  sweep.importance.clear();
  if (sweep.metric.empty()) return;
  const std::optional<core::sweep::Space> space = space_of(sweep);
  if (!space) return;
  const std::vector<std::string> names = space->names();
  std::vector<core::sweep::Scored> scored;
  const sweep::Results results(sweep);
  for (const sweep::TrialResult& result : results.all()) {
    if (!result.plotted) continue;
    core::sweep::Scored& added = scored.emplace_back();
    added.point.resize(names.size());
    for (const auto& [name, value] : result.trial->params) {
      const auto found = std::find(names.begin(), names.end(), name);
      if (found != names.end())
        added.point[static_cast<std::size_t>(found - names.begin())] = value;
    }
    added.loss = result.value;  // in either direction
  }
  for (const core::sweep::Importance& each : core::sweep::importance(*space, scored))
    sweep.importance.push_back(
        {names[each.parameter], each.pct, each.plus_minus_pct, each.correlation});
}

const SweepDocument::Trial* find_trial(const SweepDocument& sweep, std::uint64_t n) {
  const auto found = std::find_if(sweep.trials.begin(), sweep.trials.end(),
                                  [&](const SweepDocument::Trial& trial) { return trial.n == n; });
  return found == sweep.trials.end() ? nullptr : &*found;
}

}  // namespace mete::cli
