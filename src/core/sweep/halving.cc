// SPDX-License-Identifier: Apache-2.0
#include "core/sweep/halving.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "core/sweep/pairs.h"

namespace mete::core::sweep {

namespace {

constexpr std::array<std::string_view, 4> kKeys = {"metric", "min", "max", "eta"};
constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kLastStep = std::uint64_t{1} << 53;  // that a trial can report

// NaN is worse than everything, and not better than another NaN.
bool better(double a, double b) {
  if (std::isnan(a)) return false;
  return std::isnan(b) || a < b;
}

// The place of entry `index` among the entries up to it. Earlier equal ones are better.
std::size_t place_of(const std::vector<Halving::Entry>& entries, std::size_t index) {
  const double own = entries[index].loss;
  return 1 + static_cast<std::size_t>(std::count_if(
                 entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(index),
                 [own](const Halving::Entry& other) { return !better(own, other.loss); }));
}

}  // namespace

Result<HalvingRule> parse_halving(std::string_view text) {
  const Result<Pairs> pairs = Pairs::parse("the ASHA rule", text, kKeys);
  if (!pairs) return pairs.error();
  HalvingRule rule;
  if (const Pair* metric = pairs->find("metric")) rule.metric = metric->value;
  const Result<std::uint64_t> min = pairs->whole("min", rule.min, 1, kMost);
  if (!min) return min.error();
  const Result<std::uint64_t> max = pairs->whole("max", rule.max, 1, kMost);
  if (!max) return max.error();
  const Result<std::uint64_t> eta = pairs->whole("eta", rule.eta, 2, kMost);
  if (!eta) return eta.error();
  rule.min = *min;
  rule.max = *max;
  rule.eta = *eta;
  if (pairs->find("max") != nullptr && rule.max < rule.min)
    return pairs->wrong("max", "max (" + std::to_string(rule.max) + ") is below min (" +
                                   std::to_string(rule.min) + ")");
  return rule;
}

std::string to_string(const HalvingRule& rule) {
  return (rule.metric.empty() ? "" : "metric=" + rule.metric + ",") +
         "min=" + std::to_string(rule.min) +
         (rule.max == 0 ? "" : ",max=" + std::to_string(rule.max)) +
         ",eta=" + std::to_string(rule.eta);
}

std::vector<std::uint64_t> rungs_of(const HalvingRule& rule) {
  std::vector<std::uint64_t> rungs;
  const std::uint64_t max = rule.max == 0 ? kLastStep : rule.max;
  if (rule.min == 0 || rule.eta < 2 || rule.min > max) return rungs;
  rungs.push_back(rule.min);
  // rung * eta <= max without the product, which could overflow. At most 64 rungs, since eta >= 2.
  while (rungs.back() <= max / rule.eta) rungs.push_back(rungs.back() * rule.eta);
  return rungs;
}

Halving::Verdict Halving::report(std::uint64_t trial, std::uint64_t step, double loss) {
  Known& known = known_[trial];
  const std::size_t before = known.passed;
  for (; known.passed < rungs_.size() && rungs_[known.passed] <= step; ++known.passed)
    recorded_[rungs_[known.passed]].push_back({trial, loss});
  if (!known.verdict || known.passed != before) known.verdict = verdict_of(trial);
  if (rule_.max == 0 || step < rule_.max) return *known.verdict;
  Verdict finished = *known.verdict;
  if (finished.rung != rule_.max) finished = {};  // max is no rung, or a lower one has decided
  finished.kind = Verdict::Kind::kFinished;
  finished.rung = rule_.max;
  return finished;
}

// The lowest rung where the trial is weak, otherwise its highest one; each with the results that
// were recorded there up to its own.
Halving::Verdict Halving::verdict_of(std::uint64_t trial) const {
  Verdict verdict;
  for (const std::uint64_t rung : rungs_) {
    const auto recorded = recorded_.find(rung);
    if (recorded == recorded_.end()) continue;
    const std::vector<Entry>& entries = recorded->second;
    const auto own = std::find_if(entries.begin(), entries.end(),
                                  [trial](const Entry& entry) { return entry.trial == trial; });
    if (own == entries.end()) continue;
    const auto index = static_cast<std::size_t>(own - entries.begin());
    verdict.rung = rung;
    verdict.place = place_of(entries, index);
    verdict.results = index + 1;
    verdict.kept = std::max<std::size_t>(1, static_cast<std::size_t>((index + 1) / rule_.eta));
    if (verdict.place <= verdict.kept) continue;
    verdict.kind = Verdict::Kind::kStop;
    break;
  }
  return verdict;
}

void Halving::restore(std::map<std::uint64_t, std::vector<Entry>> recorded) {
  recorded_ = std::move(recorded);
  known_.clear();
  for (std::size_t i = 0; i < rungs_.size(); ++i) {
    const auto at_rung = recorded_.find(rungs_[i]);
    if (at_rung == recorded_.end()) continue;
    for (const Entry& entry : at_rung->second) known_[entry.trial].passed = i + 1;
  }
}

std::string Halving::words(const Verdict& verdict) {
  const std::string step = std::to_string(verdict.rung);
  if (verdict.kind == Verdict::Kind::kFinished)
    return "ended at step " + step + ", the max of --asha";
  if (verdict.rung == 0) return "before the first rung";
  return (verdict.kind == Verdict::Kind::kStop ? "weak at step " : "goes on at step ") + step +
         ": place " + std::to_string(verdict.place) + " of " + std::to_string(verdict.results) +
         (verdict.kept == 1 ? ", only the best goes on"
                            : ", the best " + std::to_string(verdict.kept) + " go on");
}

}  // namespace mete::core::sweep
