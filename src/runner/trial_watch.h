// SPDX-License-Identifier: Apache-2.0
// What a keeper does for a job that is a trial of a sweep: gives the program its parameters, finds
// the metrics that it reports in its output and in METE_METRICS, records each point in the curve,
// and reports to the daemon. The daemon decides; nothing here ends a trial. Whatever the program
// writes, and whatever the disk or the daemon do, the job goes on. Files: below STATE/sweeps/NAME,
// see docs/formats/sweep-files.md.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/sweep/trial.h"
#include "runner/metric_reader.h"
#include "runner/trial_files.h"
#include "seam/clock.h"
#include "wire/sweep.h"

namespace mete::runner {

// Which points the daemon gets, and when: a point that reaches a rung at once, otherwise the latest
// values of the metrics that changed, once a second. Pure: the caller passes the time and sends.
class TrialReports {
 public:
  static constexpr std::size_t kMaxPoints = 64;  // of one report

  explicit TrialReports(std::vector<std::uint64_t> rungs);

  void add(const core::sweep::TrialPoint& point);
  bool is_due(seam::Nanoseconds now) const;
  // A point at a rung waits for its report.
  bool is_urgent() const { return !at_rungs_.empty(); }
  // For the daemon now; at most kMaxPoints. Followed by sent() or failed().
  wire::MetricsReport make() const;
  void sent(seam::Nanoseconds now);
  // The points stay. Some errors end all reports: the daemon does not know the job or the path.
  void failed(seam::Nanoseconds now, const Error& error);

  // The latest value of each metric, in the order of `names`, and the highest of their steps.
  std::vector<core::sweep::Metric> latest(const std::vector<std::string>& names) const;
  std::optional<std::uint64_t> step() const;

 private:
  struct Latest {
    std::optional<std::uint64_t> step;
    double value = 0;
    bool changed = false;     // since it was reported
    std::size_t reached = 0;  // rungs
  };
  std::vector<std::uint64_t> rungs_;
  std::map<std::string, Latest> latest_;
  std::vector<core::sweep::TrialPoint> at_rungs_;  // not reported yet
  seam::Nanoseconds next_{};
  unsigned failures_ = 0;  // in a row
  bool over_ = false;
};

class TrialWatch {
 public:
  // Sends the body of POST /v1/jobs/ID/metrics. Empty: there is no daemon to tell.
  using Tell = std::function<Result<void>(const std::string& body)>;

  // Makes the files of this run; call with the rights of the job's user. `state`: that user's
  // state folder. Errors: the program would run without its parameters (invalid: the name of the
  // sweep or a pattern; exhausted: the disk is full).
  static Result<TrialWatch> begin(core::sweep::TrialOf trial, const std::string& state, Tell tell,
                                  seam::Clock& clock);

  // METE_SWEEP, METE_TRIAL, METE_PARAMS, METE_METRICS, and METE_PARAM_NAME and SM_HP_NAME for each
  // parameter.
  std::vector<std::pair<std::string, std::string>> environment() const;

  // The output of the program as it passes, in pieces of any size.
  void seen(std::string_view bytes, bool is_error);
  // Reads METE_METRICS, four times a second at most, and reports what is due. Call again after
  // tick_ms(); more often costs nothing.
  void step();
  int tick_ms() const;

  struct End {
    std::vector<core::sweep::Metric> metrics;  // the latest of each; those with a rule first
    std::optional<std::uint64_t> step;
    std::string note;  // "": none
  };
  // The program has ended: reads the rest, up to kMostAtEnd bytes of METE_METRICS, and reports
  // points at rungs that the daemon does not have yet.
  End finish();

  static constexpr std::size_t kMostAtEnd = 64 << 20;

 private:
  TrialWatch(core::sweep::TrialOf trial, const std::string& folder, Tell tell, seam::Clock& clock,
             MetricReader reader);
  std::uint64_t read_metrics();
  void take_points();
  bool report();
  std::string note(std::uint64_t unread) const;

  core::sweep::TrialOf trial_;
  std::string params_path_;
  std::string metrics_path_;
  Tell tell_;
  seam::Clock* clock_;
  MetricReader reader_;
  AppendedFile metrics_;
  CurveFile curve_;
  TrialReports reports_;
  seam::Nanoseconds next_read_{};
};

}  // namespace mete::runner
