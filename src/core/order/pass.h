// SPDX-License-Identifier: Apache-2.0
// One walk along the line: who may start now, for whom room is held, what is left. A pure function
// of what it is given, so that `explain` and the forecasts ask the same code about changed
// questions.
//
// The order: whoever has waited for longer than Rules::starve_after_s goes first (of each user the
// oldest job only, so that nobody gets in front of everybody with a thousand of them). Then by
// priority; within one, the user who had the least of the cards lately (fair_share.h, with what
// runs now and what was given in this walk counted); then by number.
//
// The first job that must wait for room has it held: on the cards on which it could start soonest
// as those who run end, each by its --time, else by what was learned of jobs of its name; where
// nobody knows that, on those where the least is missing (place/hold.h). Whoever comes later may
// have what is left, and what is held only if it will have ended by the time the first one could
// start. So nobody behind the first ever delays it.
//
// Who was parked for another and wants to come back stands in line before all of his priority, once
// that one has started, and has his room held as the first of a line has. Who cannot start for want
// of room may have others parked for him (preempt.h). CPUs are held as cards are. A job over its
// user's quota or its array's limit is passed over, and holds nothing.
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

// What can be set about the line.
struct Rules {
  std::uint64_t half_life_s = 7 * 86'400;  // of what a user had of the cards
  std::uint64_t starve_after_s = 86'400;
  std::uint64_t grace_s = 30;         // between TERM and KILL, after a time limit too
  std::optional<std::uint32_t> cpus;  // for jobs of mete submit; nullopt: not counted
  // What this machine has: no job can ask for more. nullopt: not known.
  std::optional<std::uint32_t> machine_cpus;
  std::optional<Bytes> machine_ram;
  std::uint64_t retry_pause_s = 10;      // before the first retry; doubles with each
  std::size_t ended_kept = 10'000;       // of each user's jobs
  std::uint64_t user_bytes = 256 << 20;  // of the state that are one user's (core/job/account.h)
  std::uint64_t park_min_run_s = 10;     // nobody is parked for another who has not run for so long
  std::uint64_t park_patience_s = 30;    // then others are asked than those who do not park
  std::uint64_t park_retry_s = 60;       // after which one that could not be parked is asked again
  // What is done about a job that does nothing on its cards, each after so long; 0: never.
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
  std::uint64_t array = 0;       // whose limit it counts against; otherwise 0
  std::optional<WallTime> ends;  // at the latest by its --time, else as learned
  bool by_limit = false;         // the former
  const Job* job = nullptr;      // what else is known of it; nullptr: it starts in this walk
  bool gave_way = false;         // it was parked for somebody who still waits
};

struct PassInput {
  Pool pool;  // the machine with all grants on it
  Policy policy = Policy::kBestFit;
  WallTime now;
  const Rules* rules = nullptr;
  const Pending* pending = nullptr;
  const Estimates* estimates = nullptr;
  std::vector<Running> running;
  std::map<std::string, std::uint64_t> usage;  // by user, in MiB seconds, what runs included
  std::map<std::string, Quota> quotas;         // "": of everybody else
  std::vector<Reservation> reservations;

  Quota quota_of(const std::string& user) const;
};

struct PassResult {
  std::vector<JobGranted> start;
  std::optional<JobId> held_for;
  std::optional<WallTime> held_until;  // by when that one can start, if that is known
  Pool left;                           // for those after all of them
  std::uint32_t cpus_left = 0;         // the same; without a limit: as many as there are numbers
  Pool open;                           // and with what is held
  std::uint32_t cpus_open = 0;
  std::map<std::string, Held> held;                 // by user, with those who start
  std::map<std::uint64_t, std::uint32_t> in_array;  // of arrays with a limit, the same
  std::vector<JobId> back;                          // parked ones that may come back
  struct ToPark {
    JobId id;
    JobId for_job;
    bool operator==(const ToPark&) const = default;
  };
  std::vector<ToPark> park;
  // Those that are to give back what they have grown by and do not use.
  std::vector<JobId> shrink;
  std::map<JobId, std::vector<JobId>> waits_for;  // who is being parked or shrunk for whom
};

PassResult walk(const PassInput& input);

// Of the kinds that a job in line could be of instead, the first as which it would start, in its
// place; nullopt: none of them. One walk for all of them: nobody before it is touched by what it
// asks for.
std::optional<std::size_t> first_to_start(const PassInput& input, JobId id,
                                          std::span<const Kind> kinds);

// Everybody in line who could start if there were room, in order: whoever waits for a time is left
// out.
std::vector<JobId> in_order(const PassInput& input);

// Why one kind of job cannot start after such a walk; nullopt: it can.
struct Blocked {
  enum class By { kQuota, kArray, kCpus, kRoom };
  By by = By::kRoom;
  std::optional<OverQuota> quota = {};  // kQuota
  std::uint32_t running = 0;            // kArray: jobs of the array
};
std::optional<Blocked> blocked(const PassInput& input, const PassResult& result, const Kind& kind);

// The pool as this kind of job may see it: with what is reserved for others.
Pool seen_by(const PassInput& input, const Pool& pool, const Kind& kind);
// When it will have ended if it starts now, with the grace after its limit; nullopt: not known.
std::optional<WallTime> ends_if_started(const PassInput& input, const Kind& kind);

Held held_of(const std::vector<GrantedCard>& cards);
// Takes the grant of a job off, and what it holds beyond it.
void remove_grant(Pool& pool, JobId id);

}  // namespace mete::core
