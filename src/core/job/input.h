// SPDX-License-Identifier: Apache-2.0
// What the engine is told: requests of users, with the caller, and what became of processes and
// cards.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/job/job.h"
#include "core/order/quota.h"
#include "core/sweep/plan.h"
#include "core/sweep/trial.h"

namespace mete::core {

// The user who asks, as the socket reports it.
struct Caller {
  std::uint32_t uid = 0;
  bool admin = false;  // root, or in the administrators' group
  std::string user;
};

// A job of `mete run` (with its runner) is a child of its caller. A job of `mete submit`
// (spec.detached) is a child of a keeper. With an array: all its jobs.
struct Submit {
  JobSpec spec;
  std::optional<ProcessRef> runner;
  bool wait = true;   // false: refused (exhausted) unless the job can start at once
  bool admin = true;  // other users may not ask for a priority above 0
};
struct Started {
  JobId id;
  std::uint32_t by_uid = 0;
  ProcessRef program;
  std::uint64_t ago_ms = 0;
  std::optional<ProcessRef> runner = {};  // the keeper
};
// The runner reports, or the keeper's last message says, that every process of the job is gone.
struct Ended {
  JobId id;
  std::uint32_t by_uid = 0;
  Exit exit;
  // For a program that ended before its start was reported.
  std::optional<ProcessRef> program = {};
  std::uint64_t ago_ms = 0;
};
struct Cancel {
  JobId id;  // an array's number: all its jobs
  Caller by;
};
struct Hold {
  JobId id;
  Caller by;
};
struct Release {
  JobId id;
  Caller by;
};
// Runs the job again: at once if it has ended, otherwise after it was ended.
struct Requeue {
  JobId id;
  Caller by;
};
struct SetPriority {
  JobId id;
  Caller by;
  std::int32_t priority = 0;  // only administrators may set one above 0
};
struct Drain {
  std::string card;  // index, UUID or the beginning of a UUID
  Caller by;
  bool drain = true;  // false: undrain
};
struct SetQuota {
  std::string user;  // "": the default quota
  Quota quota;
  Caller by;
};
struct Reserve {
  std::string user;
  Request request;
  WallTime from;
  WallTime until;
  Caller by;
};
struct Unreserve {
  std::uint64_t id = 0;
  Caller by;
};
// The runner process is gone, with or without its program.
struct RunnerGone {
  JobId id;
};
// The keeper could not be started, or it never began the job under this grant.
struct NotLaunched {
  JobId id;
  std::string why;     // "": retry
  bool later = false;  // the installation or the machine is at fault: retry after a pause
};
// The last process of a job without a runner is gone.
struct JobGone {
  JobId id;
};
// The job runs beyond its --time and the grace period: its runner did not end it.
struct Overdue {
  JobId id;
};
// A user asked when the job would start, and got this answer.
struct Foretold {
  JobId id;
  Forecast forecast;
};
// Moves the job's memory to host memory until a user asks for it back.
struct ParkJob {
  JobId id;
  Caller by;
  bool deep = false;
};
// The job may come back as soon as there is room.
struct UnparkJob {
  JobId id;
  Caller by;
};
// The runner reports whether the job is parked or runs, whatever it was told to do.
struct ParkReport {
  JobId id;
  std::uint32_t by_uid = 0;
  bool parked = false;
  std::vector<Bytes> held = {};  // if parked: what stays on each card
  Bytes moved = {};              // if parked
  std::string why = {};          // why the order could not be carried out
  bool standing = false;         // if running: it cannot be parked in its present state
  bool wakes = false;            // if parked: its program wants to continue
  Bytes on_disk = {};            // if parked: the part of `moved` on disk
};
// A job with a growing share asks for more, or gives back: what it wants of each card in total.
struct Grow {
  JobId id;
  std::uint32_t by_uid = 0;
  std::vector<Bytes> wanted;
};
struct Idle {
  JobId id;
  WallTime since = {};
};
// The job works, or its readings have stopped.
struct Active {
  JobId id;
};
struct Escaped {
  JobId id;
  Escape escape;
  bool stop = false;  // certain, and the policy is to end such jobs
};
// A sweep is submitted. Its plan is checked (sweep::checked), and its job is as in Submit.
struct StartSweep {
  std::shared_ptr<const sweep::Plan> plan;
  bool admin = true;
};
// pause, resume, stop, extend and rm of `mete sweep`.
struct ChangeSweep {
  enum class Kind { kPause, kResume, kStop, kExtend, kRemove };
  std::uint64_t sweep = 0;  // number
  Kind kind = Kind::kPause;
  Caller by;
  std::uint64_t trials = 0;                // kExtend: added to its trials; 0: not given
  std::optional<sweep::Space> space = {};  // kExtend: instead of the old one
};
// The runner of a trial: what its program has reported.
struct TrialReport {
  JobId id;
  std::uint32_t by_uid = 0;
  std::vector<sweep::TrialPoint> points;
};
// The cards or the memory that others hold there changed, or time has passed.
struct Look {};

using Input = std::variant<Submit, Started, Ended, Cancel, Hold, Release, Requeue, SetPriority,
                           Drain, SetQuota, Reserve, Unreserve, RunnerGone, NotLaunched, JobGone,
                           Overdue, Foretold, ParkJob, UnparkJob, ParkReport, Grow, Idle, Active,
                           Escaped, StartSweep, ChangeSweep, TrialReport, Look>;

}  // namespace mete::core
