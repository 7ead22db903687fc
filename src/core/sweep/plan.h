// SPDX-License-Identifier: Apache-2.0
// What a user asked for: the space, how points are drawn from it, when to stop, and what a trial
// runs. Never changes, but for `extend`, which replaces it by a larger one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "core/job/job.h"
#include "core/sweep/expression.h"
#include "core/sweep/halving.h"
#include "core/sweep/reduce.h"
#include "core/sweep/sampler.h"
#include "core/sweep/space.h"
#include "core/sweep/trial.h"

namespace mete::core::sweep {

inline constexpr std::uint64_t kMaxTrials = 100'000;  // of one sweep
inline constexpr std::size_t kMaxSweeps = 1'000;      // of one user, finished ones included
inline constexpr std::size_t kMaxSweepName = 64;      // bytes
inline constexpr std::size_t kMaxCommand = 4'096;     // bytes, with a NUL for each word

// Which metric says how good a trial is.
struct Goal {
  std::string metric;
  bool maximize = false;
  // Lower is better.
  double loss_of(double value) const { return maximize ? -value : value; }
  bool operator==(const Goal&) const = default;
};

struct Plan {
  std::string name;  // [A-Za-z0-9][A-Za-z0-9._-]*
  Space space;
  Sampling sampling;                   // `trials`: 0 for all points of a finite space
  std::optional<std::uint64_t> for_s;  // no trial begins after this long
  std::optional<WallTime> until;       // or after this time
  std::vector<MetricRule> metrics;
  std::optional<Goal> goal;
  std::optional<Expression> target;    // over metrics: reached by one trial, the sweep is over
  std::optional<HalvingRule> halving;  // its metric is never ""
  std::optional<ReduceRule> reduce;
  std::uint64_t max_parallel = 0;  // 0: as many as fit
  std::uint64_t max_failures = 0;  // 0: any number; 1: --fail-fast
  bool auto_gpu = false;           // --gpu auto: job.request.gpu is absent
  bool as_flags = false;
  JobSpec job;  // what each trial runs; its command has {name}
  bool operator==(const Plan&) const = default;
};

// What can be checked without a machine: the name, metrics that are named twice or not at all (a
// target, goal or rung of an unknown one is allowed only where the program may write JSON lines:
// always), limits without an end, a space without a point, a command with unknown parameters, one
// that is or may become longer than kMaxCommand. Fills in what follows: the halving metric, the
// trials of a fraction. A checked plan is read back from its texts as it is.
Result<Plan> checked(Plan plan);

// --target, over metrics: those of the plan, and any other name, since a program may report it.
Result<Expression> parse_target(std::string_view text, const Plan& plan);

// How many trials the plan makes at most; nullopt: until its time is over.
std::optional<std::uint64_t> trials_of(const Plan& plan);

// About how many bytes of the daemon's state the plan takes, its job's contents included.
std::uint64_t bytes_of(const Plan& plan);

// The job of a trial. `gpu_bytes`: what `--gpu auto` gives it.
JobSpec job_of_trial(const Plan& plan, std::uint64_t sweep, std::uint64_t n, const Point& point,
                     std::optional<Bytes> gpu_bytes);

}  // namespace mete::core::sweep
