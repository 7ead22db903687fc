// SPDX-License-Identifier: Apache-2.0
// An independent record of the log: sums are added up here, rules are taken from the documents and
// not from core/, and every event is judged when it is entered. The cost of an event does not
// depend on the number of jobs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/job/event.h"
#include "core/order/pass.h"
#include "tests/sim/judge.h"
#include "tests/sim/lives.h"

namespace mete::sim {

struct Entry {
  core::JobId id;
  core::SharedSpec spec;
  core::JobState state = core::JobState::kPending;
  std::uint32_t attempt = 1;
  std::int32_t priority = 0;
  bool held = false;
  bool requeue = false;     // while it is being ended: then it waits again
  std::uint64_t boots = 0;  // how often the machine had booted when it was submitted
  std::optional<core::Outcome> outcome;
  std::optional<core::Exit> exit;       // of an ended job
  std::optional<core::GpuRequest> gpu;  // asked for since --retry-gpu
  std::uint32_t failures = 0;
  WallTime submitted;
  std::int64_t not_before_ms = 0;
  std::vector<core::GrantedCard> grant;
  std::vector<Bytes> stays;                         // while it is parked: what stays on each card
  std::vector<Bytes> stayed;                        // the last time
  core::ParkCause cause = core::ParkCause::kAsked;  // of its being parked, or on its way there
  std::optional<core::JobId> for_job;               // likewise
  bool wants_back = false;                          // likewise
  WallTime parked_since;
  bool tried_in_vain = false;          // a return has failed
  std::optional<WallTime> runs_since;  // or runs again since then
  std::optional<WallTime> refused_at;  // could not be parked
  bool refuses_always = false;
  bool asked_to_shrink = false;
  std::vector<core::After> unmet;
  bool doomed = false;

  bool active() const {
    return state != core::JobState::kPending && state != core::JobState::kEnded;
  }
  bool away() const { return !stays.empty(); }
  bool is_parked() const {
    return state == core::JobState::kParking || state == core::JobState::kParked;
  }
  bool has_grown() const;
  // Its cards: while it is parked, what stays there.
  std::vector<core::GrantedCard> held_now() const;
  core::Request request() const;
  // Only room, quota and limits can keep it from starting.
  bool in_line(WallTime now) const;
};

// The bytes and holders of one card, or of one user.
struct Sums {
  std::uint64_t bytes = 0;
  std::uint32_t holders = 0;
  std::uint32_t whole = 0;
  bool operator==(const Sums&) const = default;
};
struct UserSums {
  std::uint32_t cards = 0;
  std::uint64_t bytes = 0;
  std::uint32_t running = 0;
  std::uint32_t unfinished = 0;
  bool operator==(const UserSums&) const = default;
};

// Facts that are not in the log.
struct Witness {
  // How long such jobs are known to run, in seconds, if that is known.
  std::function<std::optional<std::uint64_t>(const core::JobSpec&)> learned;
  // A permitted user has asked for the end of this job, or for another attempt.
  std::function<bool(core::JobId)> end_was_asked;
  // A permitted user has asked for it to be parked; has asked for its return, or its program woke
  // up; it was found idle.
  std::function<bool(core::JobId)> park_was_asked;
  std::function<bool(core::JobId)> return_was_asked;
  std::function<bool(core::JobId)> was_idle;
  // It was certainly seen to hold memory outside its meter.
  std::function<bool(core::JobId)> has_escaped;
  // The `mete run` or keeper of this attempt.
  std::function<bool(const Entry&)> parent_lives;
};

// Whether a job may go from one state to the other. Written independently of core's own list.
bool comes_after(core::JobState before, core::JobState after);

class Books {
 public:
  Books(Judge& judge, Lives& lives, const core::Rules& rules,
        std::map<std::string, Bytes> capacities)
      : judge_(judge), lives_(lives), rules_(rules), capacities_(std::move(capacities)) {}

  Witness witness;
  // Enters what was committed.
  void enter(const core::Event& event);

  const Entry* find(core::JobId id) const;
  const std::map<core::JobId, Entry>& jobs() const { return jobs_; }
  const std::set<core::JobId>& pending() const { return pending_; }
  const std::set<core::JobId>& active() const { return active_; }
  const std::map<std::string, Sums>& cards() const { return cards_; }
  const std::set<std::string>& drained() const { return drained_; }
  const std::set<std::string>& lost() const { return lost_; }
  const std::map<std::uint64_t, core::Reservation>& reservations() const { return reservations_; }
  std::uint64_t last_job() const { return last_job_; }
  UserSums user(const std::string& name) const;
  core::Quota quota_of(const std::string& user) const;
  std::uint32_t running_of_array(std::uint64_t number) const;
  // Whether one more job with such a grant is within the limits of its user and array.
  bool within_limits(const Entry& entry, const std::vector<core::GrantedCard>& grant) const;
  const core::Rules& rules() const { return rules_; }

