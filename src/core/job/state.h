// SPDX-License-Identifier: Apache-2.0
// Everything the daemon has decided so far, and what it decides next: jobs, who holds what, whose
// turn it is. decide(), due() and grants() are pure; apply() changes the state and is the same
// function for what was just decided and for the log of the time before.
//
// The machine (cards, what others hold there) and the time are handed in: they are seen, not
// decided. decide.h has the decisions, apply.h what becomes of them, due.cc what time brings, and
// each index its own header: users.h, history.h, dependencies.h, deadlines.h, administration.h,
// order/pending.h. state.cc has questions about all of them, and snapshots.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "core/job/administration.h"
#include "core/job/bounds.h"
#include "core/job/deadlines.h"
#include "core/job/dependencies.h"
#include "core/job/event.h"
#include "core/job/history.h"
#include "core/job/input.h"
#include "core/job/job.h"
#include "core/job/users.h"
#include "core/order/estimate.h"
#include "core/order/fair_share.h"
#include "core/order/pass.h"
#include "core/order/pending.h"
#include "core/place/place.h"

namespace mete::core {

using Decided = Result<std::vector<Happened>>;

// What is decided upon.
struct Moment {
  const Pool& machine;
  Policy policy = Policy::kBestFit;
  WallTime now;
};

// How the forecasts have done, and what corrects them: the uncertain part of the time until `by` is
// multiplied by factor/1000, which grows with each that did not hold and shrinks with each that
// did, so that 80 of 100 hold.
struct ForecastScore {
  std::uint64_t given = 0;
  std::uint64_t held = 0;
  std::uint32_t factor_milli = 1000;
  bool operator==(const ForecastScore&) const = default;
};

// The line at a moment, walked once, for questions about those who wait. Refers to the state, which
// must not change meanwhile.
struct Sight {
  PassInput input;
  PassResult result;
  std::map<KindId, SharedWait> known;  // equal jobs wait for the same
  std::map<JobId, SharedWait> own;     // what others do not wait for
};

class State {
 public:
  explicit State(Rules rules = {}) : rules_(rules), fair_(rules.half_life_s) {}

  // What follows from an input, to be applied in order. An error changes nothing: not_found (no
  // such job, or another user's), denied, infeasible (can never be), exhausted (no room now and
  // it will not wait; or too many jobs), busy (not in a state for that), invalid.
  Decided decide(const Input& input, const Moment& moment) const;

  // What follows from time and from what was applied before: deadlines, dependencies that can no
  // longer be met, reservations that are over. Asked again after it was applied, until there is
  // nothing more.
  std::vector<Happened> due(const Moment& moment) const;
  // When time alone changes something next; nullopt: never.
  std::optional<WallTime> next_change(WallTime now) const;

  // Everybody in line who may start now, with their cards, in line order. Any number of them from
  // the front may be applied.
  std::vector<JobGranted> grants(const Moment& moment) const { return next_steps(moment).start; }
  // The same, with those who come back, and whom to park for whom.
  PassResult next_steps(const Moment& moment) const;

  // METE_ASSERTs what can never be: a gap in the numbers, a step that no state allows, a grant for
  // a job that has one.
  void apply(const Event& event);
  // For trying out: as if the job that was submitted last, which waits, had never been. Nothing was
  // applied since.
  void take_back_last();
  // Before a replay, for each time that its log has the job run again: an ended job is not
  // forgotten before that. Whoever wrote the log may have been told to remember more.
  void remember_until_requeued(JobId id) { history_.remember_until_requeued(id); }

  PassInput pass_input(const Moment& moment) const;
  Sight look(const Moment& moment) const;
  // Why a pending job waits. Lives in `sight`.
  const SharedWait& wait_of(const Job& job, const Moment& moment, Sight& sight) const;
  // What a parked job that may come back waits for; nullopt: it is none.
  std::optional<Wait> wait_to_return(const Job& job, const Moment& moment) const;
  // Why a job that will not wait cannot start at once; nullopt: it can.
  std::optional<Wait> would_wait(const Submit& submit, const Moment& moment) const;
  // False: a walk would not start this job now, whatever its place in line. For a new one among
  // thousands that wait this saves the walk.
  bool might_start(const Job& job, const Moment& moment) const;

  // The machine with our own grants on it, and drained cards marked.
  Pool with_grants(Pool machine) const;

