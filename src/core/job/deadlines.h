// SPDX-License-Identifier: Apache-2.0
// Jobs with a --deadline, ordered by time: when a pending job must have started so that its time
// limit still fits, and when an active job must have ended.
#pragma once

#include <cstdint>
#include <set>
#include <utility>

#include "core/job/job.h"

namespace mete::core {

class Deadlines {
 public:
  using Entry = std::pair<std::int64_t, JobId>;  // milliseconds

  // Uses the present state of the job; a job without a deadline, or that has ended, is in neither
  // index.
  void enter(const Job& job);
  void leave(const Job& job);

  const std::set<Entry>& start_by() const { return start_by_; }
  const std::set<Entry>& end_by() const { return end_by_; }

 private:
  std::set<Entry> start_by_;
  std::set<Entry> end_by_;
};

}  // namespace mete::core
