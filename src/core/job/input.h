// SPDX-License-Identifier: Apache-2.0
// What arrives at the engine and may change what is decided: requests of people (with who asks),
// and what became of processes and cards.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "core/job/job.h"
#include "core/order/quota.h"

namespace mete::core {

// Who asks, as the socket says.
struct Caller {
  std::uint32_t uid = 0;
  bool admin = false;  // root, or of the group that may
  std::string user;
};

// `mete run` (with its runner): the job is its caller's child, once it may start. `mete submit`
// (spec.detached): it is a keeper's. With an array: all of it.
struct Submit {
  JobSpec spec;
  std::optional<ProcessRef> runner;
  bool wait = true;   // false: refused (exhausted) unless it can start at once
  bool admin = true;  // others may not ask for a priority above 0
};
// The runner or keeper has started the program.
struct Started {
  JobId id;
  std::uint32_t by_uid = 0;
  ProcessRef program;
  std::uint64_t ago_ms = 0;
  std::optional<ProcessRef> runner = {};  // a keeper
};
// The runner says, or the keeper has left word, that every process of the job is gone.
struct Ended {
  JobId id;
  std::uint32_t by_uid = 0;
  Exit exit;
  // For a program that ended before its start was told.
  std::optional<ProcessRef> program = {};
  std::uint64_t ago_ms = 0;
};
struct Cancel {
  JobId id;  // of an array: all of it
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
// Runs again: now if it has ended, after it was ended if it runs.
struct Requeue {
  JobId id;
  Caller by;
};
struct SetPriority {
  JobId id;
  Caller by;
  std::int32_t priority = 0;  // above 0: an admin's to give
};
struct Drain {
  std::string card;  // index, UUID or the beginning of one
  Caller by;
  bool drain = true;  // false: undrain
};
struct SetQuota {
  std::string user;  // "": everybody's default
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
// The runner itself is gone, with or without its program.
struct RunnerGone {
  JobId id;
};
// The keeper could not be started, or its job was never begun under this grant.
struct NotLaunched {
  JobId id;
  std::string why;  // "": try again
  bool later =
      false;  // with a reason: the installation or the machine is at fault; try again later
};
// The last process of a job that nobody waited for is gone.
struct JobGone {
  JobId id;
};
// It runs for longer than its --time and what comes after that: whoever should have ended it does
// not.
struct Overdue {
  JobId id;
};
// Somebody asked when the job would start, and was told so.
struct Foretold {
  JobId id;
  Forecast forecast;
};
// Its memory shall go to host memory, until somebody asks for it back.
struct ParkJob {
  JobId id;
  Caller by;
  bool deep = false;
};
// It may come back as soon as there is room.
struct UnparkJob {
  JobId id;
  Caller by;
};
// Its runner says how it stands: parked or running, whatever it was told to do.
struct ParkReport {
  JobId id;
  std::uint32_t by_uid = 0;
  bool parked = false;
  std::vector<Bytes> held = {};  // parked: on each card
  Bytes moved = {};              // parked
  std::string why = {};          // what was asked for could not be done
  bool standing = false;         // runs: and cannot be, as long as it is as it is
  bool wakes = false;            // parked: its program wants to go on
  Bytes on_disk = {};            // parked: of what was moved
};
// Of a job with a growing share: what it would like to have of each card in all, or no longer
// needs.
struct Grow {
  JobId id;
  std::uint32_t by_uid = 0;
  std::vector<Bytes> wanted;
};
// It has done nothing on its cards since then.
struct Idle {
  JobId id;
  WallTime since = {};
};
// It does something, or that it does nothing is no longer known.
struct Active {
  JobId id;
};
// A process of the job was seen to hold memory outside its meter.
struct Escaped {
  JobId id;
  Escape escape;
  bool stop = false;  // beyond doubt, and the policy is to end such jobs
};
// The cards or what others hold there have changed, or time has passed.
struct Look {};

using Input =
    std::variant<Submit, Started, Ended, Cancel, Hold, Release, Requeue, SetPriority, Drain,
                 SetQuota, Reserve, Unreserve, RunnerGone, NotLaunched, JobGone, Overdue, Foretold,
                 ParkJob, UnparkJob, ParkReport, Grow, Idle, Active, Escaped, Look>;

}  // namespace mete::core
