// SPDX-License-Identifier: Apache-2.0
// Jobs that may be parked, on cards with contexts, and the reports of their runners.
#pragma once

#include "core/test/state_world.h"

namespace mete::core {

inline constexpr Bytes kContext = Bytes::from_mib(512);

class ParkWorld : public StateWorld {
 protected:
  ParkWorld() {
    for (PoolCard& card : machine_.cards) card.context = kContext;
  }
  JobSpec preemptible(const std::string& gpu, std::int32_t priority = 0,
                      const std::string& user = "alice") {
    JobSpec spec = spec_of(gpu, user);
    spec.preemptible = true;
    spec.priority = priority;
    return spec;
  }
  JobSpec above(const std::string& gpu, std::int32_t priority = 10) {
    JobSpec spec = spec_of(gpu, "root");
    spec.priority = priority;
    return spec;
  }
  Result<void> park(JobId id, const std::string& user = "alice") {
    return take(ParkJob{id, caller(user)});
  }
  Result<void> unpark(JobId id, const std::string& user = "alice") {
    return take(UnparkJob{id, caller(user)});
  }
  // The runner reports that the job is parked.
  void away(JobId id, Bytes stays = kContext) {
    ParkReport report{id, 0, true};
    for (const GrantedCard& card : job(id).grant) {
      report.held.push_back(stays);
      report.moved += card.bytes - stays;
    }
    ASSERT_TRUE(take(report).ok());
    ASSERT_EQ(state_of(id), JobState::kParked);
  }
  void back(JobId id) { ASSERT_TRUE(take(ParkReport{id, 0, false}).ok()); }
  void refuses(JobId id, const std::string& why, bool standing = false) {
    ParkReport report{id, 0, false};
    report.why = why;
    report.standing = standing;
    ASSERT_TRUE(take(report).ok());
  }
  PassResult turn() {
    settle();
    PassResult steps = state_.next_steps(moment());
    for (const JobId id : steps.back) apply(JobUnparked{id, JobState::kUnparking});
    for (const JobGranted& granted : steps.start) apply(granted);
    for (const PassResult::ToPark& each : steps.park)
      apply(JobParked{each.id, JobState::kParking, ParkCause::kPreempted, each.for_job});
    for (const JobId id : steps.shrink) apply(JobGrown{id, {}, true});
    return steps;
  }
  Ids parked_for(JobId id, const PassResult& steps) {
    Ids ids;
    for (const PassResult::ToPark& each : steps.park)
      if (each.for_job == id) ids.push_back(each.id);
    return ids;
  }
  void park_the_idle() {
    Rules rules;
    rules.idle_park_s = 60;
    state_ = State(rules);
  }
  // The job has been idle for an hour.
  void idle(JobId id) { ASSERT_TRUE(take(Idle{id, {now_.ms - 3'600'000}}).ok()); }
  // Half of the first card for carol, from a minute from now, for a minute.
  WallTime reserve_in_a_minute() {
    Reserve reserve;
    reserve.user = "carol";
    reserve.request.gpu = *parse_gpu("40G");
    reserve.request.devices = {"0"};
    reserve.from = {now_.ms + 60'000};
    reserve.until = {now_.ms + 120'000};
    reserve.by = caller("root");
    EXPECT_TRUE(take(reserve).ok());
    return reserve.until;
  }
  Bytes granted_on_first() {
    Bytes sum;
    const Pool pool = state_.with_grants(machine_);
    for (const Holder& holder : pool.cards[0].holders) sum += holder.bytes;
    return sum;
  }
};

}  // namespace mete::core
