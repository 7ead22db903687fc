// SPDX-License-Identifier: Apache-2.0
// A sweep as it stands: its trials, their results, and what is decided next. Events change it
// (begin, report, end, change); next() says what follows, without changing anything. The jobs of
// trials are those of the queue: the caller submits them, and tells what became of them.
//
// A trial is numbered from 1 in the order in which it was drawn. Its parameters never change. It
// has one result: a trial whose job was lost runs again, one whose end is recorded never does.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "core/job/job.h"
#include "core/sweep/halving.h"
#include "core/sweep/memory_model.h"
#include "core/sweep/plan.h"
#include "core/sweep/reduce.h"

namespace mete::core::sweep {

enum class SweepState { kRunning, kPaused, kStopped, kDone };
std::string_view to_string(SweepState state);
std::optional<SweepState> parse_sweep_state(std::string_view text);

enum class TrialState { kPending, kRunning, kOk, kFailed, kStopped };
std::string_view to_string(TrialState state);
std::optional<TrialState> parse_trial_state(std::string_view text);

struct Trial {
  std::uint64_t n = 0;
  Point point;
  TrialState state = TrialState::kPending;
  std::optional<JobId> job = {};           // the latest
  std::uint32_t runs = 0;                  // jobs that it had
  std::vector<Metric> metrics = {};        // the latest values
  std::optional<std::uint64_t> step = {};  // the highest reported
  std::optional<Bytes> peak = {};          // the most that it used of a card
  std::optional<Bytes> granted = {};       // of each card, if `--gpu auto` decided that
  std::optional<Bytes> ran_out = {};       // the largest share that was too small
  std::string why = {};                    // it failed, was stopped, or runs again
  std::optional<WallTime> started = {};    // the latest run
  std::optional<WallTime> ended = {};
  std::vector<std::uint32_t> cards = {};  // indexes, of the latest run
  std::uint64_t order = 0;                // among the results, from 1; 0: none yet
  bool operator==(const Trial&) const = default;
};
inline bool is_over(const Trial& trial) { return trial.state >= TrialState::kOk; }

// How the job of a trial ended, until that is judged.
struct TrialEnd {
  std::uint64_t n = 0;
  JobId job;
  Outcome outcome = Outcome::kOk;
  std::optional<Exit> exit;
  std::string note;  // why it was stopped
  bool operator==(const TrialEnd&) const = default;
};

struct Best {
  std::uint64_t n = 0;
  double value = 0;
  bool operator==(const Best&) const = default;
};

// ---- what follows ------------------------------------------------------------------------------

// A trial gets a job. With `drawn` it is a new trial.
struct Begin {
  std::uint64_t n = 0;
  std::optional<Point> drawn = {};
  std::uint64_t next_draw = 0;  // with `drawn`
  std::optional<Bytes> granted = {};
  JobId job = {};  // filled in by the caller
  bool operator==(const Begin&) const = default;
};
// The job of a trial has ended, and this is what became of the trial.
struct Judged {
  std::uint64_t n = 0;
  TrialState state = TrialState::kOk;  // pending: it runs again
  std::vector<Metric> metrics = {};
  std::optional<std::uint64_t> step = {};
  std::optional<Bytes> peak = {};
  std::optional<Bytes> ran_out = {};
  std::string why = {};
  bool operator==(const Judged&) const = default;
};
// What a running trial has reported.
struct Reported {
  std::uint64_t n = 0;
  std::vector<TrialPoint> points = {};
  bool operator==(const Reported&) const = default;
};
struct NewBest {
  Best best;
  bool operator==(const NewBest&) const = default;
};
// No point before `next_draw` is new.
struct Skipped {
  std::uint64_t next_draw = 0;
  bool operator==(const Skipped&) const = default;
};
// A reducer was asked after `results` results.
struct Reduced {
  std::uint64_t results = 0;
  std::optional<Dropped> dropped = {};
  bool operator==(const Reduced&) const = default;
};
// Why the job of a trial is ended: the trial is weak, it has reached the last step (and counts as
// ok), or it is to run again later.
enum class Ending { kStopped, kFinished, kAgain };
std::string_view to_string(Ending ending);  // "stopped", "finished", "again"
std::optional<Ending> parse_ending(std::string_view text);
// The job of this trial is to be ended.
struct EndTrial {
  std::uint64_t n = 0;
  Ending ending = Ending::kStopped;
  std::string why = {};
  bool operator==(const EndTrial&) const = default;
};
// The sweep is over.
struct Finish {
  std::string why;
  bool operator==(const Finish&) const = default;
};
using Step = std::variant<Begin, Judged, NewBest, Skipped, Reduced, EndTrial, Finish>;

// What a decision depends on besides the sweep.
struct Circumstances {
  WallTime now;
  std::optional<Bytes> smallest_card = {};  // that a trial may run on; absent: none was seen yet
  // Whether a job would be accepted now. Asked before a point is drawn, which costs more.
  std::function<bool()> may_begin = {};  // absent: yes
  // What a running job has used of a card so far, as far as that is known.
  std::function<std::optional<Bytes>(JobId)> peak_of = {};
};

class Sweep {
 public:
  Sweep(std::uint64_t number, std::shared_ptr<const Plan> plan, WallTime started);

