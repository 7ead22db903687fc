// SPDX-License-Identifier: Apache-2.0
// Finds the metrics of a trial in the output of its program and in the lines that it appends to
// METE_METRICS, and turns them into points. Bytes in, points out; no file, no clock.
//
// Steps: a number named `step` is the step of its line and of all later lines of that source, the
// output or the file. In the file `epoch` is the step as long as no line has had a `step`. Without
// steps the points of each metric are numbered 1, 2, 3, ….
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/sweep/trial.h"
#include "runner/metric_line.h"

namespace re2 {
class RE2;
}

namespace mete::runner {

// invalid: too many rules, a name twice, empty, too long or not printable, or a pattern that does
// not compile, is too long or too large, or has no group.
Result<void> check_metric_rules(std::span<const core::sweep::MetricRule> rules);

class MetricReader {
 public:
  // As check_metric_rules().
  static Result<MetricReader> make(std::span<const core::sweep::MetricRule> rules);

  // The next bytes of standard output, or of standard error if that is a stream of its own.
  void output(std::string_view bytes, bool is_error = false);
  // The next bytes of METE_METRICS. `at_end`: all that there is now; a last line without a line end
  // counts if it is a complete object.
  void lines(std::string_view bytes, bool at_end);
  // METE_METRICS begins again; an incomplete line at its end is forgotten.
  void lines_again() { file_.drop_rest(); }
  // No more bytes will come.
  void finish();

  // The points since the last call, at most one per line and step.
  std::vector<core::sweep::TrialPoint> take() { return std::exchange(points_, {}); }
  // The metrics known by now, those with a rule first.
  const std::vector<std::string>& names() const { return names_; }
  // What its user should know at the end; "": nothing.
  std::string remarks() const;

 private:
  struct Rule {
    std::string name;
    bool is_step = false;
    std::shared_ptr<const re2::RE2> pattern;  // nullptr: the last line that is a number
    std::uint64_t not_numbers = 0;            // matches whose group is no number
    bool found = false;
  };
  struct Source {
    std::optional<std::uint64_t> step;
    std::array<std::uint64_t, core::sweep::kMaxMetrics> counts{};
  };
  // A metric, by its place in names_, and its value.
  using Found = std::vector<std::pair<std::size_t, double>>;

  MetricReader() = default;
  static std::optional<double> last_match(Rule& rule, std::string_view line);
  void take_output_line(std::string_view line);
  void take_file_line(std::string_view line);
  void take_object(const std::vector<core::sweep::Metric>& numbers);
  void add(Found& found, const std::string& name, double value);
  void report(Source& source, std::optional<std::uint64_t> step, const Found& found);

  std::vector<Rule> rules_;
  std::vector<std::string> names_;
  LineCutter output_{LineCutter::Mode::kTerminal};
  LineCutter error_{LineCutter::Mode::kTerminal};
  LineCutter file_{LineCutter::Mode::kPlain};
  Source of_output_;
  Source of_file_;
  bool file_has_steps_ = false;
  std::vector<core::sweep::TrialPoint> points_;
  std::uint64_t malformed_ = 0;  // lines of METE_METRICS
  std::string left_out_;         // the first metric that was left out
};

}  // namespace mete::runner
