// SPDX-License-Identifier: Apache-2.0
// A job as everybody speaks of it: its number, its states, what it asked for, how it ended. Values
// and their names in documents; no decision is made here.
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

namespace mete::core {

// Of an array the number names the whole of it, and number and element one of its jobs.
struct JobId {
  std::uint64_t number = 0;
  std::optional<std::uint32_t> element = {};
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 of a comparison for a pointer
  constexpr auto operator<=>(const JobId&) const = default;
};
std::string to_string(JobId id);  // "12", "12_3"
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
  kEscaped,
  kUnknown  // `run --exec`: no process of ours was its parent
};
inline constexpr int kOutcomes = static_cast<int>(Outcome::kUnknown) + 1;
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

// What must have become of another job before this one may start.
enum class When { kOk, kAny, kFail };
std::string_view to_string(When when);  // "ok", "any", "fail"
std::optional<When> parse_when(std::string_view text);
struct After {
  JobId id;  // an array's number: all of its jobs
  When when = When::kOk;
  bool operator==(const After&) const = default;
};

// One of the limits of setrlimit(2), by its number.
struct ResourceLimit {
  std::int32_t resource = 0;
  std::uint64_t soft = 0;
  std::uint64_t hard = 0;
  bool operator==(const ResourceLimit&) const = default;
};

// What a job needs that runs without its submitter: what a `mete run` simply has. Contents (blobs)
// are in the store, under their hash.
struct Detached {
  std::string environment;  // blob: "NAME=VALUE" lines, each ended by NUL
  std::string script;       // blob of the script that is the command's first word; "": a program
  std::uint64_t environment_bytes = 0;  // sizes of the two; 0: not known, of a log of before
  std::uint64_t script_bytes = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> groups;
  std::uint32_t umask = 0;
  std::vector<ResourceLimit> limits;
  std::string log;  // an absolute path, %-patterns not yet filled in; "": in the state folder
  std::string err;  // the same; "": into the log
  bool tty = false;
  bool visible_by_index = false;
  bool operator==(const Detached&) const = default;
};

inline constexpr std::int32_t kMaxPriority = 1000;  // and the least is -1000

struct JobSpec {
  std::string name;  // the program's, unless --name
  std::uint32_t uid = 0;
  std::string user;
  Request request;
  std::vector<std::string> command;
  // Of a long command: all of it is a blob, its words, each ended by NUL, and `command` a beginning
  // for lists. "": `command` is all of it.
  std::string command_content;
  std::uint64_t command_bytes = 0;  // of the blob
  std::string folder;
  std::optional<std::uint64_t> time_s;  // --time
  std::int32_t priority = 0;
  std::vector<After> after;
  std::optional<Array> array;
  std::uint32_t retries = 0;                   // --retries: after a failure
  std::optional<std::uint32_t> retry_gpu_pct;  // --retry-gpu x1.5: 150; after gpu-oom, with more
  bool requeue = false;                        // start again what a reboot or a lost keeper ended
  bool held = false;                           // --hold
  // --preemptible: it may be parked to make room for others. Absent: as the daemon's configuration
  // says; never absent in what is recorded as submitted.
  std::optional<bool> preemptible;
  bool no_preempt = false;  // --no-preempt: nobody is parked for it
  bool shed = false;        // --shed: what it has grown to is not taken back by parking it
  std::optional<WallTime> begin;
  std::optional<WallTime> deadline;
  std::map<std::string, std::string> labels;
  NotifySpec notify;  // --notify, --notify-on
  // What its client calls it: a request of this user with an equal key is this job, asked for
  // again. "": it has none.
  std::string key;
  std::optional<Detached> detached;  // absent: `mete run`, whose runner is the job's parent
  bool operator==(const JobSpec&) const = default;
};

// Its memory can be taken from it and given back while it runs: its processes are started so.
bool is_parkable(const JobSpec& spec);

// A spec is never changed, and all jobs of an array have the same: shared, compared by value.
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
  // One for all: lists are made of jobs whose spec comes later.
  static const std::shared_ptr<const JobSpec>& empty() {
    static const std::shared_ptr<const JobSpec> kEmpty = std::make_shared<const JobSpec>();
    return kEmpty;
  }

  std::shared_ptr<const JobSpec> spec_;
};

// What a job holds on one card, from `starting` until its last process is gone.
struct GrantedCard {
  std::uint32_t index = 0;
  std::string uuid;
  Bytes bytes;         // reserved
  bool whole = false;  // nobody else may have a share of this card
  // Of a share that may grow: what it always has, and what it may have at most; bytes is between.
  Bytes least = {};
  Bytes most = {};
  bool operator==(const GrantedCard&) const = default;
};

// How a program ended, as its parent saw it.
struct Exit {
  std::optional<int> code;    // absent after a signal
  std::optional<int> signal;  // absent after an exit
  bool not_started = false;   // the program could not be run at all
  bool not_now = false;       // and that is the installation's or the machine's fault: try again
  bool timed_out = false;
  bool gpu_oom = false;      // its cap refused it memory, and it failed
  bool ram_oom = false;      // the kernel ended a process at the limit of --ram, and it failed
  std::vector<Bytes> peaks;  // for each granted card
  std::optional<std::uint64_t> ran_ms;  // by a clock that nobody sets
  std::optional<Bytes> log_bytes;       // what its logs take on the disk
  std::string note;  // one line for its user: why it could not start, what it did beside its cap
  bool operator==(const Exit&) const = default;
};

// Why a job that had its turn could not be launched, and how many times that happened in a row.
struct PutOff {
  std::string why;
  std::uint32_t times = 1;
  bool operator==(const PutOff&) const = default;
};

