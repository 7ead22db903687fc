// SPDX-License-Identifier: Apache-2.0
// Jobs with times through the queue: they arrive, wait for their turn, run for as long as they ran,
// and leave. The queue is the daemon's own: core::State decides, applies and learns, and its order
// (priority, fair share, jobs that have waited too long) and back-fill decide which job starts.
// Jobs run on a Site: the cards of one machine (machine_site.h), where State also places, or a
// cluster (cluster_site.h), where the order is State's and the places are chosen by core/cluster.
//
// Time is the trace's: nothing here reads a clock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/job/state.h"
#include "simulate/replay.h"

namespace mete::simulate {

struct TimedJob {
  std::string name;
  std::string user;
  core::Request request;
  WallTime submitted;
  std::int64_t run_ms = 0;
  std::optional<std::uint64_t> limit_s = {};
  std::int32_t priority = 0;
};

// The outcome of a job.
struct Life {
  std::optional<WallTime> started = {};  // absent: never
  WallTime ended = {};
  std::string refused = {};  // why it was refused at once; "": it was not
  struct Part {
    std::uint32_t node = 0;
    std::vector<std::uint32_t> cards = {};
  };
  std::vector<Part> parts = {};  // one; for a gang one for each copy
};

// The state from one moment to the next sample.
struct Sample {
  WallTime at;
  double alloc_pct = 0;  // of the cards
  double frag_pct = 0;   // of the cards: idle, and useless for a random job of the list
  std::size_t waiting = 0;
  std::size_t running = 0;
};

struct Timed {
  std::vector<Life> lives;  // one for each job
  std::vector<Sample> samples;
  std::vector<std::uint32_t> times_ns;  // of each moment at which a job could start
  std::uint64_t cpu_ns = 0;             // of all of it
};

// Where jobs run.
class Site {
 public:
  virtual ~Site() = default;
  // The events of a submission, or why it can never run. `index` is the job's position in the list.
  virtual Result<std::vector<core::Happened>> submit(const core::State& state,
                                                     const core::Submit& submit, std::size_t index,
                                                     WallTime now) = 0;
  // Which jobs start now and where, as in State::grants.
  virtual std::vector<core::JobGranted> grants(const core::State& state, WallTime now) = 0;
  virtual void ended(core::JobId id) = 0;
  // The cards of a grant, by the node's own numbers.
  virtual void locate(const core::JobGranted& granted, Life& life) const = 0;
  struct Use {
    double alloc_pct = 0;
    double frag_pct = 0;
  };
  virtual Use use(const core::State& state) = 0;
};

// busy: stopped by `progress`. The times are of the decisions of each moment.
Result<Timed> run_timed(const std::vector<TimedJob>& jobs, Site& site, core::Rules rules = {},
                        const Hooks& hooks = {});

// Waits of the jobs that started, in seconds.
struct Waits {
  std::size_t jobs = 0;    // that started
  std::size_t waited = 0;  // for more than a second
  double mean_s = 0;
  double p50_s = 0;
  double p90_s = 0;
  double p99_s = 0;
  double max_s = 0;
};
Waits waits_of(std::vector<std::int64_t> waits_ms);
Waits waits_of(const std::vector<TimedJob>& jobs, const Timed& timed);

// Means over time, from the first moment to the last.
struct OverTime {
  double alloc_pct = 0;
  double frag_pct = 0;
  double waiting = 0;
  std::int64_t span_ms = 0;
};
OverTime over_time(const std::vector<Sample>& samples);

// One line for each job: "index,node row,cards joined by -,start,end" in seconds; for a gang one
// for each of its parts; "index,-1,,," for a job that never ran.
std::string decisions_csv(const Timed& timed, const std::vector<std::uint32_t>& rows = {});

}  // namespace mete::simulate
