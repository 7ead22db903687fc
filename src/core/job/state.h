// SPDX-License-Identifier: Apache-2.0
// What the daemon has decided so far, and what it decides next: jobs, their grants, the queue.
// decide(), due() and grants() are pure; apply() changes the state, for new events and in a replay
// of the log alike.
//
// The machine (cards, memory that others hold) and the time are passed in: they are observed, not
// decided. decide.h has the decisions, apply.h applies events, due.cc has what follows from time.
// Each index has its own header: users.h, history.h, dependencies.h, deadlines.h, administration.h,
// sweeps.h, order/pending.h. state.cc has queries over all of them, and snapshots.
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
#include "core/job/sweeps.h"
#include "core/job/users.h"
#include "core/order/estimate.h"
#include "core/order/fair_share.h"
#include "core/order/pass.h"
#include "core/order/pending.h"
#include "core/place/place.h"

namespace mete::core {

using Decided = Result<std::vector<Happened>>;

// What a decision depends on besides the state.
struct Moment {
  const Pool& machine;
  Policy policy = Policy::kBestFit;
  WallTime now;
  bool new_work = true;  // false, on a full disk: sweeps submit no jobs
  // The number of the sweep that is asked first for its next step; kNoSweeps: none is asked.
  std::uint64_t sweeps_from = 0;
  static constexpr std::uint64_t kNoSweeps = ~std::uint64_t{0};
  // The most that running jobs have used of a card so far. Absent: not known.
  const std::map<JobId, Bytes>* peaks = nullptr;
};

// How well the forecasts did, and their correction: the uncertain part of the time until `by` is
// multiplied by factor/1000. The factor grows with each forecast that did not hold and shrinks with
// each that did, so that 80 of 100 hold.
struct ForecastScore {
  std::uint64_t given = 0;
  std::uint64_t held = 0;
  std::uint32_t factor_milli = 1000;
  bool operator==(const ForecastScore&) const = default;
};

// The result of one pass over the queue, for queries about waiting jobs. Refers to the state, which
// must not change meanwhile.
struct Sight {
  PassInput input;
  PassResult result;
  std::map<KindId, SharedWait> known;  // equal jobs have equal waits
  std::map<JobId, SharedWait> own;     // waits of single jobs
};

class State {
 public:
  explicit State(Rules rules = {}) : rules_(rules), fair_(rules.half_life_s) {}

  // The events that follow from an input, to be applied in order. An error changes nothing:
  // not_found (no such job, or another user's), denied, infeasible (can never be satisfied),
  // exhausted (no room now and the job will not wait; or too many jobs), busy (not possible in the
  // job's state), invalid.
  Decided decide(const Input& input, const Moment& moment) const;

  // The events that follow from time and from earlier events: deadlines, dependencies that can no
  // longer be met, reservations that are over. Call it again after applying them, until there are
  // none.
  std::vector<Happened> due(const Moment& moment) const;
  // When time alone changes something next; nullopt: never.
  std::optional<WallTime> next_change(WallTime now) const;

  // All jobs in the queue that may start now, with their cards, in queue order. Any number of them
  // from the front may be applied.
  std::vector<JobGranted> grants(const Moment& moment) const { return next_steps(moment).start; }
  // grants(), with the jobs that come back and the jobs to park for others.
  PassResult next_steps(const Moment& moment) const;

  // Other rules from now on. What was applied before stays as it is.
  void set_rules(const Rules& rules);

  // METE_ASSERTs that job numbers have no gap, that the job's state allows the event, and that a
  // job is granted once.
  void apply(const Event& event);
  // For trying out: removes the job that was submitted last, which is pending. No other event may
  // have been applied since.
  void take_back_last();
  // Before a replay, once for each requeue of the job in the log: the ended job is not forgotten
  // before that. The daemon that wrote the log may have remembered more jobs.
  void remember_until_requeued(JobId id) { history_.remember_until_requeued(id); }

  PassInput pass_input(const Moment& moment) const;
  Sight look(const Moment& moment) const;
  // Why a pending job waits. Lives in `sight`.
  const SharedWait& wait_of(const Job& job, const Moment& moment, Sight& sight) const;
  // What a parked job that may come back waits for; nullopt: the job is not one.
  std::optional<Wait> wait_to_return(const Job& job, const Moment& moment) const;
  // Why a job that refuses to wait cannot start at once; nullopt: it can.
  std::optional<Wait> would_wait(const Submit& submit, const Moment& moment) const;
  // False: a pass would not start this job now, whatever its place in the queue. Saves the pass for
  // a new job when thousands wait.
  bool might_start(const Job& job, const Moment& moment) const;

  // The machine with the grants of our jobs, and drained cards marked.
  Pool with_grants(Pool machine) const;

