// SPDX-License-Identifier: Apache-2.0
// Decides which events follow from an input. Pure: reads a State and changes nothing; apply.h
// applies the events later. decide.cc has submitting and the inputs of users and runners, bounds.cc
// limits, manage.cc what administrators set, park.cc parking and growth, watch.cc idle jobs and
// escapes, sweep.cc sweeps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/job/state.h"

namespace mete::core {

class Decider {
 public:
  Decider(const State& state, const Moment& moment)
      : state_(state), rules_(state.rules()), moment_(moment) {}

  // See State::decide().
  Decided decide(const Input& input) const;
  // Whether such a job would be accepted.
  Result<void> check_submit(const Submit& submit) const;

 private:
  Decided on(const Submit& submit) const;
  Decided on(const Started& started) const;
  Decided on(const Ended& ended) const;
  Decided on(const Cancel& cancel) const;
  Decided on(const Hold& hold) const;
  Decided on(const Release& release) const;
  Decided on(const Requeue& requeue) const;
  Decided on(const SetPriority& priority) const;
  Decided on(const Drain& drain) const;
  Decided on(const SetQuota& quota) const;
  Decided on(const Reserve& reserve) const;
  Decided on(const Unreserve& unreserve) const;
  Decided on(const ParkJob& park) const;
  Decided on(const UnparkJob& unpark) const;
  Decided on(const ParkReport& report) const;
  Decided on(const Grow& grow) const;
  Decided on(const StartSweep& start) const;
  Decided on(const ChangeSweep& change) const;
  Decided on(const TrialReport& report) const;
  // These cannot fail.
  std::vector<Happened> on(const RunnerGone& gone) const;
  std::vector<Happened> on(const NotLaunched& failed) const;
  std::vector<Happened> on(const JobGone& gone) const;
  std::vector<Happened> on(const Overdue& overdue) const;
  std::vector<Happened> on(const Foretold& foretold) const;
  std::vector<Happened> on(const Idle& idle) const;
  std::vector<Happened> on(const Active& active) const;
  std::vector<Happened> on(const Escaped& escaped) const;
  std::vector<Happened> on(const Look& look) const;

  Result<void> check_bounds(const Submit& submit) const;
  Result<void> check_machine(const Request& request) const;
  Result<std::shared_ptr<const sweep::Plan>> extended(const sweep::Sweep& sweep,
                                                      const ChangeSweep& change) const;
  Result<void> check_sweep_bytes(const JobSpec& spec, std::uint64_t more) const;
  Result<void> check_bytes(const JobSpec& spec, std::uint64_t jobs, std::uint64_t number) const;
  Result<void> check_after(const JobSpec& spec, bool admin) const;
  Result<void> check_quota(const JobSpec& spec) const;
  Result<const Job*> of_user(JobId id, std::uint32_t uid) const;
  Result<std::vector<const Job*>> of_caller(JobId id, const Caller& by) const;
  // The job waits again, until it can be launched.
  Happened put_off(const Job& job, std::string why) const;
  Happened after_attempt(const Job& job, Outcome outcome, std::optional<Exit> exit) const;

  const State& state_;
  const Rules& rules_;
  const Moment& moment_;
};

}  // namespace mete::core