  std::uint64_t number() const { return parts_.number; }
  const Plan& plan() const { return *parts_.plan; }
  SweepState state() const { return parts_.state; }
  WallTime started() const { return parts_.started; }
  const std::optional<WallTime>& ended() const { return parts_.ended; }
  const std::string& why() const { return parts_.why; }
  const std::vector<Trial>& trials() const { return parts_.trials; }
  const Trial* find(std::uint64_t n) const;
  const std::optional<Best>& best() const { return parts_.best; }
  const std::vector<Dropped>& dropped() const { return parts_.dropped; }
  std::uint64_t count(TrialState state) const { return counts_[static_cast<std::size_t>(state)]; }
  // Trials with a job that has not ended.
  const std::set<std::uint64_t>& active() const { return active_; }
  // Trials that are over.
  std::uint64_t results() const { return results_; }
  // What is known of its trials as losses (lower is better), in the order of the results.
  const std::vector<Scored>& scored() const { return scored_; }
  // About how many bytes of the daemon's state it takes.
  std::uint64_t bytes() const { return bytes_; }
  // How many trials it has when it is over, as far as that is known.
  std::optional<std::uint64_t> wanted() const;
  // Each point of its space has a trial.
  bool has_tried_all() const;
  // Names of metrics that its programs reported, beside those of the plan: kMaxMetrics in all.
  const std::vector<std::string>& metric_names() const { return parts_.metric_names; }

  // The next step, if there is one: apply it, and ask again. Looks at kDrawsAtOnce points at most;
  // after a Skipped step there is none until time has passed.
  std::optional<Step> next(const Circumstances& circumstances) const;
  // It has trials to begin, and neither its own bound nor one that waits in the queue keeps it from
  // that.
  bool may_begin_more() const;
  // When time alone changes something.
  std::optional<WallTime> next_change(WallTime now) const;

  // Events, as they were recorded.
  void apply(const Begin& begin, WallTime at);
  void apply(const Judged& judged, WallTime at);
  void apply(const Reported& reported, WallTime at);
  void apply(const NewBest& best, WallTime at);
  void apply(const Skipped& skipped, WallTime at);
  void apply(const Reduced& reduced, WallTime at);
  void apply(const EndTrial& end, WallTime at);
  void apply(const Finish& finish, WallTime at);
  // The job of a trial runs, waits again (a retry), or has ended. What is told of another job than
  // the trial's present one is ignored.
  void job_runs(std::uint64_t n, JobId job, WallTime at, std::vector<std::uint32_t> cards);
  void job_waits(std::uint64_t n, JobId job);
  void job_ended(TrialEnd end, WallTime at);
  // Pause, resume, stop. From `done` only by extend().
  void set_state(SweepState state);
  void extend(std::shared_ptr<const Plan> plan);

