// SPDX-License-Identifier: Apache-2.0
// What was decided. An event is recorded before anything is done about it, and replaying the events
// gives an equal state. Values only; wire/event.h encodes them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/job/job.h"
#include "core/order/quota.h"
#include "core/order/reservation.h"
#include "core/sweep/sweep.h"

namespace mete::core {

// For an array: all its jobs at once.
struct JobSubmitted {
  JobId id;
  SharedSpec spec;
  std::optional<ProcessRef> runner;
  bool operator==(const JobSubmitted&) const = default;
};
// The job holds its grant from here on.
struct JobGranted {
  JobId id;
  std::vector<GrantedCard> cards;
  bool operator==(const JobGranted&) const = default;
};
struct JobStarted {
  JobId id;
  ProcessRef program;
  std::uint64_t ago_ms = 0;               // before this was recorded
  std::optional<ProcessRef> runner = {};  // its keeper
  bool operator==(const JobStarted&) const = default;
};
// The job is being ended: by its user, by a rule, or because its runner is gone.
struct JobStopping {
  JobId id;
  Outcome why = Outcome::kCancelled;
  bool requeue = false;   // the job waits again afterwards (mete requeue)
  std::string note = {};  // why, unless a user asked for it
  bool operator==(const JobStopping&) const = default;
};
// The last process of the job is gone, and its grant is free.
struct JobEnded {
  JobId id;
  Outcome outcome = Outcome::kOk;
  std::optional<Exit> exit;
  bool operator==(const JobEnded&) const = default;
};
// An attempt has ended, its grant is free, and the job waits again: for --retries, --requeue or
// mete requeue. A job that had ended waits once more.
struct JobRequeued {
  JobId id;
  Outcome outcome = Outcome::kLost;  // of the attempt
  std::optional<Exit> exit;
  std::optional<GpuRequest> gpu;       // the request from now on
  std::optional<WallTime> not_before;  // a pause, against endless quick failures
  bool operator==(const JobRequeued&) const = default;
};
// The job could not be launched. Its grant is free, and it waits again in the same attempt.
struct JobUngranted {
  JobId id;
  std::string why = {};                     // the installation or the machine cannot launch it now
  std::optional<WallTime> not_before = {};  // with a reason: when to retry
  bool operator==(const JobUngranted&) const = default;
};
struct JobHeld {
  JobId id;
  bool operator==(const JobHeld&) const = default;
};
struct JobReleased {
  JobId id;
  bool operator==(const JobReleased&) const = default;
};
struct JobPriority {
  JobId id;
  std::int32_t priority = 0;
  bool operator==(const JobPriority&) const = default;
};
// A user was told when the job would start.
struct JobForecast {
  JobId id;
  Forecast forecast;
  bool operator==(const JobForecast&) const = default;
};
// A job gives up its memory: `state` is parking (it was told to) or parked (it has done so, or
// could not come back). The first four fields after `state` are for parking, the others for parked.
struct JobParked {
  JobId id;
  JobState state = JobState::kParking;
  ParkCause cause = ParkCause::kAsked;
  std::optional<JobId> for_job = {};  // the job that needs the room
  std::string by = {};                // the user who asked
  bool deep = false;
  std::vector<Bytes> held = {};  // for each card: what stays there
  Bytes moved = {};
  std::string why = {};  // why it could not come back
  bool lost = false;     // it can never come back
  Bytes on_disk = {};    // the part of `moved` that is on disk
  bool operator==(const JobParked&) const = default;
};
// A job takes its memory back: `state` is parked (it may return when there is room), unparking
// (there is room) or running (it is back, or it could not be parked; `why` says why).
struct JobUnparked {
  JobId id;
  JobState state = JobState::kRunning;
  std::string why = {};
  bool standing = false;  // it cannot be parked the next time either
  bool operator==(const JobUnparked&) const = default;
};
// What a job with a growing share may have now, on each card of its grant; or the order to give
// back what it does not use.
struct JobGrown {
  JobId id;
  std::vector<Bytes> bytes = {};
  bool asked = false;  // the order to give back
  bool operator==(const JobGrown&) const = default;
};
// A process of the job holds memory outside its meter: for the first time, or much more than last
// reported.
struct EscapeSeen {
  JobId id;
  Escape escape;
  bool operator==(const EscapeSeen&) const = default;
};
// The job has done nothing on its cards for this span, and what was done about it.
struct JobIdle {
  JobId id;
  IdleSpan span;
  bool operator==(const JobIdle&) const = default;
};
// The job works again, or its readings have stopped.
struct JobActive {
  JobId id;
  bool operator==(const JobActive&) const = default;
};
struct CardLost {
  std::string uuid;
  bool operator==(const CardLost&) const = default;
};
struct CardBack {
  std::string uuid;
  bool operator==(const CardBack&) const = default;
};
struct CardDrained {
  std::string uuid;
  std::string by;
  bool operator==(const CardDrained&) const = default;
};
struct CardUndrained {
  std::string uuid;
  bool operator==(const CardUndrained&) const = default;
};
struct QuotaSet {
  std::string user;  // "": the default for users without a quota of their own
  Quota quota;
  bool operator==(const QuotaSet&) const = default;
};
struct Reserved {
  Reservation reservation;
  bool operator==(const Reserved&) const = default;
};
// A reservation was removed, or its time is over.
struct Unreserved {
  std::uint64_t id = 0;
  bool operator==(const Unreserved&) const = default;
};
// The machine has booted: no process of an earlier boot is left.
struct Booted {
  std::string boot_id;
  bool operator==(const Booted&) const = default;
};
// Written by `mete daemon repair`: later events are lost, and with them at most as many jobs. Their
// numbers are never used again, since runners, logs and users may still know them.
struct Repaired {
  std::uint64_t lost_events = 0;
  std::uint64_t last_job = 0;  // the highest job number that was found
  bool operator==(const Repaired&) const = default;
};

// A sweep was submitted.
struct SweepStarted {
  std::uint64_t sweep = 0;  // number
  std::shared_ptr<const sweep::Plan> plan;
  bool operator==(const SweepStarted& other) const {
    return sweep == other.sweep && *plan == *other.plan;
  }
};
// The user paused, resumed or stopped it, or gave it a larger plan.
struct SweepChanged {
  std::uint64_t sweep = 0;
  sweep::SweepState state = sweep::SweepState::kRunning;
  std::shared_ptr<const sweep::Plan> plan = {};  // with `extend`
  bool operator==(const SweepChanged& other) const {
    return sweep == other.sweep && state == other.state && !plan == !other.plan &&
           (!plan || *plan == *other.plan);
  }
};
// The sweep and its results are forgotten.
struct SweepRemoved {
  std::uint64_t sweep = 0;
  bool operator==(const SweepRemoved&) const = default;
};
// A step of a sweep. The job of a trial follows as JobSubmitted.
template <class What>
struct OfSweep {
  std::uint64_t sweep = 0;
  What what;
  bool operator==(const OfSweep&) const = default;
};
using SweepTrial = OfSweep<sweep::Begin>;
using SweepReported = OfSweep<sweep::Reported>;
using SweepResult = OfSweep<sweep::Judged>;
using SweepBest = OfSweep<sweep::NewBest>;
using SweepSkipped = OfSweep<sweep::Skipped>;
using SweepReduced = OfSweep<sweep::Reduced>;
using SweepEnding = OfSweep<sweep::EndTrial>;
using SweepEnded = OfSweep<sweep::Finish>;

using Happened =
    std::variant<JobSubmitted, JobGranted, JobStarted, JobStopping, JobEnded, JobRequeued,
                 JobUngranted, JobHeld, JobReleased, JobPriority, JobForecast, CardLost, CardBack,
                 CardDrained, CardUndrained, QuotaSet, Reserved, Unreserved, Booted, JobParked,
                 JobUnparked, JobGrown, EscapeSeen, JobIdle, JobActive, Repaired, SweepStarted,
                 SweepChanged, SweepRemoved, SweepTrial, SweepReported, SweepResult, SweepBest,
                 SweepSkipped, SweepReduced, SweepEnding, SweepEnded>;

struct Event {
  std::uint64_t seq = 0;  // without gaps, from 1
  WallTime at;
  Happened what;
  bool operator==(const Event&) const = default;
};

// In the order of Happened.
inline constexpr std::array<std::string_view, std::variant_size_v<Happened>> kEventTypes = {
    "job.submitted",  "job.granted",   "job.started",     "job.stopping",   "job.ended",
    "job.requeued",   "job.ungranted", "job.held",        "job.released",   "job.priority",
    "job.forecast",   "card.lost",     "card.back",       "card.drained",   "card.undrained",
    "quota.set",      "card.reserved", "card.unreserved", "machine.booted", "job.parked",
    "job.unparked",   "job.grown",     "escape.seen",     "job.idle",       "job.active",
    "store.repaired", "sweep.started", "sweep.changed",   "sweep.removed",  "sweep.trial",
    "sweep.reported", "sweep.result",  "sweep.best",      "sweep.skipped",  "sweep.reduced",
    "sweep.ending",   "sweep.ended"};
inline std::string_view type_of(const Happened& what) { return kEventTypes[what.index()]; }

// The number of the sweep whose step this is.
inline std::optional<std::uint64_t> sweep_of(const Happened& what) {
  return std::visit(
      []<class What>(const What& of) -> std::optional<std::uint64_t> {
        if constexpr (requires { of.what, of.sweep; }) return of.sweep;
        return std::nullopt;
      },
      what);
}

}  // namespace mete::core
