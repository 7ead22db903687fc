// SPDX-License-Identifier: Apache-2.0
// The line with something changed, and whether a job would start then: each of these makes the
// change to a copy of what a walk looks at and walks. Inside of core/explain.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/job/state.h"

namespace mete::core {

class Question {
 public:
  // `job` is pending; `sight` is of this state.
  Question(const State& state, const Sight& sight, const Job& job);

  const PassInput& now() const { return sight_.input; }
  const Kind& kind() const { return kind_; }
  // How many walks one search may take, so that all of them stay within some 50 ms.
  std::size_t most_walks() const;

  // Whether its user's quota is in its way, now or once there is room.
  bool over_quota() const;
  // As which of these it would start, being of that kind instead.
  std::optional<std::size_t> first_as(std::span<const Kind> kinds) const;
  // If it were neither held nor to begin later.
  bool in_line() const;
  // Others are being parked, or asked to shrink, for it.
  bool room_is_being_made() const { return sight_.result.waits_for.contains(job_.id); }
  // Whether it would start with another priority; the jobs that would be parked for it then.
  std::optional<std::vector<JobId>> with_priority(std::int32_t priority);
  // Cancelled, whatever their users' other jobs were waiting for.
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
  std::optional<Pending> line_;  // without the job; copied when it is first needed
};

}  // namespace mete::core
