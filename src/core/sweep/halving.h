// SPDX-License-Identifier: Apache-2.0
// ASHA (asynchronous successive halving): ends weak trials early. The resource is the step that a
// trial reports. Rungs are at min * eta^k <= max, or without an end if there is no max. When a
// trial first reports a step >= a rung, its metric there is recorded; it goes on if it is among the
// best floor(n / eta), at least one, of the n results recorded at that rung so far, its own
// included. At max it is finished. Equal results: the earlier one is better. NaN is worse than
// everything. A report that passes several rungs at once is recorded at each of them, and the
// lowest rung where it is weak decides. What a trial was told stays: later results at its rungs do
// not change it. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mete::core::sweep {

struct HalvingRule {
  std::string metric;
  std::uint64_t min = 1;
  std::uint64_t max = 0;  // 0: none; no trial is ended for having got far
  std::uint64_t eta = 3;
  bool operator==(const HalvingRule&) const = default;
};
// "metric=val_loss,min=1,max=81,eta=3"; metric may be absent ("": the sweep's own). invalid: an
// unknown key, min < 1, max < min, eta < 2, with the character of the mistake as evidence.
Result<HalvingRule> parse_halving(std::string_view text);
std::string to_string(const HalvingRule& rule);
// {1, 3, 9, 27, 81}
std::vector<std::uint64_t> rungs_of(const HalvingRule& rule);

class Halving {
 public:
  Halving() = default;
  explicit Halving(const HalvingRule& rule) : rungs_(rungs_of(rule)), rule_(rule) {}

  struct Verdict {
    enum class Kind { kGoOn, kStop, kFinished } kind = Kind::kGoOn;
    std::uint64_t rung = 0;   // where it was decided
    std::size_t place = 0;    // among the results there, from 1
    std::size_t results = 0;  // recorded there so far
    std::size_t kept = 0;     // how many go on, the best ones
  };
  // Trial `trial` reports its metric (lower is better) at a step. Idempotent for a rung that the
  // trial has passed: the first result there counts, and the verdict is repeated. Below the first
  // rung it is kGoOn with rung 0. At max it is kFinished, also if the trial was weak before.
  Verdict report(std::uint64_t trial, std::uint64_t step, double loss);
  // "weak at step 9: place 5 of 8, the best 2 go on"
  static std::string words(const Verdict& verdict);

  // For snapshots.
  struct Entry {
    std::uint64_t trial = 0;
    double loss = 0;
    bool operator==(const Entry&) const = default;
  };
  const std::map<std::uint64_t, std::vector<Entry>>& recorded() const { return recorded_; }
  void restore(std::map<std::uint64_t, std::vector<Entry>> recorded);
  bool operator==(const Halving& other) const {
    return rule_ == other.rule_ && recorded_ == other.recorded_;
  }

 private:
  // What is known of a trial without a search; follows from recorded_.
  struct Known {
    std::size_t passed = 0;          // rungs, from the first
    std::optional<Verdict> verdict;  // nullopt: not computed since restore()
  };
  Verdict verdict_of(std::uint64_t trial) const;

  std::vector<std::uint64_t> rungs_;
  HalvingRule rule_;
  std::map<std::uint64_t, std::vector<Entry>> recorded_;  // by rung, in the order of the reports
  std::map<std::uint64_t, Known> known_;                  // by trial
};

}  // namespace mete::core::sweep
