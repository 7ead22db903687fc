// SPDX-License-Identifier: Apache-2.0
// Sweeps between our programs: the request that starts one, the document that shows one, the list
// of all, and what a running trial reports. See docs/formats/sweep.schema.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "core/sweep/fill.h"
#include "core/sweep/importance.h"
#include "core/sweep/plan.h"
#include "core/sweep/sweep.h"
#include "core/sweep/trial.h"
#include "wire/submit.h"

namespace mete::wire {

// POST /v1/sweeps: the plan, and the job of its trials as `mete submit` sends it.
struct SweepRequest {
  core::sweep::Plan plan;  // `job` is empty: it is in `submit`
  SubmitRequest submit;
};
std::string encode(const SweepRequest& request);
Result<SweepRequest> decode_sweep_request(std::string_view json);

// {"schema":"mete.sweep/1",...}: a sweep as its user sees it.
struct SweepDocument {
  // A parameter of the space: a list of values, or a range.
  struct Parameter {
    std::string name;
    std::vector<core::sweep::Value> values;  // empty: a range
    std::optional<double> min;
    std::optional<double> max;
    std::optional<double> range_step;
    bool log = false;
    bool integer = false;
    std::string when;                       // the condition; "": always in use
    std::vector<std::string> dropped = {};  // values that --reduce has dropped
    bool operator==(const Parameter&) const = default;
  };
  struct Trial {
    std::uint64_t n = 0;
    core::sweep::Params params;  // those in use
    core::sweep::TrialState state = core::sweep::TrialState::kPending;
    std::optional<core::JobId> job;
    std::vector<core::sweep::Metric> metrics;
    std::optional<std::uint64_t> step;
    std::optional<Bytes> peak;
    std::optional<Bytes> granted;  // decided by --gpu auto
    std::string why;
    std::optional<WallTime> started;
    std::optional<WallTime> ended;
    std::vector<std::uint32_t> cards;
    bool operator==(const Trial&) const = default;
  };
  struct Best {
    std::uint64_t n = 0;
    std::string metric;
    double value = 0;
    bool operator==(const Best&) const = default;
  };
  struct Importance {
    std::string param;
    double pct = 0;
    double plus_minus_pct = 0;
    std::optional<double> correlation;  // Spearman's, of a number with the metric
    bool operator==(const Importance&) const = default;
  };

  WallTime at;
  std::string name;
  std::string user;
  core::sweep::SweepState state = core::sweep::SweepState::kRunning;
  std::string why;  // why it ended
  WallTime started;
  std::optional<WallTime> ended;
  std::optional<std::uint64_t> seed;
  std::string sampler;                  // "tpe"
  std::optional<std::uint64_t> wanted;  // trials at most; absent: until its time is over
  std::string metric;                   // the goal's; "": none
  bool maximize = false;
  std::string target;                // the expression; "": none
  std::vector<std::string> command;  // with {name}
  bool as_flags = false;             // the command also gets `--name value` for each parameter
  std::vector<Parameter> space;
  std::vector<Trial> trials;
  std::optional<Best> best;
  std::vector<Importance> importance;
  std::optional<WallTime> end_forecast;
  std::string results;  // path of results.csv; "": none yet
  std::string curves;   // folder with N.jsonl, what trials reported step by step; "": none
  // Results at the rungs are in the log alone.
};
std::string encode(const SweepDocument& document);
// invalid: not one, or of a newer version.
Result<SweepDocument> decode_sweep(std::string_view json);

// {"schema":"mete.sweeps/1","at":T,"sweeps":[...]}: a row for each sweep.
struct SweepRow {
  std::string name;
  std::string user;
  core::sweep::SweepState state = core::sweep::SweepState::kRunning;
  std::string why;
  std::string sampler;
  WallTime started;
  std::optional<WallTime> ended;
  std::optional<std::uint64_t> wanted;
  std::uint64_t pending = 0;
  std::uint64_t running = 0;
  std::uint64_t ok = 0;
  std::uint64_t failed = 0;
  std::uint64_t stopped = 0;
  std::optional<SweepDocument::Best> best;
  std::optional<WallTime> end_forecast;
  bool operator==(const SweepRow&) const = default;
};
struct SweepsDocument {
  WallTime at;
  std::vector<SweepRow> sweeps;
};
std::string encode(const SweepsDocument& document);
Result<SweepsDocument> decode_sweeps(std::string_view json);

// POST /v1/sweeps/NAME/extend.
struct ExtendRequest {
  std::uint64_t trials = 0;                      // added to those wanted
  std::optional<core::sweep::Space> space = {};  // instead of the old one
};
std::string encode(const ExtendRequest& request);
Result<ExtendRequest> decode_extend_request(std::string_view json);

// The sweep as a document; `importance` is for the caller to add.
SweepDocument document_of(const core::sweep::Sweep& sweep, WallTime at);
SweepDocument::Trial view_of(const core::sweep::Plan& plan, const core::sweep::Trial& trial);
SweepRow row_of(const core::sweep::Sweep& sweep, WallTime at);

// POST /v1/jobs/ID/metrics: what a running trial has reported since the last request.
struct MetricsReport {
  std::vector<core::sweep::TrialPoint> points;
  bool operator==(const MetricsReport&) const = default;
};
std::string encode(const MetricsReport& report);
Result<MetricsReport> decode_metrics_report(std::string_view json);

}  // namespace mete::wire
