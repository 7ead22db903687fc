// SPDX-License-Identifier: Apache-2.0
// Applies events: the only way in which a State changes, when an event is new and when the log is
// replayed. apply.cc has the indexes and the life of a job, park.cc parking and growth, watch.cc
// idle jobs and escapes. METE_ASSERTs that every event is possible in the present state.
#pragma once

#include <optional>
#include <string>

#include "core/job/state.h"

namespace mete::core {

class EventApplier {
 public:
  EventApplier(State& state, WallTime at) : state_(state), at_(at) {}

  void on(const JobSubmitted& submitted);
  void on(const JobGranted& granted);
  void on(const JobStarted& started);
  void on(const JobStopping& stopping);
  void on(const JobEnded& ended);
  void on(const JobRequeued& requeued);
  void on(const JobUngranted& ungranted);
  void on(const JobHeld& held);
  void on(const JobReleased& released);
  void on(const JobPriority& priority);
  void on(const JobForecast& told);
  void on(const JobParked& parked);
  void on(const JobUnparked& unparked);
  void on(const JobGrown& grown);
  void on(const EscapeSeen& seen);
  void on(const JobIdle& idle);
  void on(const JobActive& active);
  void on(const CardLost& card);
  void on(const CardBack& card);
  void on(const CardDrained& card);
  void on(const CardUndrained& card);
  void on(const QuotaSet& set);
  void on(const Reserved& reserved);
  void on(const Unreserved& unreserved);
  void on(const Booted& booted);
  void on(const Repaired& repaired);
  void on(const SweepStarted& started) { state_.sweeps_.apply(started, at_); }
  void on(const SweepChanged& changed) { state_.sweeps_.apply(changed); }
  void on(const SweepRemoved& removed) { state_.sweeps_.apply(removed); }
  template <class What>
  void on(const OfSweep<What>& step) {
    state_.sweeps_.apply(step, at_);
  }

 private:
  Job& job_of(JobId id);
  // Takes the job out of the indexes and changes its state; enter() must follow.
  Job& step(JobId id, JobState to);
  void set_held(JobId id, bool held);
  void charge(const Job& job, const std::optional<Exit>& exit);
  void score_forecast(Job& job);
  void tell_dependents(const Job& job);
  void tell_dependents_of(JobId target, bool failed);
  void forget_old(const std::string& of);
  void forget_for_room(const std::string& of);
  void drop(const Job& forgotten);

  State& state_;
  WallTime at_;
};

}  // namespace mete::core
