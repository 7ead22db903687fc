// SPDX-License-Identifier: Apache-2.0
// Which pending jobs wait for which other jobs, and which are doomed: they have a dependency that
// can never be met.
#pragma once

#include <map>
#include <set>

#include "core/job/job.h"

namespace mete::core {

class Dependencies {
 public:
  // A pending job, with its unmet dependencies (Job::unmet). A job that leaves is no longer doomed.
  void enter(const Job& job);
  void leave(const Job& job);

  // The jobs that wait for this job or array.
  const std::set<JobId>& on(JobId target) const;

  void doom(JobId id) { doomed_.insert(id); }
  bool is_doomed(JobId id) const { return doomed_.contains(id); }
  const std::set<JobId>& doomed() const { return doomed_; }

 private:
  std::map<JobId, std::set<JobId>> dependents_;
  std::set<JobId> doomed_;
};

}  // namespace mete::core
