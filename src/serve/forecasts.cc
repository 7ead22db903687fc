// SPDX-License-Identifier: Apache-2.0
// See forecasts.h.
#include "serve/forecasts.h"

#include <algorithm>

namespace mete::serve {

namespace {

using std::chrono::milliseconds;

// The work of a pass while a client waits, and per slice otherwise: 6,000 take a millisecond.
constexpr std::size_t kAtOnce = 60'000;
constexpr std::size_t kSlice = 30'000;
constexpr seam::Milliseconds kBetweenSlices{20};
// The progress of running jobs changes forecasts, even in a queue at rest.
constexpr milliseconds kOldest{1'000};
// Passes take no more than a twentieth of the time.
constexpr int kShare = 20;

}  // namespace

core::Forecast not_past(core::Forecast forecast, WallTime now) {
  const WallTime next_second{(now.ms + 999) / 1000 * 1000};
  if (forecast.at < now) forecast.at = next_second;
  forecast.by = std::max(forecast.by, forecast.at);
  return forecast;
}

void Forecasts::look() {
  const seam::Nanoseconds now = clock_.monotonic();
  const bool fresh = told_version_ == engine_.version() && now - told_at_ < kOldest;
  if (fresh || pass_ || now < next_at_) return;
  if (engine_.state().pending().size() == 0) {
    told_.clear();
    return;
  }
  pass_.emplace(engine_.state(), engine_.sight());
  pass_version_ = engine_.version();
  pass_at_ = now;
  busy_ = clock_.monotonic() - now;
  go_on(pass_->expected_work() <= 2 * kAtOnce ? kAtOnce : 0);
}

void Forecasts::go_on(std::size_t work) {
  const seam::Nanoseconds begun = clock_.monotonic();
  const bool done = pass_->go_on(work);
  const seam::Nanoseconds now = clock_.monotonic();
  busy_ += now - begun;
  if (!done) {
    timer_ = loop_.after(kBetweenSlices, [this] { go_on(kSlice); });
    return;
  }
  told_ = pass_->told();
  told_version_ = pass_version_;
  told_at_ = pass_at_;
  next_at_ = now + kShare * busy_;
  pass_.reset();
}

std::optional<core::Forecast> Forecasts::of(core::JobId id) const {
  const auto found = told_.find(id);
  if (found == told_.end() || found->second.at < clock_.wall()) return std::nullopt;
  return found->second;
}

}  // namespace mete::serve
