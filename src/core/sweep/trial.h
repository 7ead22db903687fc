// SPDX-License-Identifier: Apache-2.0
// What a job knows of the sweep that it is a trial of, and what a trial reports. Values only.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/sweep/value.h"

namespace mete::core::sweep {

inline constexpr std::array<std::string_view, 4> kValueKinds = {"text", "integer", "real", "bool"};
inline std::string_view to_string(Value::Kind kind) {
  return kValueKinds[static_cast<std::size_t>(kind)];
}
inline std::optional<Value::Kind> parse_value_kind(std::string_view text) {
  for (std::size_t i = 0; i < kValueKinds.size(); ++i)
    if (kValueKinds[i] == text) return static_cast<Value::Kind>(i);
  return std::nullopt;
}

inline constexpr std::size_t kMaxMetrics =
    16;  // of one sweep; others that a program writes are left out
inline constexpr std::size_t kMaxMetricName = 64;  // bytes
inline constexpr std::size_t kMaxPattern = 1'000;  // bytes

// How a metric is found in the output. A program that appends JSON lines to the file METE_METRICS
// needs no rule.
struct MetricRule {
  std::string name;
  std::string pattern;  // RE2 with one group, the number; "": the last line that is a number
  bool operator==(const MetricRule&) const = default;
};

// The latest value of a metric; NaN: the program reported something that is no finite number.
struct Metric {
  std::string name;
  double value = 0;
  bool operator==(const Metric& other) const {
    return name == other.name &&
           (value == other.value || (value != value && other.value != other.value));
  }
};
// nullopt: there is none of that name.
inline std::optional<double> value_of(const std::vector<Metric>& metrics, const std::string& name) {
  for (const Metric& metric : metrics)
    if (metric.name == name) return metric.value;
  return std::nullopt;
}

// In the spec of a job: which trial of which sweep it runs.
struct TrialOf {
  std::uint64_t sweep = 0;                            // number
  std::string name;                                   // of the sweep
  std::uint64_t n = 0;                                // from 1
  std::vector<std::pair<std::string, Value>> params;  // in use
  std::vector<MetricRule> metrics;
  std::vector<std::uint64_t> rungs;  // steps at which the trial is judged (ASHA), ascending
  bool operator==(const TrialOf&) const = default;
};

// What a running trial has reported at a step.
struct TrialPoint {
  std::optional<std::uint64_t> step;
  std::vector<Metric> metrics;  // those that changed
  bool operator==(const TrialPoint&) const = default;
};

}  // namespace mete::core::sweep
