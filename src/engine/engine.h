// SPDX-License-Identifier: Apache-2.0
// Joins the decisions (core) to the world (seams): decide, record, act. One turn takes a batch of
// inputs; nothing is answered, started or ended before everything that the batch decided is on
// disk, with one sync. A restart is: load, replay, act on what is wanted. No thread, no main(), so
// that tests and the simulator run all of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/explain/explain.h"
#include "core/explain/forecast.h"
#include "core/job/input.h"
#include "core/job/state.h"
#include "core/place/place.h"
#include "engine/health.h"
#include "seam/clock.h"
#include "seam/launcher.h"
#include "seam/store.h"

namespace mete::engine {

// A request that waits for an answer, which carries the same ticket. 0: no answer is wanted.
struct Asked {
  std::uint64_t ticket = 0;
  core::Input input;
  // Contents that the input refers to by hash: stored with its events, or not at all.
  std::vector<std::pair<std::string, std::string>> blobs = {};
};
struct Answer {
  std::uint64_t ticket = 0;
  // The job of the request (a new one after Submit), in its state after the turn.
  Result<core::JobId> result;
  std::vector<core::JobId> changed = {};  // jobs, by this input
};

struct Options {
  core::Policy policy = core::Policy::kBestFit;
  std::uint64_t snapshot_every = 1000;  // events
  core::Rules rules = {};
  std::string boot_id;  // of the machine, in this boot; "": unknown
};

// The runner of a job ends it when its --time is over. After the grace period and this time the
// engine does: the keeper may have been stopped, by the job itself.
inline constexpr seam::Milliseconds kLimitPatience{30'000};
// A `mete run` ends its job on request. After the grace period and this time the engine does: the
// runner may be stopped (Ctrl-Z), or not react.
inline constexpr seam::Milliseconds kStopPatience{10'000};
// For a job that was granted, and never reported as started.
inline constexpr seam::Milliseconds kStartPatience{120'000};

// Inputs that can be refused while the disk is full: they add work, or change what can stay as it
// is. Inputs that end jobs, or report their end, are never refused.
bool can_wait(const core::Input& input);

class Engine {
 public:
  Engine(seam::Clock& clock, seam::Store& store, seam::Launcher& launcher, Options options);

  // Loads what was recorded. Once, before everything else. Errors: the store's, corrupt.
  Result<void> load();
  // Loads, if that was not done, and begins to act on it: runners are watched, keepers found again,
  // jobs that were being ended are ended.
  Result<void> recover();

  // The current machine: cards, and foreign memory on them. Our own grants are added here. `peaks`:
  // what jobs have used so far of their fullest card. Takes effect in the next turn.
  void see(core::Pool machine, std::map<core::JobId, Bytes> peaks = {});

  // Other rules from now on: the next turn follows them. The state is recorded with the next event,
  // since a replay under the new rules may differ (how many ended jobs are kept).
  void set_rules(core::Policy policy, const core::Rules& rules);

  // One turn. On a full disk inputs that only add work are refused, before the room is touched that
  // was set aside for ends and cancels; if that is used up too, nothing is answered: the events
  // stay queued, and the answers come from the turn in which they could be recorded. Other store
  // errors are fatal: the caller ends, and the next start replays.
  Result<std::vector<Answer>> turn(std::vector<Asked> inputs);

  const core::State& state() const { return state_; }
  const core::Pool& machine() const { return machine_; }
  core::Pool pool() const { return state_.with_grants(machine_); }
  core::Policy policy() const { return options_.policy; }
  core::Moment moment() const { return {machine_, options_.policy, now_, true, 0, &peaks_}; }
  // Why a pending job waits; empty for others. As of the last turn; found when it is asked for.
  core::SharedWait wait_of(core::JobId id);
  // The queue as of the last turn, or a second before: the progress of running jobs changes the
  // forecasts of waiting ones.
  core::Sight& sight();
  // The next turn should not wait for an input.
  bool again() const { return again_ || sweeps_wait_; }
  // Why a job waits, and the forecast of its start. Takes milliseconds.
  core::Explanation explain(const core::Job& job) {
    return core::explain(state_, moment(), sight(), job);
  }
  // What would become of such a job; nothing changes.
  Result<core::Trial> try_out(const core::Submit& submit);
  std::optional<core::Forecast> forecast(core::JobId id) {
    return core::forecast(state_, sight(), id);
  }
  // When a turn is due without an input; nullopt: never.
  std::optional<WallTime> next_change() const;
  // Grows whenever a job, a grant or a wait may have changed.
  std::uint64_t version() const { return version_; }
  bool disk_full() const { return full_ || short_; }
  const Health& health() const { return health_; }
  // Everything in state() is on disk. False only after a turn that found the disk full and no
  // ballast: the state must not be published then, since a crash would undo it.
  bool settled() const { return !uncommitted_; }

  // The events on disk after this number, as in seam::Store::load_events.
  Result<std::vector<seam::StoredEvent>> events(std::uint64_t after, std::size_t limit) {
    return store_.load_events(after, limit);
  }
  Result<std::string> blob(const std::string& hash) { return store_.load_blob(hash); }

  // Records a snapshot now, so that the next start is quick.
  Result<void> save();

 private:
  void record(core::Happened what);
  // Records the events of this turn's inputs, and of the time that has passed.
  void decide_all(const std::vector<Asked>& inputs, WallTime before, std::vector<Answer>& answers);
  void take(const Asked& asked, std::vector<Answer>& answers);
  Error refused(const Asked& asked, Error error) const;
  Result<core::JobId> answer_again(core::JobId id, const core::Submit& submit) const;
  bool has_room_again();
  bool has_room_to_grant();
  bool has_room_for(const Asked& asked);
  bool others_let_it_grow(const std::vector<core::Happened>& happened);
  void record_all(std::vector<core::Happened> happened, std::vector<core::JobId>& changed);
  void what_is_due();
  void watch_time(const core::Job& job);
  void watch_end(const core::Job& job);
  void end_overdue();
  void put_blobs(const Asked& asked);
  void put_snapshot();
  Result<void> look_ahead();
  Result<void> boot();
  Result<core::JobId> start_now_or_never(core::JobId id);
  bool fresh_may_start();
  void grant_what_fits();
  // kNoRoom: for the first time, and nothing was done about it. kQueued: no room even with the
  // ballast.
  enum class Kept { kAll, kNoRoom, kQueued };
  Result<Kept> commit();
  Result<void> commit_store();
  Result<void> withdraw();
  bool is_ours_to_end(const core::Job& job) const;
  void act();
  void act_on(const core::Job& job);

  seam::Clock& clock_;
  seam::Store& store_;
  seam::Launcher& launcher_;
  Options options_;
  core::State state_;
  core::Pool machine_;
  std::map<core::JobId, Bytes> peaks_;
  WallTime now_;  // of the last turn
  std::optional<core::Sight> sight_;
  std::set<std::string> blobs_;     // that are in the store
  std::vector<Answer> unsaid_;      // decided, not yet on disk
  std::vector<core::JobId> fresh_;  // submitted since the last pass
  std::set<core::JobId> touched_;   // since the last act()
  std::set<core::JobId> over_;      // their attempt has ended, since the last act()
  std::set<core::JobId> orphans_;   // being ended, and their runner is gone or does not do it
  std::set<core::JobId> launched_;  // detached jobs that were passed to the launcher
  std::set<core::JobId> stopping_;  // passed to Launcher::stop()
  // The deadline of jobs with a --time, by a clock that cannot be set and that stands still while
  // the machine sleeps, as that of their keepers. After a restart it starts anew: the time slept
  // before is unknown.
  struct Limit {
    bool running = false;
    seam::Nanoseconds at{};
  };
  std::map<core::JobId, Limit> limits_;
  // Jobs that their runner ends: the deadline for that, by the same clock.
  std::map<core::JobId, seam::Nanoseconds> ends_;
  std::optional<WallTime> begins_;  // when time alone changes something, as of the last turn
  Health health_;
  std::uint64_t since_snapshot_ = 0;
  std::uint64_t version_ = 0;
  std::uint64_t sight_version_ = 0;
  bool grants_due_ = false;       // a job may fit now
  bool again_ = false;            // and the next turn should come at once
  bool sweeps_wait_ = false;      // their steps took the time of the turn
  std::uint64_t next_sweep_ = 0;  // is asked first
  bool machine_changed_ = false;  // enough for waiting jobs to be explained anew
  bool loaded_ = false;
  bool uncommitted_ = false;
  bool full_ = false;               // inputs that add work are refused, and nothing is granted
  seam::Nanoseconds full_until_{};  // at least, after a withdrawal
  bool short_ = false;              // there is no room for new work, and none was tried
  std::uint64_t batch_bytes_ = 0;   // of new work in this turn, about
};

}  // namespace mete::engine
