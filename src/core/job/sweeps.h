// SPDX-License-Identifier: Apache-2.0
// The sweeps of all users, by number and by name. An index of core::State: apply.h changes it with
// the events of sweeps and with those of their jobs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/job/event.h"
#include "core/job/job.h"
#include "core/sweep/sweep.h"

namespace mete::core {

class Sweeps {
 public:
  const std::map<std::uint64_t, sweep::Sweep>& all() const { return sweeps_; }
  const sweep::Sweep* find(std::uint64_t number) const;
  // A user's sweeps have different names. nullptr: none of that name.
  const sweep::Sweep* find(std::uint32_t uid, const std::string& name) const;
  std::size_t count_of(std::uint32_t uid) const;
  std::uint64_t last() const { return last_; }
  std::uint64_t trials() const;  // of all sweeps
  // Bytes of the state that the user's sweeps take.
  std::uint64_t bytes_of(std::uint32_t uid) const;

  void apply(const SweepStarted& started, WallTime at);
  void apply(const SweepChanged& changed);
  void apply(const SweepRemoved& removed);
  template <class What>
  void apply(const OfSweep<What>& step, WallTime at) {
    of(step.sweep).apply(step.what, at);
  }
  // What became of the job of a trial; other jobs are ignored.
  void job_started(const Job& job, WallTime at);
  void job_waits(const Job& job);
  void job_ended(const Job& job, WallTime at);

  // For snapshots.
  void restore(std::vector<sweep::Sweep::Parts> sweeps, std::uint64_t last);

 private:
  sweep::Sweep& of(std::uint64_t number);
  void enter(sweep::Sweep sweep);

  std::map<std::uint64_t, sweep::Sweep> sweeps_;
  std::map<std::pair<std::uint32_t, std::string>, std::uint64_t> by_name_;
  std::uint64_t last_ = 0;
};

}  // namespace mete::core