// One of the lives of a job that is over while the job is not.
struct Attempt {
  std::uint32_t number = 1;
  std::optional<WallTime> started;
  WallTime ended;
  Outcome outcome = Outcome::kLost;
  std::optional<Exit> exit;
  bool operator==(const Attempt&) const = default;
};
inline constexpr std::size_t kAttemptsKept = 16;  // the last ones

// When a pending job is believed to start: at about `at`, by `by` with a probability of 80 %.
struct Forecast {
  WallTime made;
  WallTime at;
  WallTime by;
  bool operator==(const Forecast&) const = default;
};
inline constexpr unsigned kForecastPct = 80;

// Why a job is parked: somebody asked for it, another job needs the room, it did nothing.
enum class ParkCause { kAsked, kPreempted, kIdle };
std::string_view to_string(ParkCause cause);  // "asked", "preempted", "idle"
std::optional<ParkCause> parse_park_cause(std::string_view text);

// How a job stands that is parked, on its way there or back.
struct Park {
  ParkCause cause = ParkCause::kAsked;
  std::optional<JobId> for_job;  // that needs the room
  std::string by;                // who asked
  bool deep = false;             // its contexts too
  bool wants_back = false;       // returns as soon as there is room
  WallTime since;                // of its present state
  std::vector<Bytes> held;       // while away, for each card of its grant: what stays there
  Bytes moved;                   // while away: what is kept for it in host memory and on disk
  Bytes on_disk;                 // of that
  std::string why;               // it could not come back
  bool lost = false;             // and never can: what was kept for it is gone
  bool operator==(const Park&) const = default;
};

// How long so much takes to go to host memory, or to come back.
std::uint64_t move_ms(Bytes bytes);

// What stood in the way of parking it.
struct ParkRefusal {
  WallTime at;
  std::string why;
  bool standing = false;  // and still does
  bool operator==(const ParkRefusal&) const = default;
};

// How it stands with what a growing share has beyond its least: it may have some that it does not
// use; it was asked to give that back; it uses all of it.
enum class Growth { kFree, kAsked, kTight };
std::string_view to_string(Growth growth);
std::optional<Growth> parse_growth(std::string_view text);

// A process of a job that holds memory of a card outside its meter, as it was last told.
struct Escape {
  std::int32_t pid = 0;
  std::uint64_t start_ticks = 0;
  std::string card;  // UUID
  std::uint32_t index = 0;
  Bytes bytes;          // outside
  Bytes charged;        // inside, as far as that can be believed
  std::string command;  // "python"; as the process calls itself
  bool operator==(const Escape&) const = default;
};
// "process 412 (python) holds 3.1 GiB of card 0 outside its meter"
std::string to_string(const Escape& escape);
inline constexpr std::size_t kEscapesKept = 16;  // of a job, the last ones

// What was done so far about a job that does nothing on its cards.
enum class IdleStep { kSeen, kWarned, kNotified };
std::string_view to_string(IdleStep step);  // "seen", "warned", "notified"
std::optional<IdleStep> parse_idle_step(std::string_view text);
struct IdleSpan {
  WallTime since;
  IdleStep step = IdleStep::kSeen;
  bool operator==(const IdleSpan&) const = default;
};

// What is to be said of a job besides its state.
struct Remark {
  std::string said;  // why it was ended, or its memory outside its meter
  struct Idle {
    WallTime since;
    std::optional<WallTime> until = {};  // when that has a consequence
    bool parks = false;                  // it is parked then; else it is ended
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
  std::int32_t priority = 0;  // as it is now; the spec has what was asked for
  bool held = false;
  WallTime submitted;
  std::optional<WallTime> started;  // this attempt
  std::optional<WallTime> ended;
  std::optional<WallTime> not_before;  // a retry that waits a little
  std::optional<PutOff> put_off;       // until it starts
  std::uint32_t failures = 0;          // attempts that count against --retries
  std::vector<After> unmet;            // of spec.after, what has not come yet
  std::optional<Outcome> outcome;
  std::optional<Exit> exit;
  std::optional<GpuRequest> gpu;      // what is asked for instead, after --retry-gpu
  std::vector<GrantedCard> grant;     // what it holds, or held; empty without a GPU
  std::optional<ProcessRef> runner;   // its parent: a `mete run` or a keeper
  std::optional<ProcessRef> program;  // once it runs
  std::vector<Attempt> attempts;      // those before this one
  std::optional<Forecast> forecast;   // the first that anybody was told, until it starts
  bool requeue = false;               // while it is being ended: then it waits again
  std::optional<Park> park;           // from `parking` until it runs again
  std::uint64_t parked_ms = 0;        // of this attempt, up to the present park
  std::optional<WallTime> resumed;    // when it last came back
  std::vector<Bytes> stayed;          // on each card, when it was last parked
  std::optional<ParkRefusal> unparkable;
  Growth growth = Growth::kFree;  // of a growing share
  std::vector<Escape> escapes;    // seen in this attempt
  std::optional<IdleSpan> idle;   // while that is known
  std::string stopped;            // why it is being ended, or was, when nobody asked for it
  bool operator==(const Job&) const = default;
};

// Its runner has become the program (`run --exec`).
bool is_its_own_runner(const Job& job);

// It has more than its least on some card.
bool has_grown(const Job& job);

// What it asks for in this attempt.
Request request_of(const Job& job);
// Its memory is not on its cards: it is parked, also while it is being ended.
bool is_away(const Job& job);
// It was told to leave its cards, or to give back what it has grown by, and has not done so yet.
bool is_being_parked(const Job& job);
// What it holds of the cards now: of a parked job only what stays there.
std::vector<GrantedCard> held_now(const Job& job);
// For how long it has been parked in this attempt.
std::uint64_t parked_ms(const Job& job, WallTime now);

}  // namespace mete::core
