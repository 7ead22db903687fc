// SPDX-License-Identifier: Apache-2.0
// One pass over the queue: which jobs may start now, for which one room is held, what is left. A
// pure function, so that `explain` and the forecasts ask it about changed inputs.
//
// The order: a job that has waited longer than Rules::starve_after_s goes first (only the oldest of
// each user, so that a thousand jobs of one user do not overtake all others). Then by priority;
// within one priority by the user who had the least of the cards lately (fair_share.h; running jobs
// and grants of this pass count); then by number.
//
// Room is held for the first job that must wait for it: on the cards where it can start soonest as
// running jobs end, each by its --time or as learned from jobs of its name; if that is not known,
// on the cards where the least is missing (place/hold.h). Later jobs may have what is left, and
// what is held only if they end before the first job could start. So no later job delays the first.
//
// A job that was parked for another and wants to come back is in the queue before all others of its
// priority, once that other job has started; room is held for it as for any first job. A job
// without room may have others parked for it (preempt.h). CPUs are held as cards are. A job over
// its user's quota or its array's limit is skipped, and no room is held for it.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/job/event.h"
#include "core/order/estimate.h"
#include "core/order/pending.h"
#include "core/order/quota.h"
#include "core/order/reservation.h"
#include "core/place/place.h"

namespace mete::core {

struct Rules {
  std::uint64_t half_life_s = 7 * 86'400;  // of a user's recent usage
  std::uint64_t starve_after_s = 86'400;
  std::uint64_t grace_s = 30;         // between TERM and KILL, after a time limit too
  std::optional<std::uint32_t> cpus;  // for jobs of mete submit; nullopt: not counted
  // What the machine has: no job can ask for more. nullopt: unknown.
  std::optional<std::uint32_t> machine_cpus;
  std::optional<Bytes> machine_ram;
  std::uint64_t retry_pause_s = 10;      // before the first retry; doubles with each
  std::size_t ended_kept = 10'000;       // per user
  std::uint64_t user_bytes = 256 << 20;  // of the state, per user (core/job/account.h)
  std::uint64_t park_min_run_s = 10;     // a job that has run for less is not parked for others
  std::uint64_t park_patience_s = 30;    // after which other jobs are parked instead
  std::uint64_t park_retry_s = 60;       // before a job that could not be parked is asked again
  // What is done about a job that is idle on its cards, and after how long; 0: never.
  std::uint64_t idle_warn_s = 0;
  std::uint64_t idle_notify_s = 0;
  std::uint64_t idle_park_s = 0;
  std::uint64_t idle_stop_s = 0;
  bool operator==(const Rules&) const = default;
};

// A job that holds a grant.
struct Running {
  JobId id;
  std::string user;
  Held held;
  std::uint32_t cpus = 0;
  std::uint64_t array = 0;       // an array with a limit; otherwise 0
  std::optional<WallTime> ends;  // at the latest by its --time, or as learned
  bool by_limit = false;         // `ends` is by its --time
  const Job* job = nullptr;      // nullptr: the job starts in this pass
  bool gave_way = false;         // it was parked for a job that still waits
};

struct PassInput {
  Pool pool;  // the machine with all grants on it
  Policy policy = Policy::kBestFit;
  WallTime now;
  const Rules* rules = nullptr;
  const Pending* pending = nullptr;
  const Estimates* estimates = nullptr;
  std::vector<Running> running;
  std::map<std::string, std::uint64_t> usage;  // by user, in MiB seconds, with running jobs
  std::map<std::string, Quota> quotas;         // "": the default
  std::vector<Reservation> reservations;

  Quota quota_of(const std::string& user) const;
};

struct PassResult {
  std::vector<JobGranted> start;
  std::optional<JobId> held_for;
  std::optional<WallTime> held_until;  // when that job can start, if known
  Pool left;                           // after all grants, without what is held
  std::uint32_t cpus_left = 0;         // without what is held; the maximum if CPUs are not counted
  Pool open;                           // `left`, with what is held
  std::uint32_t cpus_open = 0;
  std::map<std::string, Held> held;                 // by user, with the jobs that start
  std::map<std::uint64_t, std::uint32_t> in_array;  // running jobs of arrays with a limit
  std::vector<JobId> back;                          // parked jobs that may come back
  struct ToPark {
    JobId id;
    JobId for_job;
    bool operator==(const ToPark&) const = default;
  };
  std::vector<ToPark> park;
  // Jobs to be asked to give back growth that they do not use.
  std::vector<JobId> shrink;
  std::map<JobId, std::vector<JobId>> waits_for;  // job → the jobs that are parked or shrunk for it
};

PassResult walk(const PassInput& input);

// The first of `kinds` as which the job would start, were it of that kind, in its place in the
// queue; nullopt: none of them. One pass for all kinds: jobs before it do not depend on its
// request.
std::optional<std::size_t> first_to_start(const PassInput& input, JobId id,
                                          std::span<const Kind> kinds);

// All jobs in the queue that could start if there were room, in order. Jobs that wait for a time
// are left out.
std::vector<JobId> in_order(const PassInput& input);

// Why jobs of a kind cannot start after a pass; nullopt: they can.
struct Blocked {
  enum class By { kQuota, kArray, kCpus, kRoom };
  By by = By::kRoom;
  std::optional<OverQuota> quota = {};  // kQuota
  std::uint32_t running = 0;            // kArray: jobs of the array
};
std::optional<Blocked> blocked(const PassInput& input, const PassResult& result, const Kind& kind);

// The pool as jobs of this kind may see it: with the reservations of others.
Pool seen_by(const PassInput& input, const Pool& pool, const Kind& kind);
// When a job that starts now will have ended, with the grace period after its limit; nullopt:
// unknown.
std::optional<WallTime> ends_if_started(const PassInput& input, const Kind& kind);

Held held_of(const std::vector<GrantedCard>& cards);
// Removes the grant of a job, and the memory that it holds beyond its grant.
void remove_grant(Pool& pool, JobId id);

}  // namespace mete::core
