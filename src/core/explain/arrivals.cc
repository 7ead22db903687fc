// SPDX-License-Identifier: Apache-2.0
// See arrivals.h.
#include "core/explain/arrivals.h"

#include <algorithm>

namespace mete::core {

Past::Past(const State& state, WallTime now) {
  const std::map<JobId, Job>& jobs = state.jobs();
  for (auto job = jobs.end(); job != jobs.begin() && came_.size() < kSubmits;) {
    const Job& last = std::prev(job)->second;
    const auto first = jobs.lower_bound(JobId{last.id.number});
    Came came{last.submitted.ms, last, 0};
    for (auto each = first; each != job && came.count < kOfArray; ++each) ++came.count;
    came_.push_back(came);
    job = first;
  }
  std::reverse(came_.begin(), came_.end());
  if (!came_.empty()) span_ms_ = now.ms - came_.front().at_ms;
  // After a clock that was set back the past says nothing either.
  const bool in_order = std::is_sorted(
      came_.begin(), came_.end(), [](const Came& a, const Came& b) { return a.at_ms < b.at_ms; });
  if (span_ms_ < kLeastMs || !in_order) came_.clear();
}

Arrivals::Arrivals(const Past& past, WallTime now, Draw& draw) : past_(past) {
  if (past.came().empty()) return;
  const auto into = static_cast<std::int64_t>(draw.below(static_cast<std::size_t>(past.span_ms())));
  const std::int64_t then = past.came().front().at_ms + into;
  shift_ms_ = now.ms - then;
  while (at_ < past.came().size() && past.came()[at_].at_ms <= then) ++at_;
}

const Past::Came* Arrivals::next(WallTime by) {
  if (past_.came().empty()) return nullptr;
  if (at_ == past_.came().size()) {
    at_ = 0;
    shift_ms_ += past_.span_ms();
  }
  const Past::Came& came = past_.came()[at_];
  if (came.at_ms + shift_ms_ > by.ms) return nullptr;
  ++at_;
  return &came;
}

}  // namespace mete::core
