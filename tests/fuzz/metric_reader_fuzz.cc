// SPDX-License-Identifier: Apache-2.0
// Any bytes as a pattern, as the output of a program and as METE_METRICS, divided by \x01: points
// of bounded form, and equal ones whatever the sizes of the pieces in which the bytes come.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "core/sweep/trial.h"
#include "runner/metric_reader.h"
#include "runner/trial_files.h"

namespace {

using namespace mete;
using core::sweep::MetricRule;
using core::sweep::TrialPoint;

struct Input {
  std::vector<MetricRule> rules;
  std::string_view output;
  std::string_view file;
};

std::vector<TrialPoint> points_of(const Input& input, std::size_t piece) {
  Result<runner::MetricReader> reader = runner::MetricReader::make(input.rules);
  METE_ASSERT(reader.ok());
  for (std::size_t at = 0; at < input.output.size(); at += piece)
    reader->output(input.output.substr(at, piece));
  for (std::size_t at = 0; at < input.file.size(); at += piece)
    reader->lines(input.file.substr(at, piece), false);
  reader->finish();
  (void)reader->remarks();
  METE_ASSERT(reader->names().size() <= core::sweep::kMaxMetrics);
  return reader->take();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::size_t first = std::min(bytes.find('\x01'), bytes.size());
  const std::size_t second = std::min(bytes.find('\x01', first + 1), bytes.size());
  Input input;
  input.rules = {{"loss", std::string(bytes.substr(0, first))}, {"step", "step (\\d+)"}};
  if (!runner::check_metric_rules(input.rules)) input.rules.erase(input.rules.begin());
  if (first < size) input.output = bytes.substr(first + 1, second - first - 1);
  if (second < size) input.file = bytes.substr(second + 1);
  const std::vector<TrialPoint> whole = points_of(input, size + 1);
  for (const TrialPoint& point : whole) {
    METE_ASSERT(point.step.has_value());
    METE_ASSERT(!point.metrics.empty() && point.metrics.size() <= core::sweep::kMaxMetrics);
    for (const core::sweep::Metric& metric : point.metrics)
      METE_ASSERT(!metric.name.empty() && metric.name.size() <= core::sweep::kMaxMetricName);
    // The curve is of the form that METE_METRICS has.
    METE_ASSERT(runner::numbers_of_object(runner::line_of(point)).has_value());
  }
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}})
    METE_ASSERT(points_of(input, piece) == whole);
  return 0;
}