  // What a settled turn at this moment must not leave behind: doomed jobs, passed deadlines.
  void nothing_is_overdue(WallTime now) const;
  // The sums, added up from the beginning.
  void audit() const;
  // Ended jobs that the daemon has forgotten.
  void forget_unless(const std::function<bool(core::JobId)>& known);

 private:
  struct ArrayCount {
    std::uint32_t open = 0;
    std::uint32_t failed = 0;
    std::uint32_t running = 0;
    std::uint32_t remembered = 0;
  };

  void on(const core::JobSubmitted& what);
  void on(const core::JobGranted& what);
  void on(const core::JobStarted& what);
  void on(const core::JobStopping& what);
  void on(const core::JobEnded& what);
  void on(const core::JobRequeued& what);
  void on(const core::JobUngranted& what);
  void on(const core::JobHeld& what);
  void on(const core::JobReleased& what);
  void on(const core::JobPriority& what);
  void on(const core::JobForecast& what);
  void on(const core::CardLost& what);
  void on(const core::CardBack& what);
  void on(const core::CardDrained& what);
  void on(const core::CardUndrained& what);
  void on(const core::QuotaSet& what);
  void on(const core::Reserved& what);
  void on(const core::Unreserved& what);
  void on(const core::Booted& what);
  void on(const core::Repaired& what);
  // Jobs of trials are jobs like all others; the simulator submits no sweep.
  void on(const core::SweepStarted&) {}
  void on(const core::SweepChanged&) {}
  void on(const core::SweepRemoved&) {}
  template <class What>
  void on(const core::OfSweep<What>&) {}
  void on(const core::JobParked& what);
  void on(const core::JobUnparked& what);
  void on(const core::JobGrown& what);
  void on(const core::EscapeSeen& what);
  void on(const core::JobIdle& what);
  void on(const core::JobActive& what);

  [[noreturn]] void fail(core::JobId id, const std::string& what) const;
  Entry& at(core::JobId id);
  void check_grant(const Entry& entry) const;
  void check_sums(const Entry& entry) const;
  void check_cards(const Entry& entry) const;
  void check_parking(const Entry& entry, const core::JobParked& what) const;
  void check_preemption(const Entry& entry, const Entry& other) const;
  void check_away(const Entry& entry, const core::JobParked& what) const;
  void check_return(const Entry& entry, const core::JobUnparked& what) const;
  void check_reservations(const Entry& entry) const;
  void check_cpus() const;
  void check_overlap(const core::Reservation& made) const;
  void check_exit(const Entry& entry, const std::optional<core::Exit>& exit) const;
  void check_end_of_pending(const Entry& entry, core::Outcome outcome) const;
  void check_outcome(const Entry& entry, core::Outcome outcome,
                     const std::optional<core::Exit>& exit) const;
  bool is_beyond_its_time(const Entry& entry) const;
  bool may_run_again(const Entry& entry, core::Outcome outcome) const;
  bool must_run_again(const Entry& entry, core::Outcome outcome) const;
  void take(Entry& entry, const std::vector<core::GrantedCard>& grant);
  void put_on_cards(const Entry& entry);
  void take_off_cards(const Entry& entry);
  void give_back(Entry& entry);
  void end_attempt(Entry& entry, const std::optional<core::Exit>& exit);
  void tell_dependents(const Entry& entry);
  void tell(core::JobId target, bool failed, bool over);
  bool is_open(core::JobId id) const;
  void waits_again(Entry& entry);
  void begin_waiting(Entry& entry);
  void stop_waiting(Entry& entry);

  Judge& judge_;
  Lives& lives_;
  core::Rules rules_;
  std::map<std::string, Bytes> capacities_;
  WallTime now_;  // of the event
  std::uint64_t boots_ = 0;
  std::map<core::JobId, Entry> jobs_;
  std::set<core::JobId> pending_;
  std::set<core::JobId> active_;
  std::map<std::string, Sums> cards_;
  std::map<std::string, UserSums> users_;
  std::map<std::uint64_t, ArrayCount> arrays_;
  std::map<core::JobId, std::set<core::JobId>> dependents_;
  std::set<core::JobId> doomed_;
  std::set<std::pair<std::int64_t, core::JobId>> start_by_;
  std::set<std::pair<std::int64_t, core::JobId>> end_by_;
  std::map<std::string, core::Quota> quotas_;
  std::map<std::uint64_t, core::Reservation> reservations_;
  std::set<std::string> drained_;
  std::set<std::string> lost_;
  std::uint64_t last_job_ = 0;
};

}  // namespace mete::sim