  const std::map<JobId, Job>& jobs() const { return jobs_; }
  const Job* find(JobId id) const;
  // The job, or all jobs of an array; empty: no such.
  std::vector<const Job*> find_all(JobId id) const;
  // The job, or the first of an array; nullptr: no such.
  const Job* first_of(JobId id) const;
  // The job, or every one of the array, has ended; of `any` one that is known. So has what nobody
  // knows any more. Costs the same however large the array is.
  bool is_over(JobId id, bool any = false) const;
  // The unfinished job of a runner, which has one at most; nullptr: none.
  const Job* find_by_runner(const ProcessRef& runner) const;
  // The job, or the array, that this user has submitted with this key; nullopt: none, or it is
  // forgotten.
  std::optional<JobId> find_by_key(std::uint32_t uid, const std::string& key) const;
  const std::set<JobId>& active() const { return active_; }
  // Those that have ended since, the last first. Stops at the first that ended before: a clock that
  // was set hides some.
  std::vector<const Job*> ended_after(WallTime time) const;
  // Those that were forgotten since it was last asked, by apply().
  std::vector<Job> take_forgotten() { return history_.take_forgotten(); }
  std::size_t unfinished() const { return jobs_.size() - history_.ended().size(); }
  std::uint64_t last_seq() const { return last_seq_; }
  const std::set<std::string>& lost_cards() const { return lost_; }
  const std::map<std::string, std::string>& drained() const { return admin_.drained(); }
  const std::map<std::string, Quota>& quotas() const { return admin_.quotas(); }
  const std::vector<Reservation>& reservations() const { return admin_.reservations(); }
  const FairShare& fair_share() const { return fair_; }
  const Estimates& estimates() const { return estimates_; }
  const ForecastScore& score() const { return score_; }
  const std::string& boot_id() const { return boot_id_; }
  const Rules& rules() const { return rules_; }
  const Pending& pending() const { return pending_; }
  const Users& users() const { return users_; }
  const std::set<JobId>& put_off() const { return put_off_; }
  std::uint64_t last_job() const { return last_job_; }
  std::uint64_t last_reservation() const { return admin_.last_reservation(); }
  // Of the job, or of all jobs of the array.
  Ends ends_among(JobId id) const;
  Held held_by(const std::string& user) const;
  // What a user had of the cards lately, with what runs now.
  std::uint64_t usage_of(const std::string& user, WallTime now) const;
  // Who would come into the line if all of these were cancelled, also because others end with them.
  std::vector<const Job*> freed_by_cancel(std::span<const JobId> ids) const;
  Bytes disk_of(const std::string& user) const { return users_.of(user).disk; }
  std::size_t unfinished_of(const std::string& user) const { return users_.of(user).unfinished; }
  // Of the state that are a user's (Rules::user_bytes); `open`: of unfinished jobs alone.
  std::uint64_t bytes_of(const std::string& user, bool open = false) const;
  // Contents that unfinished and remembered jobs speak of.
  std::vector<std::string> blobs() const;
  // When a job that holds a grant will have ended: by its limit (true), or as learned.
  std::pair<std::optional<WallTime>, bool> ends_of(const Job& job, WallTime now) const;

  // For snapshots: the state is these values, and no others.
  struct Parts {
    struct ArrayPart {
      std::uint64_t number = 0;
      std::uint64_t failed = 0;
      bool operator==(const ArrayPart&) const = default;
    };
    std::uint64_t last_seq = 0;
    std::uint64_t last_job = 0;
    std::uint64_t last_reservation = 0;
    std::string boot_id;
    std::vector<Job> jobs;  // ended ones in the order in which they ended
    std::vector<std::string> lost;
    std::map<std::string, std::string> drained;  // UUID → by whom
    std::map<std::string, Quota> quotas;
    std::vector<Reservation> reservations;
    std::vector<ArrayPart> arrays;
    std::vector<FairShare::Entry> usage;
    std::vector<Estimates::Entry> estimates;
    ForecastScore score;
    bool operator==(const Parts&) const = default;
  };
  Parts parts() const;
  static State from_parts(Parts parts, Rules rules = {});
  bool operator==(const State& other) const { return parts() == other.parts(); }

 private:
  friend class EventApplier;

  // In and out of the indexes, by what the job is now.
  void enter(const Job& job);
  void leave(const Job& job);
  bool in_vain(const After& after) const;
  std::optional<Wait::Later> who_can_be_parked_later(const Job& job, const Sight& sight) const;
  Wait behind(const Job& first, const Sight& sight, Policy policy) const;
  Wait wait_of_its_own(const Job& job, const Moment& moment, const Sight& sight) const;
  Wait wait_of_kind(const Kind& kind, const Moment& moment, const Sight& sight) const;

  Rules rules_;
  std::map<JobId, Job> jobs_;
  // Indexes of the jobs, kept by enter() and leave().
  Pending pending_;          // those that only wait for their turn
  std::set<JobId> active_;   // hold a grant
  std::set<JobId> put_off_;  // pending ones that could not be launched
  Dependencies dependencies_;
  Deadlines deadlines_;
  Users users_;
  History history_;
  std::map<std::pair<std::int32_t, std::uint64_t>, JobId> runners_;  // of `mete run`s, unfinished
  std::map<std::pair<std::uint32_t, std::string>, std::uint64_t> keys_;  // of jobs, by user
  // What is known besides the jobs.
  Administration admin_;
  std::set<std::string> lost_;
  FairShare fair_;
  Estimates estimates_;
  ForecastScore score_;
  std::string boot_id_;
  std::uint64_t last_seq_ = 0;
  std::uint64_t last_job_ = 0;
};

// What a job has cost its user in so many milliseconds since it started, in MiB seconds: while it
// was parked only what stayed on the cards.
std::uint64_t cost_of(const Job& job, std::uint64_t ran_ms, std::uint32_t cpus, WallTime now);

Remark remark_of(const Job& job, const Rules& rules);

// The answer to a job that will not wait. What it would wait for is State::would_wait().
Error no_room_now();

// How an end is called.
Outcome outcome_of(const Exit& exit);

}  // namespace mete::core
