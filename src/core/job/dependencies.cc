// SPDX-License-Identifier: Apache-2.0
// See dependencies.h.
#include "core/job/dependencies.h"

namespace mete::core {

void Dependencies::enter(const Job& job) {
  for (const After& after : job.unmet) dependents_[after.id].insert(job.id);
}

void Dependencies::leave(const Job& job) {
  for (const After& after : job.unmet) {
    const auto found = dependents_.find(after.id);
    if (found == dependents_.end()) continue;
    found->second.erase(job.id);
    if (found->second.empty()) dependents_.erase(found);
  }
  doomed_.erase(job.id);
}

const std::set<JobId>& Dependencies::on(JobId target) const {
  static const std::set<JobId> kNone;
  const auto found = dependents_.find(target);
  return found == dependents_.end() ? kNone : found->second;
}

}  // namespace mete::core