  const std::map<JobId, Job>& jobs() const { return jobs_; }
  const Job* find(JobId id) const;
  // The job, or all jobs of an array; empty if there is none.
  std::vector<const Job*> find_all(JobId id) const;
  // The job, or the first of an array; nullptr if there is none.
  const Job* first_of(JobId id) const;
  // The job, or every job of the array, has ended; with `any`, one that is known has. True for a
  // job that is forgotten. Takes constant time, however large the array is.
  bool is_over(JobId id, bool any = false) const;
  // The unfinished job of a runner (at most one); nullptr: none.
  const Job* find_by_runner(const ProcessRef& runner) const;
  // The job or array that this user submitted with this key; nullopt: none, or forgotten.
  std::optional<JobId> find_by_key(std::uint32_t uid, const std::string& key) const;
  const std::set<JobId>& active() const { return active_; }
  // Jobs that have ended since `time`, latest first. Stops at the first job that ended before:
  // after a clock change some may be missing.
  std::vector<const Job*> ended_after(WallTime time) const;
  // Jobs forgotten by apply() since the last call.
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
  const Sweeps& sweeps() const { return sweeps_; }
  // Why a running sweep that has more trials submits none now: a quota, the bound of the queue, no
  // card for --gpu auto. "": it does, or its next trial waits in the queue.
  std::string why_blocked(const sweep::Sweep& sweep, const Moment& moment) const;
  const std::set<JobId>& put_off() const { return put_off_; }
  std::uint64_t last_job() const { return last_job_; }
  std::uint64_t last_reservation() const { return admin_.last_reservation(); }
  // Counts for the job, or for all jobs of the array.
  Ends ends_among(JobId id) const;
  Held held_by(const std::string& user) const;
  // The user's recent usage of the cards, with the jobs that run now.
  std::uint64_t usage_of(const std::string& user, WallTime now) const;
  // The jobs that would be ready to start if all of these were cancelled, including by jobs that
  // end as a consequence.
  std::vector<const Job*> freed_by_cancel(std::span<const JobId> ids) const;
  Bytes disk_of(const std::string& user) const { return users_.of(user).disk; }
  std::size_t unfinished_of(const std::string& user) const { return users_.of(user).unfinished; }
  // Bytes of the state that the user's jobs take (Rules::user_bytes); `open`: only unfinished jobs.
  std::uint64_t bytes_of(const std::string& user, bool open = false) const;
  std::vector<std::string> blobs() const;
  // When a job that holds a grant is expected to end: by its limit (true), or as learned.
  std::pair<std::optional<WallTime>, bool> ends_of(const Job& job, WallTime now) const;

  // For snapshots: these values are the whole state.
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
    std::vector<Job> jobs;  // ended jobs in the order in which they ended
    std::vector<std::string> lost;
    std::map<std::string, std::string> drained;  // UUID → administrator
    std::map<std::string, Quota> quotas;
    std::vector<Reservation> reservations;
    std::vector<ArrayPart> arrays;
    std::vector<FairShare::Entry> usage;
    std::vector<Estimates::Entry> estimates;
    ForecastScore score;
    std::uint64_t last_sweep = 0;
    std::vector<sweep::Sweep::Parts> sweeps;
    bool operator==(const Parts&) const = default;
  };
  Parts parts() const;
  static State from_parts(Parts parts, Rules rules = {});
  bool operator==(const State& other) const { return parts() == other.parts(); }

 private:
  friend class EventApplier;

  // Adds to and removes from the indexes, by the job's present state.
  void enter(const Job& job);
  void leave(const Job& job);
  bool in_vain(const After& after) const;
  void sweeps_due(const Moment& moment, std::vector<Happened>& happened) const;
  bool sweep_due(const sweep::Sweep& sweep, const Moment& moment,
                 std::vector<Happened>& happened) const;
  std::optional<Wait::Later> who_can_be_parked_later(const Job& job, const Sight& sight) const;
  Wait behind(const Job& first, const Sight& sight, Policy policy) const;
  Wait wait_of_its_own(const Job& job, const Moment& moment, const Sight& sight) const;
  Wait wait_of_kind(const Kind& kind, const Moment& moment, const Sight& sight) const;

  Rules rules_;
  std::map<JobId, Job> jobs_;
  // Indexes of the jobs, kept by enter() and leave().
  Pending pending_;          // in the queue: neither held nor waiting for other jobs
  std::set<JobId> active_;   // jobs with a grant
  std::set<JobId> put_off_;  // pending jobs that could not be launched
  Dependencies dependencies_;
  Deadlines deadlines_;
  Users users_;
  History history_;
  Sweeps sweeps_;
  std::map<std::pair<std::int32_t, std::uint64_t>, JobId> runners_;  // of unfinished `mete run`s
  std::map<std::pair<std::uint32_t, std::string>, std::uint64_t> keys_;  // by user and key
  // Everything besides the jobs.
  Administration admin_;
  std::set<std::string> lost_;
  FairShare fair_;
  Estimates estimates_;
  ForecastScore score_;
  std::string boot_id_;
  std::uint64_t last_seq_ = 0;
  std::uint64_t last_job_ = 0;
};

// What a job has cost its user in `ran_ms` milliseconds since it started, in MiB seconds. While it
// was parked only what stayed on the cards counts.
std::uint64_t cost_of(const Job& job, std::uint64_t ran_ms, std::uint32_t cpus, WallTime now);

Remark remark_of(const Job& job, const Rules& rules);

// The answer to a job that refuses to wait. State::would_wait() says what it would wait for.
Error no_room_now();

Outcome outcome_of(const Exit& exit);

}  // namespace mete::core
