// SPDX-License-Identifier: Apache-2.0
// See importance.h. Each parameter becomes a coordinate in [0, 1), or -1 where it is not in use,
// and is cut into at most 64 bins. Regression trees are grown on bootstrap samples. A leaf is a box
// with a mean; its volume is the share of the space in it, where a parameter is even over [0, 1)
// and -1 has the share of the results without it. The main effect of a parameter is then exact for
// a tree: the variance of the tree's mean over all other parameters (Hutter, Hoos, Leyton-Brown,
// 2014).
#include "core/sweep/importance.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include "core/sweep/maths.h"
#include "core/sweep/reduce.h"

namespace mete::core::sweep {

namespace {

constexpr std::size_t kTrees = 48;
constexpr std::size_t kBins = 64;
constexpr std::size_t kLeastLeaf = 3;  // results
constexpr int kMostDepth = 24;
constexpr std::size_t kAllTried = 12;  // parameters; of more a third is tried at each split
constexpr std::uint64_t kSeed = 0x696d706f7274;
constexpr double kNotInUse = -1;

// One parameter, cut into bins.
struct Column {
  std::size_t parameter = 0;
  std::vector<std::uint8_t> bins;  // by result
  std::vector<double> volumes;     // by bin; their sum is 1
};

struct Results {
  std::vector<Column> columns;
  std::vector<double> losses;  // from -1 to 1, around their mean
};

std::vector<const Scored*> chosen(std::span<const Scored> scored) {
  std::vector<const Scored*> all;
  for (const Scored& one : scored)
    if (one.loss && std::isfinite(*one.loss)) all.push_back(&one);
  if (all.size() <= kForestResults) return all;
  std::vector<const Scored*> some;
  for (std::size_t i = 0; i < kForestResults; ++i)
    some.push_back(all[i * all.size() / kForestResults]);
  return some;
}

// Outliers cut, then scaled. Empty: all are equal.
std::vector<double> usable(const std::vector<const Scored*>& scored) {
  std::vector<double> losses;
  for (const Scored* one : scored) losses.push_back(*one->loss / 4);  // sums below stay finite
  std::vector<double> sorted = losses;
  std::sort(sorted.begin(), sorted.end());
  const double low = sorted[sorted.size() / 4];
  const double high = sorted[sorted.size() - 1 - sorted.size() / 4];
  const double reach = (high - low) * 3;
  double least = sorted.front();
  double most = sorted.back();
  if (least == most) return {};
  if (high > low) {
    least = std::max(least, low - reach);
    most = std::min(most, high + reach);
  }
  double sum = 0;
  for (double& one : losses) sum += one = (std::clamp(one, least, most) - least) / (most - least);
  for (double& one : losses) one -= sum / static_cast<double>(losses.size());
  return losses;
}

// Results with equal coordinates share a bin, and so do neighbours if there are more than kBins.
Column column_of(const Space& space, std::size_t parameter,
                 const std::vector<const Scored*>& scored) {
  Column column{parameter, {}, {}};
  std::vector<double> units;
  for (const Scored* one : scored) {
    const bool used = parameter < one->point.size() && one->point[parameter].has_value();
    units.push_back(used ? space.unit_of(parameter, *one->point[parameter]) : kNotInUse);
  }
  std::vector<double> levels = units;
  std::sort(levels.begin(), levels.end());
  const auto unused = static_cast<std::size_t>(
      std::upper_bound(levels.begin(), levels.end(), kNotInUse) - levels.begin());
  const double in_use =
      static_cast<double>(levels.size() - unused) / static_cast<double>(levels.size());
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  std::vector<double> cuts;  // where the next bin begins
  const std::size_t bins = std::min(levels.size(), kBins);
  for (std::size_t i = 1; i < bins; ++i) {
    const std::size_t next = i * levels.size() / bins;
    const double before = levels[next - 1];
    cuts.push_back(before == kNotInUse ? 0.0 : (before + levels[next]) / 2);
  }
  for (const double unit : units)
    column.bins.push_back(
        static_cast<std::uint8_t>(std::upper_bound(cuts.begin(), cuts.end(), unit) - cuts.begin()));
  double begin = unused == 0 ? 0.0 : kNotInUse;
  for (std::size_t i = 0; i < bins; ++i) {
    const double end = i < cuts.size() ? cuts[i] : 1.0;
    column.volumes.push_back(begin == kNotInUse ? 1 - in_use : in_use * (end - begin));
    begin = end;
  }
  return column;
}

// A tree, of which nothing is kept but the sums that the variances need.
class Tree {
 public:
  Tree(const Results& results, std::uint64_t number) : results_(results), number_(number) {
    const std::size_t n = results.losses.size();
    for (std::size_t i = 0; i < n; ++i)
      sample_.push_back(
          static_cast<std::size_t>((mix(kSeed, 2 * number, i) >> 32) * std::uint64_t{n} >> 32));
    for (const Column& column : results.columns) {
      box_.push_back({0, column.volumes.size()});
      effects_.emplace_back(column.volumes.size() + 1, 0.0);
    }
    grow(0, n, 0);
  }

