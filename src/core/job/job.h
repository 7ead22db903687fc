// SPDX-License-Identifier: Apache-2.0
// A job: its number, its states, what it asked for, how it ended. Values and their names in
// documents; no decision is made here.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "core/job/array.h"
#include "core/job/notify.h"
#include "core/request/resolve.h"
#include "core/sweep/trial.h"

namespace mete::core {

// For an array: the number names all its jobs, number and element name one of them.
struct JobId {
  std::uint64_t number = 0;
  std::optional<std::uint32_t> element = {};
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 of a comparison for a pointer
  constexpr auto operator<=>(const JobId&) const = default;
};
std::string to_string(JobId id);  // "12", "12_3"
Result<JobId> parse_job_id(std::string_view text);

// All states; may_follow() has the allowed changes.
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
  kEscaped,
  kUnknown  // `run --exec`: the job had no parent process of mete
};
inline constexpr int kOutcomes = static_cast<int>(Outcome::kUnknown) + 1;
std::string_view to_string(Outcome outcome);
std::optional<Outcome> parse_outcome(std::string_view text);

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

// A process: a pid and its start time, unique until the machine reboots.
struct ProcessRef {
  std::int32_t pid = 0;
  std::uint64_t start_ticks = 0;
  bool operator==(const ProcessRef&) const = default;
};
// "412.98765". A job has its runner's text in its environment, as METE_JOB_TOKEN: with the number
// of the job it identifies the job's processes, even after the runner is gone.
std::string to_string(const ProcessRef& process);

// What must have become of another job before a job may start.
enum class When { kOk, kAny, kFail };
std::string_view to_string(When when);  // "ok", "any", "fail"
std::optional<When> parse_when(std::string_view text);
struct After {
  JobId id;  // an array's number: all its jobs
  When when = When::kOk;
  bool operator==(const After&) const = default;
};

// A limit of setrlimit(2), by its number.
struct ResourceLimit {
  std::int32_t resource = 0;
  std::uint64_t soft = 0;
  std::uint64_t hard = 0;
  bool operator==(const ResourceLimit&) const = default;
};

// What a job needs to run without its submitter. Contents (blobs) are in the store, by hash.
struct Detached {
  std::string environment;  // blob: "NAME=VALUE" lines, each ended by NUL
  std::string script;       // blob of the script that is the command's first word; "": none
  std::uint64_t environment_bytes = 0;  // of the two blobs; 0: unknown, in an old log
  std::uint64_t script_bytes = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> groups;
  std::uint32_t umask = 0;
  std::vector<ResourceLimit> limits;
  std::string log;  // absolute path with its %-patterns; "": in the state folder
  std::string err;  // absolute path with its %-patterns; "": the log
  bool tty = false;
  bool visible_by_index = false;
  bool operator==(const Detached&) const = default;
};

inline constexpr std::int32_t kMaxPriority = 1000;  // and -1000 is the lowest

struct JobSpec {
  std::string name;  // --name; otherwise the program's name
  std::uint32_t uid = 0;
  std::string user;
  Request request;
  std::vector<std::string> command;
  // For a long command: the blob that has all its words, each ended by NUL; `command` is then a
  // prefix for lists. "": `command` is complete.
  std::string command_content;
  std::uint64_t command_bytes = 0;  // size of the blob
  std::string folder;
  std::optional<std::uint64_t> time_s;  // --time
  std::int32_t priority = 0;
  std::vector<After> after;
  std::optional<Array> array;
  std::uint32_t retries = 0;                   // --retries: after a failure
  std::optional<std::uint32_t> retry_gpu_pct;  // --retry-gpu x1.5: 150; after gpu-oom, with more
  bool requeue = false;                        // start again after a reboot or a lost keeper
  bool held = false;                           // --hold
  // --preemptible: the job may be parked to make room for others. Absent: the daemon's default;
  // always present in a recorded submission.
  std::optional<bool> preemptible;
  // --idle: parked after this long without work on its cards, and brought back at its next call; 0:
  // never. Absent: the daemon's default (park.idle_s).
  std::optional<std::uint64_t> idle_s;
  bool no_preempt = false;  // --no-preempt: no job is parked for it
  bool shed = false;        // --shed: it stops growing instead of being parked
  std::optional<WallTime> begin;
  std::optional<WallTime> deadline;
  std::map<std::string, std::string> labels;
  NotifySpec notify;  // --notify, --notify-on
  // The client's name for the request: a second request of the user with an equal key is the same
  // job. "": none.
  std::string key;
  std::optional<Detached> detached;          // absent: `mete run`, whose runner is the job's parent
  std::optional<sweep::TrialOf> trial = {};  // it is a trial of a sweep
  bool operator==(const JobSpec&) const = default;
};

