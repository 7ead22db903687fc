// SPDX-License-Identifier: Apache-2.0
// The part of Sweep that decides for --gpu auto how much memory a trial gets, and whether new ones
// wait until that can be learned; memory_model.h is what learns.
#include <algorithm>

#include "core/sweep/sweep.h"

namespace mete::core::sweep {

namespace {

constexpr std::size_t kMostObserved = 500;  // latest results that are learned from
// Before anything is known of a trial's memory, it gets this part of a card.
constexpr std::uint64_t kFirstPart = 4;

// It is over, and was not cut short by a failure.
bool has_peak(const Trial& trial) {
  return trial.order != 0 && trial.peak &&
         (trial.state == TrialState::kOk || trial.state == TrialState::kStopped);
}

}  // namespace

// What a running trial counts for, once it has run for a while.
std::optional<Bytes> Sweep::steady_peak(const Trial& trial,
                                        const Circumstances& circumstances) const {
  if (trial.state != TrialState::kRunning || !trial.started || !circumstances.peak_of ||
      circumstances.now.ms < trial.started->ms + kSteadyMs)
    return std::nullopt;
  const std::optional<Bytes> peak = circumstances.peak_of(*trial.job);
  return peak && !peak->is_zero() ? peak : std::nullopt;
}

// What --gpu auto learns from: the results in their order, then what still runs.
std::vector<Observed> Sweep::observed(const Circumstances& circumstances) const {
  std::vector<const Trial*> known;
  for (const Trial& trial : parts_.trials)
    if (trial.ran_out || (trial.order != 0 && trial.peak)) known.push_back(&trial);
  std::sort(known.begin(), known.end(),
            [](const Trial* a, const Trial* b) { return a->order < b->order; });
  if (known.size() > kMostObserved)
    known.erase(known.begin(), known.end() - static_cast<std::ptrdiff_t>(kMostObserved));
  std::vector<Observed> observed;
  for (const Trial* trial : known) {
    if (trial->ran_out) observed.push_back({trial->point, *trial->ran_out, true});
    if (has_peak(*trial)) observed.push_back({trial->point, *trial->peak, false});
  }
  for (const std::uint64_t n : active_)
    if (const std::optional<Bytes> peak = steady_peak(*find(n), circumstances))
      observed.push_back({find(n)->point, *peak, false});
  return observed;
}

// Whether the shares of new trials are about to be learned: one trial has ended, so that the cards
// were filled once, and those that run now will complete the first six. A trial begun before that
// would hold room that it does not need; the last few of a sweep may.
bool Sweep::waits_for_peaks(const Circumstances& circumstances) const {
  if (!plan().auto_gpu) return false;
  const std::optional<std::uint64_t> all = wanted();
  const std::uint64_t made = parts_.trials.size();
  if (all && *all <= made + 2 * active_.size()) return false;
  std::size_t known = 0;
  for (const Trial& trial : parts_.trials) {
    known += has_peak(trial) ? 1 : 0;
    if (known == kFirstTrials) return false;
  }
  if (known == 0) return false;
  std::size_t soon = 0;
  for (const std::uint64_t n : active_) {
    const Trial& trial = *find(n);
    if (steady_peak(trial, circumstances))
      ++known;
    else if (!trial.started || circumstances.now.ms < trial.started->ms + kSteadyMs)
      ++soon;
  }
  return known < kFirstTrials && known + soon >= kFirstTrials;
}

std::optional<Bytes> Sweep::share_of(const Point& point, const Trial* again,
                                     const Circumstances& circumstances) const {
  if (!plan().auto_gpu) return std::nullopt;
  const Bytes card = *circumstances.smallest_card;
  const Bytes first = Bytes::from_bytes(card.count() / kFirstPart).round_down(kGranule);
  const Need need = need_of(plan().space, observed(circumstances), point, card, first);
  Bytes bytes = need.bytes;
  if (again != nullptr && again->ran_out) {
    const Bytes predicted = need.learned ? need.bytes : card;
    bytes = after_refusal(*again->ran_out, predicted, card);
  }
  return std::min(bytes, card).round_down(kGranule);
}

}  // namespace mete::core::sweep
