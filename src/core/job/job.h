// SPDX-License-Identifier: Apache-2.0
// A job as everybody speaks of it: its number, its states, what it asked for, how it ended. Values
// and their names in documents; no decision is made here.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "core/request/resolve.h"

namespace mete::core {

struct JobId {
  std::uint64_t number = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 of a comparison for a pointer
  constexpr auto operator<=>(const JobId&) const = default;
};
std::string to_string(JobId id);  // "12"
Result<JobId> parse_job_id(std::string_view text);

// The closed list; which may follow which is may_follow().
enum class JobState {
  kPending,
  kStarting,
  kRunning,
  kParking,
  kParked,
  kUnparking,
  kStopping,
  kEnded
};
std::string_view to_string(JobState state);
std::optional<JobState> parse_job_state(std::string_view text);
bool may_follow(JobState before, JobState after);

enum class Outcome {
  kOk,
  kFailed,
  kSignal,
  kGpuOom,
  kRamOom,
  kTimeout,
  kCancelled,
  kLost,
  kLaunchFailed,
  kDependency,
  kDeadline,
  kEscaped
};
std::string_view to_string(Outcome outcome);
std::optional<Outcome> parse_outcome(std::string_view text);

// Why a job is pending.
enum class Reason {
  kResources,
  kPriority,
  kQuota,
  kReservation,
  kDependency,
  kHeld,
  kBegin,
  kDrained,
  kRetry
};
std::string_view to_string(Reason reason);

// One life of a pid: names one process until the machine reboots.
struct ProcessRef {
  std::int32_t pid = 0;
  std::uint64_t start_ticks = 0;
  bool operator==(const ProcessRef&) const = default;
};
// "412.98765". That of its runner is in the environment of a job as METE_JOB_TOKEN: with the number
// of the job it tells its processes from those of all others, also once the runner is gone.
std::string to_string(const ProcessRef& process);

struct JobSpec {
  std::string name;  // the program's, unless --name
  std::uint32_t uid = 0;
  std::string user;
  Request request;
  std::vector<std::string> command;
  std::string folder;
  std::optional<std::uint64_t> time_s;  // --time
  bool operator==(const JobSpec&) const = default;
};

// What a job holds on one card, from `starting` until its last process is gone.
struct GrantedCard {
  std::uint32_t index = 0;
  std::string uuid;
  Bytes bytes;         // reserved
  bool whole = false;  // nobody else may have a share of this card
  bool operator==(const GrantedCard&) const = default;
};

// How a program ended, as its parent saw it.
struct Exit {
  std::optional<int> code;    // absent after a signal
  std::optional<int> signal;  // absent after an exit
  bool not_started = false;   // the program could not be run at all
  bool timed_out = false;
  bool gpu_oom = false;      // its cap refused it memory, and it failed
  bool ram_oom = false;      // the kernel ended a process at the limit of --ram, and it failed
  std::vector<Bytes> peaks;  // for each granted card
  bool operator==(const Exit&) const = default;
};

struct Job {
  JobId id;
  JobSpec spec;
  JobState state = JobState::kPending;
  std::uint32_t attempt = 1;
  WallTime submitted;
  std::optional<WallTime> started;
  std::optional<WallTime> ended;
  std::optional<Outcome> outcome;
  std::optional<Exit> exit;
  std::vector<GrantedCard> grant;     // what it holds, or held; empty without a GPU
  std::optional<ProcessRef> runner;   // the `mete run` that is its parent
  std::optional<ProcessRef> program;  // once it runs
  bool operator==(const Job&) const = default;
};

}  // namespace mete::core