// The job is started such that its memory can be taken away and given back while it runs.
bool is_parkable(const JobSpec& spec);
// The job asked to be parked when it is idle (--idle 10m).
bool parks_itself(const JobSpec& spec);

// A spec never changes, and all jobs of an array have the same one: shared, compared by value.
class SharedSpec {
 public:
  SharedSpec() : spec_(empty()) {}
  // NOLINTNEXTLINE(google-explicit-constructor): a spec is one, shared or not
  SharedSpec(JobSpec spec) : spec_(std::make_shared<const JobSpec>(std::move(spec))) {}
  const JobSpec& operator*() const { return *spec_; }
  const JobSpec* operator->() const { return spec_.get(); }
  bool operator==(const SharedSpec& other) const {
    return spec_ == other.spec_ || *spec_ == *other.spec_;
  }

 private:
  // Shared by all: lists are made of jobs whose spec comes later.
  static const std::shared_ptr<const JobSpec>& empty() {
    static const std::shared_ptr<const JobSpec> kEmpty = std::make_shared<const JobSpec>();
    return kEmpty;
  }

  std::shared_ptr<const JobSpec> spec_;
};

// What a job holds on a card, from `starting` until its last process is gone.
struct GrantedCard {
  std::uint32_t index = 0;
  std::string uuid;
  Bytes bytes;         // reserved
  bool whole = false;  // no other job may have a share of this card
  // For a growing share: its minimum and its maximum; `bytes` is between them.
  Bytes least = {};
  Bytes most = {};
  bool operator==(const GrantedCard&) const = default;
};

// How a program ended, as its parent saw it.
struct Exit {
  std::optional<int> code;    // absent after a signal
  std::optional<int> signal;  // absent after an exit
  bool not_started = false;   // the program could not be run
  bool not_now = false;       // not_started is the fault of the installation or the machine: retry
  bool timed_out = false;
  bool gpu_oom = false;      // its cap refused it memory, and it failed
  bool ram_oom = false;      // the kernel killed a process at the limit of --ram, and it failed
  std::vector<Bytes> peaks;  // for each granted card
  std::optional<std::uint64_t> ran_ms;      // by a monotonic clock
  std::optional<Bytes> log_bytes;           // size of its logs on disk
  std::vector<sweep::Metric> metrics = {};  // of a trial: the last values that it reported
  std::optional<std::uint64_t> step = {};   // of a trial: the highest that it reported
  std::string note;  // one line for its user: why it could not start, memory outside its meter
  bool operator==(const Exit&) const = default;
};

// Why a granted job could not be launched, and how many times in a row.
struct PutOff {
  std::string why;
  std::uint32_t times = 1;
  bool operator==(const PutOff&) const = default;
};

// An earlier attempt of a job that has not ended.
struct Attempt {
  std::uint32_t number = 1;
  std::optional<WallTime> started;
  WallTime ended;
  Outcome outcome = Outcome::kLost;
  std::optional<Exit> exit;
  bool operator==(const Attempt&) const = default;
};
inline constexpr std::size_t kAttemptsKept = 16;  // the last ones

// When a pending job is expected to start: at about `at`, and by `by` with a probability of 80 %.
struct Forecast {
  WallTime made;
  WallTime at;
  WallTime by;
  bool operator==(const Forecast&) const = default;
};
inline constexpr unsigned kForecastPct = 80;

// A job is parked because a user asked, another job needs the room, or it is idle.
enum class ParkCause { kAsked, kPreempted, kIdle };
std::string_view to_string(ParkCause cause);  // "asked", "preempted", "idle"
std::optional<ParkCause> parse_park_cause(std::string_view text);

// A job that is parked, on its way there, or on its way back.
struct Park {
  ParkCause cause = ParkCause::kAsked;
  std::optional<JobId> for_job;  // the job that needs the room
  std::string by;                // the user who asked
  bool deep = false;             // its contexts are moved too
  bool wants_back = false;       // returns as soon as there is room
  WallTime since;                // of its present state
  std::vector<Bytes> held;       // while parked: what stays on each card of its grant
  Bytes moved;                   // while parked: what is kept in host memory and on disk
  Bytes on_disk;                 // the part of `moved` on disk
  std::string why;               // why it could not come back
  bool lost = false;             // it can never come back: its memory is lost
  bool operator==(const Park&) const = default;
};

