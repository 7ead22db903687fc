// SPDX-License-Identifier: Apache-2.0
// Arrivals through a policy: jobs arrive one after another and stay; a job that some node can hold
// is placed, any other is dropped. replay() decides, score() then says how well, by the measures of
// the FGD paper: they are computed afterwards, so that decisions can be timed alone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/cluster/policy.h"
#include "simulate/moves.h"
#include "simulate/trace.h"

namespace mete::simulate {

// Which requests the policy expects: those of the whole list of jobs (not their order), or only
// those that have arrived so far.
enum class MixFrom { kJobs, kLearned };

struct Trace {
  std::vector<core::cluster::NodeSpec> nodes;
  std::vector<TraceJob> jobs;
  std::vector<std::uint32_t> arrivals;  // rows of jobs
  std::vector<std::uint32_t> ranks;     // of nodes; empty: as they are listed
};

struct Hooks {
  std::function<std::uint64_t()> now_ns;  // for the times of decisions; empty: not taken
  std::function<std::uint64_t()> cpu_ns;  // for the time of all of them; empty: not taken
  // Decided and total; called every thousand. False: stop.
  std::function<bool(std::size_t, std::size_t)> progress;
};

// How much may be moved in all, to make room for requests that would be refused (moves.h).
struct MoveLimit {
  std::uint64_t jobs = 0;
  std::int64_t share = 0;  // thousandths of cards
};

struct Replay {
  std::vector<std::optional<core::cluster::Spot>> spots;  // one for each arrival
  // Before which arrival which job moved, in order.
  std::vector<std::pair<std::uint32_t, Move>> moves;
  std::vector<std::uint32_t> times_ns;  // of each decision, if measured
  std::uint64_t cpu_ns = 0;             // of all decisions, without setting up
};

// busy: stopped by `progress`.
Result<Replay> replay(const Trace& trace, core::cluster::NodePolicy& policy, MixFrom mix,
                      const Hooks& hooks = {}, MoveLimit limit = {});

// In percent of all cards, unless noted. A mean over the arrivals at which the sum of all requests
// so far rounds to 100 % or 130 % of the cards; absent: there were none.
struct Score {
  double final_alloc = 0;
  std::optional<double> alloc100, alloc130, frag100, frag130;
  std::optional<double> first_reject_at;       // requested so far; absent: no rejection
  std::map<std::string, double> accepted_pct;  // by "cpu", "share", "1gpu", "2gpu", ...
  std::uint64_t rejected = 0;
  std::uint64_t moves = 0;
  double moved_gpu = 0;  // cards
  std::uint64_t cards = 0;
  // After each arrival, for a chart.
  struct Point {
    double asked = 0;
    double alloc = 0;
    double frag = 0;
  };
  std::vector<Point> curve;
};

// "cpu", "share", "1gpu", "2gpu", ...
std::string class_of(const core::cluster::Ask& ask);

Result<Score> score(const Trace& trace, const Replay& replay);

// One line for each arrival: "index,node row,cards joined by -", or "index,-1,"; before it the jobs
// that moved for it: "m,index,node row,cards". `rows`: the row of each node; empty: unchanged.
std::string decisions_csv(const Replay& replay, const std::vector<std::uint32_t>& rows = {});

}  // namespace mete::simulate
