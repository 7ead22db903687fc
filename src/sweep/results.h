// SPDX-License-Identifier: Apache-2.0
// The trials of a sweep as plots and tables need them: which have a result, from the best to the
// worst, and what the best was after each. Refers to the document, which must outlive it. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "wire/sweep.h"

namespace mete::sweep {

inline constexpr std::size_t kLevels = 10;  // colours from the worst to the best

struct TrialResult {
  const wire::SweepDocument::Trial* trial = nullptr;
  double value = std::numeric_limits<double>::quiet_NaN();  // of the goal's metric
  bool has_metric = false;  // otherwise value is NaN for the lack of one
  bool plotted = false;     // ended without a failure, with a finite value
  bool counts = false;      // plotted, and may be the best: not stopped early
  std::size_t level = 0;    // of a plotted one: kLevels - 1 among the best tenth
};

class Results {
 public:
  explicit Results(const wire::SweepDocument& sweep);

  const wire::SweepDocument& sweep() const { return *sweep_; }
  // By number of the trial.
  const std::vector<TrialResult>& all() const { return all_; }
  // Indexes of all(), best first: those that count, other plotted ones, then running ones, failed
  // ones, pending ones.
  const std::vector<std::size_t>& ranked() const { return ranked_; }
  // Indexes of the plotted ones, best first, whether they count or not.
  const std::vector<std::size_t>& plotted() const { return plotted_; }
  std::vector<double> values() const;  // of the plotted ones
  // Indexes at which a new best was reached, ascending.
  const std::vector<std::size_t>& records() const { return records_; }
  bool better(double a, double b) const { return sweep_->maximize ? a > b : a < b; }
  std::size_t count(core::sweep::TrialState state) const {
    return counts_[static_cast<std::size_t>(state)];
  }

 private:
  const wire::SweepDocument* sweep_;
  std::vector<TrialResult> all_;
  std::vector<std::size_t> ranked_;
  std::vector<std::size_t> plotted_;
  std::vector<std::size_t> records_;
  std::array<std::size_t, 5> counts_{};
};

// At most `most` of a list, evenly chosen, the first and the last included.
template <class Element>
std::vector<Element> evenly(const std::vector<Element>& list, std::size_t most) {
  if (list.size() <= most || most < 2) return list;
  std::vector<Element> chosen;
  chosen.reserve(most);
  for (std::size_t i = 0; i < most; ++i) chosen.push_back(list[i * (list.size() - 1) / (most - 1)]);
  return chosen;
}

}  // namespace mete::sweep
