// SPDX-License-Identifier: Apache-2.0
// Whether a job would start if something were changed: each function changes a copy of the input of
// a pass, and does the pass. Internal to core/explain.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/job/state.h"

namespace mete::core {

class Question {
 public:
  // `job` is pending; `sight` must be of this state.
  Question(const State& state, const Sight& sight, const Job& job);

  const PassInput& now() const { return sight_.input; }
  const Kind& kind() const { return kind_; }
  // How many passes one search may take, so that all searches together take about 50 ms.
  std::size_t most_walks() const;

  // Whether its user's quota is in the way, now or once there is room.
  bool over_quota() const;
  // As which of `kinds` the job would start, were it of that kind.
  std::optional<std::size_t> first_as(std::span<const Kind> kinds) const;
  // Whether the job would start if it were neither held nor had a --begin.
  bool in_line() const;
  bool room_is_being_made() const { return sight_.result.waits_for.contains(job_.id); }
  // Whether the job would start with another priority; the jobs that would be parked for it then.
  std::optional<std::vector<JobId>> with_priority(std::int32_t priority);
  // Whether the job would start if these were cancelled, with the jobs that their end frees.
  bool without_jobs(std::span<const JobId> ids) const;
  bool with_quota(const Quota& quota) const;
  bool without_reservation(std::uint64_t id) const;
  bool undrained(const std::string& uuid) const;

 private:
  bool starts(const PassInput& input) const;

  const State& state_;
  const Sight& sight_;
  const Job& job_;
  Kind kind_;
  std::optional<Pending> line_;  // without the job; copied on demand
};

}  // namespace mete::core
