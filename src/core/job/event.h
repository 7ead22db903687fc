// SPDX-License-Identifier: Apache-2.0
// What has happened, once decided: recorded before anything is done about it, and enough to make
// the same state again by replay. Values only; how they are written is wire/event.h.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/job/job.h"
#include "core/order/quota.h"
#include "core/order/reservation.h"

namespace mete::core {

// Of an array: all its jobs at once.
struct JobSubmitted {
  JobId id;
  SharedSpec spec;
  std::optional<ProcessRef> runner;
  bool operator==(const JobSubmitted&) const = default;
};
// The grant is held from here on.
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
// It is being ended: by its user, or because nobody is left who would wait for it.
struct JobStopping {
  JobId id;
  Outcome why = Outcome::kCancelled;
  bool requeue = false;   // and then it waits again (mete requeue)
  std::string note = {};  // why, when nobody asked for it
  bool operator==(const JobStopping&) const = default;
};
// Its last process is gone, and its grant is free.
struct JobEnded {
  JobId id;
  Outcome outcome = Outcome::kOk;
  std::optional<Exit> exit;
  bool operator==(const JobEnded&) const = default;
};
// Its attempt has ended, its grant is free, and it waits again: for --retries, --requeue or mete
// requeue. Of an ended job: it waits once more.
struct JobRequeued {
  JobId id;
  Outcome outcome = Outcome::kLost;  // of the attempt
  std::optional<Exit> exit;
  std::optional<GpuRequest> gpu;       // asked for from now on
  std::optional<WallTime> not_before;  // so that what fails at once does not fail a thousand times
  bool operator==(const JobRequeued&) const = default;
};
// Nothing was launched under its grant, which is free: it waits again, in the same attempt.
struct JobUngranted {
  JobId id;
  std::string why = {};                     // the installation or the machine cannot launch it now
  std::optional<WallTime> not_before = {};  // with a reason: when to try again
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
// Somebody was told when it would start.
struct JobForecast {
  JobId id;
  Forecast forecast;
  bool operator==(const JobForecast&) const = default;
};
// A job gives its memory away: `state` is parking (it was told to) or parked (it has done so, or
// could not come back).
struct JobParked {
  JobId id;
  JobState state = JobState::kParking;
  ParkCause cause = ParkCause::kAsked;  // of parking
  std::optional<JobId> for_job = {};    // the same
  std::string by = {};                  // the same
  bool deep = false;                    // the same
  std::vector<Bytes> held = {};         // of parked, for each card: what stays there
  Bytes moved = {};                     // of parked
  std::string why = {};                 // of parked: why it could not come back
  bool lost = false;                    // of parked: and never can
  Bytes on_disk = {};                   // of parked: how much of what was moved
  bool operator==(const JobParked&) const = default;
};
// A job takes its memory back: `state` is parked (it may, when there is room), unparking (there is)
// or running (it has, or it was never parked, and why not).
struct JobUnparked {
  JobId id;
  JobState state = JobState::kRunning;
  std::string why = {};
  bool standing = false;  // it will not go the next time either
  bool operator==(const JobUnparked&) const = default;
};
// What a job with a growing share may have now, for each card of its grant; or that it is to give
// back what it does not use.
struct JobGrown {
  JobId id;
  std::vector<Bytes> bytes = {};
  bool asked = false;  // the latter
  bool operator==(const JobGrown&) const = default;
};
// A process of the job holds memory outside its meter: for the first time, or much more than was
// told.
struct EscapeSeen {
  JobId id;
  Escape escape;
  bool operator==(const EscapeSeen&) const = default;
};
// It has done nothing on its cards since then, and what was done about that.
struct JobIdle {
  JobId id;
  IdleSpan span;
  bool operator==(const JobIdle&) const = default;
};
// It works again, or it is no longer known that it does not.
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
  std::string user;  // "": everybody who has none of their own
  Quota quota;
  bool operator==(const QuotaSet&) const = default;
};
struct Reserved {
  Reservation reservation;
  bool operator==(const Reserved&) const = default;
};
// Taken back, or its time is over.
struct Unreserved {
  std::uint64_t id = 0;
  bool operator==(const Unreserved&) const = default;
};
// The machine was started: nothing of what ran before runs now.
struct Booted {
  std::string boot_id;
  bool operator==(const Booted&) const = default;
};
// Written by `mete daemon repair`: the events that followed are lost, and with them at most as many
// jobs. Their numbers are never given out again, since runners, logs and users may still know them.
struct Repaired {
  std::uint64_t lost_events = 0;
  std::uint64_t last_job = 0;  // the highest number of which anything was found
  bool operator==(const Repaired&) const = default;
};

using Happened =
    std::variant<JobSubmitted, JobGranted, JobStarted, JobStopping, JobEnded, JobRequeued,
                 JobUngranted, JobHeld, JobReleased, JobPriority, JobForecast, CardLost, CardBack,
                 CardDrained, CardUndrained, QuotaSet, Reserved, Unreserved, Booted, JobParked,
                 JobUnparked, JobGrown, EscapeSeen, JobIdle, JobActive, Repaired>;

struct Event {
  std::uint64_t seq = 0;  // without gaps, from 1
  WallTime at;
  Happened what;
  bool operator==(const Event&) const = default;
};

// By the index in Happened.
inline constexpr std::array<std::string_view, std::variant_size_v<Happened>> kEventTypes = {
    "job.submitted", "job.granted",   "job.started",     "job.stopping",   "job.ended",
    "job.requeued",  "job.ungranted", "job.held",        "job.released",   "job.priority",
    "job.forecast",  "card.lost",     "card.back",       "card.drained",   "card.undrained",
    "quota.set",     "card.reserved", "card.unreserved", "machine.booted", "job.parked",
    "job.unparked",  "job.grown",     "escape.seen",     "job.idle",       "job.active",
    "store.repaired"};
inline std::string_view type_of(const Happened& what) { return kEventTypes[what.index()]; }

}  // namespace mete::core
