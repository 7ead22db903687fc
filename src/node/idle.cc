// SPDX-License-Identifier: Apache-2.0
// See idle.h.
#include "node/idle.h"

#include <algorithm>

namespace mete::node {

namespace {

enum class Load { kNone, kSome, kUnknown };

Load load_of(const std::vector<std::optional<unsigned>>& processes) {
  const bool works = std::any_of(processes.begin(), processes.end(),
                                 [](const auto& percent) { return percent.value_or(0) > 0; });
  if (works) return Load::kSome;
  const bool told = std::all_of(processes.begin(), processes.end(),
                                [](const auto& percent) { return percent.has_value(); });
  return told && !processes.empty() ? Load::kNone : Load::kUnknown;
}

}  // namespace

void Idle::see(seam::Nanoseconds at, WallTime wall, const JobLoads& loads) {
  if (at == at_) return;
  at_ = at;
  std::erase_if(quiet_, [&](const auto& each) { return !loads.contains(each.first); });
  for (const auto& [job, processes] : loads) {
    const auto known = quiet_.find(job);
    const bool fresh = known != quiet_.end() && at - known->second.last <= kForgetAfter;
    switch (load_of(processes)) {
      case Load::kSome:
        quiet_.erase(job);
        break;
      case Load::kUnknown:
        if (!fresh) quiet_.erase(job);
        break;
      case Load::kNone:
        if (fresh)
          known->second.last = at;
        else
          quiet_[job] = {at, at, wall};
        break;
    }
  }
}

std::map<core::JobId, WallTime> Idle::since() const {
  std::map<core::JobId, WallTime> idle;
  for (const auto& [job, quiet] : quiet_)
    if (quiet.last - quiet.first >= kIdleAfter) idle[job] = quiet.since;
  return idle;
}

}  // namespace mete::node