  // By column: the share of the variance in percent. Empty: the tree is constant.
  std::vector<double> shares() const {
    const double variance = squares_ - mean_ * mean_;
    std::vector<double> shares;
    if (!(variance > 1e-12)) return shares;
    for (std::size_t c = 0; c < effects_.size(); ++c) {
      double effect = 0;
      double squares = 0;
      for (std::size_t bin = 0; bin + 1 < effects_[c].size(); ++bin) {
        effect += effects_[c][bin];
        squares += effect * effect * results_.columns[c].volumes[bin];
      }
      shares.push_back(100 * std::clamp((squares - mean_ * mean_) / variance, 0.0, 1.0));
    }
    return shares;
  }

 private:
  struct Split {
    double gain = 1e-12;
    std::size_t column = 0;
    std::size_t bin = 0;  // the first of the right side; 0: no split
  };

  // The results at begin to end of sample_ are those in box_.
  void grow(std::size_t begin, std::size_t end, int depth) {
    const Split split =
        depth < kMostDepth && end - begin >= 2 * kLeastLeaf ? best(begin, end) : Split{};
    if (split.bin == 0) return add_leaf(begin, end);
    const std::vector<std::uint8_t>& bins = results_.columns[split.column].bins;
    const auto first = sample_.begin();
    const auto middle = std::stable_partition(
        first + static_cast<std::ptrdiff_t>(begin), first + static_cast<std::ptrdiff_t>(end),
        [&](std::size_t result) { return bins[result] < split.bin; });
    const auto at = static_cast<std::size_t>(middle - first);
    const std::pair<std::size_t, std::size_t> whole = box_[split.column];
    box_[split.column] = {whole.first, split.bin};
    grow(begin, at, depth + 1);
    box_[split.column] = {split.bin, whole.second};
    grow(at, end, depth + 1);
    box_[split.column] = whole;
  }

  Split best(std::size_t begin, std::size_t end) {
    Split split;
    const std::size_t columns = results_.columns.size();
    ++nodes_;
    for (std::size_t c = 0; c < columns; ++c) {
      if (columns > kAllTried && mix(kSeed, 2 * number_ + 1, nodes_ * columns + c) % 3 != 0)
        continue;
      try_column(c, begin, end, split);
    }
    return split;
  }

  // Improves `split` if a cut of this column leaves less variance on both sides.
  void try_column(std::size_t c, std::size_t begin, std::size_t end, Split& split) const {
    const auto [low, high] = box_[c];
    if (high - low < 2) return;
    std::array<double, kBins> sums{};
    std::array<std::size_t, kBins> counts{};
    const std::vector<std::uint8_t>& bins = results_.columns[c].bins;
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const double loss = results_.losses[sample_[i]];
      sums[bins[sample_[i]]] += loss;
      ++counts[bins[sample_[i]]];
      sum += loss;
    }
    const std::size_t n = end - begin;
    const double without = sum * sum / static_cast<double>(n);
    double left = 0;
    std::size_t count = 0;
    for (std::size_t bin = low; bin + 1 < high; ++bin) {
      left += sums[bin];
      count += counts[bin];
      if (counts[bin] == 0 || count < kLeastLeaf || n - count < kLeastLeaf) continue;
      const double right = sum - left;
      const double gain = left * left / static_cast<double>(count) +
                          right * right / static_cast<double>(n - count) - without;
      if (gain > split.gain) split = {gain, c, bin + 1};
    }
  }