  // For snapshots: these values are the whole state.
  struct ToEnd {
    Ending ending = Ending::kStopped;
    std::string why;
    bool operator==(const ToEnd&) const = default;
  };
  struct Parts {
    std::uint64_t number = 0;
    std::shared_ptr<const Plan> plan;
    SweepState state = SweepState::kRunning;
    WallTime started;
    std::optional<WallTime> ended;
    std::string why;
    std::vector<Trial> trials;
    std::uint64_t next_draw = 0;
    std::uint64_t barren = 0;        // draws since the last new point
    std::optional<WallTime> rested;  // when the last draws found nothing
    std::optional<Best> best;
    std::vector<Dropped> dropped;
    std::vector<std::string> metric_names;  // that programs reported
    std::uint64_t reduced_at = 0;           // results, when a reducer was last asked
    Halving halving;
    std::vector<TrialEnd> ends;               // not judged yet
    std::map<std::uint64_t, ToEnd> to_end;    // trials whose job is being ended
    std::map<std::uint64_t, ToEnd> verdicts;  // trials whose job is to be ended
    std::optional<std::uint64_t> on_target;   // the first trial that reached the target
    bool operator==(const Parts& other) const;
  };
  const Parts& parts() const { return parts_; }
  explicit Sweep(Parts parts);
  bool operator==(const Sweep& other) const { return parts_ == other.parts_; }

 private:
  Trial& at(std::uint64_t n) { return parts_.trials[n - 1]; }
  void set_state(Trial& trial, TrialState state);
  void index();
  void learn(const Trial& trial);
  void count_bytes(const Trial& trial);
  void look_at_target(const Trial& trial);
  void take_metrics(Trial& trial, const std::vector<Metric>& news);
  bool knows_metric(const std::string& name) const;
  double loss_of(double value) const;
  std::optional<Step> judge() const;
  Judged judged(const TrialEnd& end) const;
  std::optional<Step> end_some() const;
  std::optional<Step> begin_or_finish(const Circumstances& circumstances) const;
  std::optional<Step> draw_one(const Circumstances& circumstances) const;
  std::string why_over() const;
  std::string why_no_more(WallTime now) const;
  std::optional<Bytes> steady_peak(const Trial& trial, const Circumstances& circumstances) const;
  std::vector<Observed> observed(const Circumstances& circumstances) const;
  bool waits_for_peaks(const Circumstances& circumstances) const;
  std::optional<Bytes> share_of(const Point& point, const Trial* again,
                                const Circumstances& circumstances) const;
  bool has(const Point& point) const;
  bool is_in_space(const Point& point) const;

  Parts parts_;
  // Follows from the parts.
  std::array<std::uint64_t, 5> counts_{};
  std::set<std::uint64_t> active_;
  std::set<std::uint64_t> queued_;                      // active, and do not run yet
  std::set<std::uint64_t> again_;                       // pending without a job
  std::multimap<std::uint64_t, std::uint64_t> points_;  // hash, trial
  std::vector<Scored> scored_;
  std::optional<Best> leader_;  // the best result; parts_.best once that is recorded
  std::uint64_t results_ = 0;
  std::uint64_t in_space_ = 0;  // trials at points of the present space
  std::uint64_t bytes_ = 0;
};

// Looked at in one step; fewer of a space with long conditions.
inline constexpr std::uint64_t kDrawsAtOnce = 500;
inline constexpr std::uint64_t kSuggestionsAtOnce = 8;  // of TPE
// After this many draws without a new point the space counts as exhausted.
inline constexpr std::uint64_t kMostBarren = 50'000;
// A trial whose job was lost this many times in a row has failed.
inline constexpr std::uint32_t kMaxRuns = 20;
// A trial that has run this long counts by what it has used so far (--gpu auto): those of hours
// need not end before anything is learned from them.
inline constexpr std::int64_t kSteadyMs = 60'000;
// Trials that wait in the queue at a time: enough to fill cards, few enough to be chosen late.
inline constexpr std::uint64_t kQueued = 4;

}  // namespace mete::core::sweep
