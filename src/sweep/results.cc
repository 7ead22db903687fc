// SPDX-License-Identifier: Apache-2.0
// See results.h.
#include "sweep/results.h"

#include <algorithm>
#include <cmath>

namespace mete::sweep {

using core::sweep::TrialState;

namespace {

int group_of(const TrialResult& result) {
  if (result.counts) return 0;
  if (result.plotted) return 1;
  switch (result.trial->state) {
    case TrialState::kOk:
    case TrialState::kStopped:
      return 2;
    case TrialState::kRunning:
      return 3;
    case TrialState::kFailed:
      return 4;
    default:
      return 5;
  }
}

}  // namespace

Results::Results(const wire::SweepDocument& sweep) : sweep_(&sweep) {
  all_.reserve(sweep.trials.size());
  for (const wire::SweepDocument::Trial& trial : sweep.trials) {
    TrialResult result;
    result.trial = &trial;
    if (!sweep.metric.empty())
      if (const std::optional<double> value = core::sweep::value_of(trial.metrics, sweep.metric)) {
        result.value = *value;
        result.has_metric = true;
      }
    const bool ended = trial.state == TrialState::kOk || trial.state == TrialState::kStopped;
    result.plotted = ended && std::isfinite(result.value);
    result.counts = result.plotted &&
                    (trial.state == TrialState::kOk || (sweep.best && sweep.best->n == trial.n));
    if (static_cast<std::size_t>(trial.state) < counts_.size())
      ++counts_[static_cast<std::size_t>(trial.state)];
    all_.push_back(result);
  }
  std::stable_sort(all_.begin(), all_.end(), [](const TrialResult& a, const TrialResult& b) {
    return a.trial->n < b.trial->n;
  });
  for (std::size_t i = 0; i < all_.size(); ++i) {
    ranked_.push_back(i);
    if (all_[i].plotted) plotted_.push_back(i);
    if (all_[i].counts && (records_.empty() || better(all_[i].value, all_[records_.back()].value)))
      records_.push_back(i);
  }
  const auto by_value = [this](std::size_t a, std::size_t b) {
    return better(all_[a].value, all_[b].value);
  };
  std::stable_sort(plotted_.begin(), plotted_.end(), by_value);
  for (std::size_t i = 0; i < plotted_.size(); ++i) {
    TrialResult& result = all_[plotted_[i]];
    const bool equal = i > 0 && all_[plotted_[i - 1]].value == result.value;
    result.level =
        equal ? all_[plotted_[i - 1]].level : kLevels - 1 - i * kLevels / plotted_.size();
  }
  std::stable_sort(ranked_.begin(), ranked_.end(), [&](std::size_t a, std::size_t b) {
    const int group_a = group_of(all_[a]);
    const int group_b = group_of(all_[b]);
    if (group_a != group_b) return group_a < group_b;
    return group_a <= 1 && by_value(a, b);
  });
}

std::vector<double> Results::values() const {
  std::vector<double> values;
  values.reserve(plotted_.size());
  for (const std::size_t i : plotted_) values.push_back(all_[i].value);
  return values;
}

}  // namespace mete::sweep
