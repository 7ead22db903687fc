// SPDX-License-Identifier: Apache-2.0
// Jobs with a --deadline in the order of time: by when a pending job must have started, so that its
// time limit still fits, and by when an active one must have ended.
#pragma once

#include <cstdint>
#include <set>
#include <utility>

#include "core/job/job.h"

namespace mete::core {

class Deadlines {
 public:
  using Entry = std::pair<std::int64_t, JobId>;  // milliseconds

  // By the state that the job has now; a job without a deadline, or that has ended, is in neither.
  void enter(const Job& job);
  void leave(const Job& job);

  const std::set<Entry>& start_by() const { return start_by_; }
  const std::set<Entry>& end_by() const { return end_by_; }

 private:
  std::set<Entry> start_by_;
  std::set<Entry> end_by_;
};

}  // namespace mete::core