  void add_leaf(std::size_t begin, std::size_t end) {
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += results_.losses[sample_[i]];
    const double value = sum / static_cast<double>(end - begin);
    std::vector<double> sides;
    double volume = 1;
    for (std::size_t c = 0; c < box_.size(); ++c) {
      double side = 0;
      for (std::size_t bin = box_[c].first; bin < box_[c].second; ++bin)
        side += results_.columns[c].volumes[bin];
      sides.push_back(side);
      volume *= side;
    }
    mean_ += volume * value;
    squares_ += volume * value * value;
    for (std::size_t c = 0; c < box_.size(); ++c) {
      if (!(sides[c] > 0)) continue;
      effects_[c][box_[c].first] += volume / sides[c] * value;
      effects_[c][box_[c].second] -= volume / sides[c] * value;
    }
  }

  const Results& results_;
  std::uint64_t number_;
  std::uint64_t nodes_ = 0;
  std::vector<std::size_t> sample_;
  std::vector<std::pair<std::size_t, std::size_t>> box_;  // by column: bins, the end excluded
  // By column: differences between neighbouring bins of the mean over all other columns.
  std::vector<std::vector<double>> effects_;
  double mean_ = 0;
  double squares_ = 0;
};

// Spearman's, if all values are numbers.
std::optional<double> correlation_of(std::size_t parameter,
                                     const std::vector<const Scored*>& scored) {
  std::vector<double> numbers;
  std::vector<double> losses;
  for (const Scored* one : scored) {
    if (parameter >= one->point.size() || !one->point[parameter]) continue;
    const Value& value = *one->point[parameter];
    if (value.kind != Value::Kind::kInteger && value.kind != Value::Kind::kReal)
      return std::nullopt;
    numbers.push_back(value.number);
    losses.push_back(*one->loss);
  }
  return correlate(Correlation::kSpearman, numbers, losses);
}

}  // namespace

std::vector<Importance> importance(const Space& space, std::span<const Scored> scored) {
  const std::vector<const Scored*> used = chosen(scored);
  if (used.size() < kLeastResults) return {};
  Results results;
  results.losses = usable(used);
  if (results.losses.empty()) return {};
  for (std::size_t i = 0; i < space.parameters().size(); ++i)
    if (space.values_of(i) != 1) results.columns.push_back(column_of(space, i, used));
  std::vector<double> sums(results.columns.size(), 0.0);
  std::vector<double> squares(results.columns.size(), 0.0);
  double trees = 0;
  for (std::size_t t = 0; t < kTrees; ++t) {
    const std::vector<double> shares = Tree(results, t).shares();
    if (shares.empty()) continue;
    trees += 1;
    for (std::size_t c = 0; c < shares.size(); ++c) {
      sums[c] += shares[c];
      squares[c] += shares[c] * shares[c];
    }
  }
  std::vector<Importance> all;
  for (std::size_t c = 0; c < results.columns.size(); ++c) {
    Importance one;
    one.parameter = results.columns[c].parameter;
    if (trees > 0) one.pct = sums[c] / trees;
    if (trees > 1)
      one.plus_minus_pct =
          root_of(std::max(0.0, (squares[c] - trees * one.pct * one.pct) / (trees - 1)));
    one.correlation = correlation_of(one.parameter, used);
    all.push_back(one);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Importance& a, const Importance& b) { return a.pct > b.pct; });
  return all;
}

}  // namespace mete::core::sweep