// How long moving `bytes` to host memory, or back, takes.
std::uint64_t move_ms(Bytes bytes);

struct ParkRefusal {
  WallTime at;
  std::string why;
  bool standing = false;  // it still cannot
  bool operator==(const ParkRefusal&) const = default;
};

// What a growing share has above its minimum: some of it may be unused; the job was asked to give
// the unused part back; all of it is used.
enum class Growth { kFree, kAsked, kTight };
std::string_view to_string(Growth growth);
std::optional<Growth> parse_growth(std::string_view text);

// A process of a job that holds memory of a card outside its meter, as last reported.
struct Escape {
  std::int32_t pid = 0;
  std::uint64_t start_ticks = 0;
  std::string card;  // UUID
  std::uint32_t index = 0;
  Bytes bytes;          // outside its meter
  Bytes charged;        // inside, as far as that is known
  std::string command;  // "python": the name of the process
  bool operator==(const Escape&) const = default;
};
// "process 412 (python) holds 3.1 GiB of card 0 outside its meter"
std::string to_string(const Escape& escape);
inline constexpr std::size_t kEscapesKept = 16;  // per job, the latest

// What was done so far about an idle job.
enum class IdleStep { kSeen, kWarned, kNotified };
std::string_view to_string(IdleStep step);  // "seen", "warned", "notified"
std::optional<IdleStep> parse_idle_step(std::string_view text);
struct IdleSpan {
  WallTime since;
  IdleStep step = IdleStep::kSeen;
  bool operator==(const IdleSpan&) const = default;
};

// A remark about a job, besides its state.
struct Remark {
  std::string said;  // why it was ended, or its memory outside its meter
  struct Idle {
    WallTime since;
    std::optional<WallTime> until = {};  // when that has a consequence
    bool parks = false;                  // the consequence: it is parked, otherwise it is ended
    bool operator==(const Idle&) const = default;
  };
  std::optional<Idle> idle = {};
  bool empty() const { return said.empty() && !idle; }
  bool operator==(const Remark&) const = default;
};

struct Job {
  JobId id;
  SharedSpec spec;
  JobState state = JobState::kPending;
  std::uint32_t attempt = 1;
  std::int32_t priority = 0;  // the present one; the spec has the requested one
  bool held = false;
  WallTime submitted;
  std::optional<WallTime> started;  // in this attempt
  std::optional<WallTime> ended;
  std::optional<WallTime> not_before;  // the pause before a retry
  std::optional<PutOff> put_off;       // until it starts
  std::uint32_t failures = 0;          // attempts that count against --retries
  std::vector<After> unmet;            // the dependencies of spec.after that are not met yet
  std::optional<Outcome> outcome;
  std::optional<Exit> exit;
  std::optional<GpuRequest> gpu;      // the larger request of --retry-gpu, instead of the spec's
  std::vector<GrantedCard> grant;     // what it holds or held; empty without a GPU
  std::optional<ProcessRef> runner;   // its parent: a `mete run` or a keeper
  std::optional<ProcessRef> program;  // once it runs
  std::vector<Attempt> attempts;      // the earlier ones
  std::optional<Forecast> forecast;   // the first that a user was told, until it starts
  bool requeue = false;               // while it is being ended: it waits again afterwards
  std::optional<Park> park;           // from `parking` until it runs again
  std::uint64_t parked_ms = 0;        // in this attempt, before the present park
  std::optional<WallTime> resumed;    // when it last came back
  std::vector<Bytes> stayed;          // on each card, when it was last parked
  std::optional<ParkRefusal> unparkable;
  Growth growth = Growth::kFree;  // for a growing share
  std::vector<Escape> escapes;    // seen in this attempt
  std::optional<IdleSpan> idle;   // while it is idle
  std::string stopped;            // why it is being ended, or was, unless a user asked for it
  bool operator==(const Job&) const = default;
};

// The runner has become the program (`run --exec`).
bool is_its_own_runner(const Job& job);

bool has_grown(const Job& job);

Request request_of(const Job& job);
// The job's memory is not on its cards: it is parked, perhaps while it is being ended.
bool is_away(const Job& job);
// The job was told to leave its cards, or to give back what it has grown by, and has not done so.
bool is_being_parked(const Job& job);
// What the job holds of the cards now: what stays there, if it is parked.
std::vector<GrantedCard> held_now(const Job& job);
// How long the job has been parked in this attempt.
std::uint64_t parked_ms(const Job& job, WallTime now);

}  // namespace mete::core
