// SPDX-License-Identifier: Apache-2.0
// See metric_reader.h. Each line gives values for some metrics and perhaps a step: by the rules for
// output, by the members of the object for METE_METRICS. report() adds them to points_ with the
// step of the line, or with a number for each metric. Metrics are kept by their place in names_,
// which holds those of the rules from the start, so that names in a file cannot crowd them out.
#include "runner/metric_reader.h"

#include <re2/re2.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace mete::runner {

namespace {

using core::sweep::kMaxMetricName;
using core::sweep::kMaxMetrics;
using core::sweep::kMaxPattern;
using core::sweep::Metric;
using core::sweep::MetricRule;
using core::sweep::TrialPoint;

constexpr std::string_view kStep = "step";
constexpr std::string_view kEpoch = "epoch";
// For a compiled pattern and for the states of a match.
constexpr std::int64_t kMaxMemory = 2 << 20;
// In one line: matching many times in a long line would take time by its square.
constexpr int kMaxMatches = 256;
constexpr double kMaxStep = 9007199254740992.0;  // 2^53, so that a double has each step

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxMetricName && base::printable(name) == name;
}

Result<std::shared_ptr<const RE2>> compile(const MetricRule& rule) {
  const std::string what = "the pattern of the metric " + base::quote(rule.name);
  if (rule.pattern.size() > kMaxPattern)
    return Error::invalid(what + " is longer than " + std::to_string(kMaxPattern) + " bytes");
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMaxMemory);
  auto pattern = std::make_shared<const RE2>(rule.pattern, options);
  if (!pattern->ok())
    return Error::invalid(what + " is no regular expression that RE2 knows: " +
                          base::printable(pattern->error()))
        .with_evidence(base::quote(rule.pattern));
  if (pattern->NumberOfCapturingGroups() < 1)
    return Error::invalid(what + " has no group")
        .with_evidence(base::quote(rule.pattern))
        .with_hint("put the part that is the number in parentheses: loss=(\\S+)");
  return pattern;
}

std::optional<std::uint64_t> step_of(double value) {
  if (!(value >= 0 && value <= kMaxStep)) return std::nullopt;
  return static_cast<std::uint64_t>(value);
}

// "0.5," and "12%" are numbers in a text.
std::optional<double> number_in_text(std::string_view text) {
  text = base::trim(text);
  while (!text.empty() && std::string_view(",;:%.)]}").find(text.back()) != std::string_view::npos)
    text.remove_suffix(1);
  return number_of(text);
}

}  // namespace

Result<void> check_metric_rules(std::span<const MetricRule> rules) {
  const Result<MetricReader> reader = MetricReader::make(rules);
  return reader ? Result<void>() : Result<void>(reader.error());
}

Result<MetricReader> MetricReader::make(std::span<const MetricRule> rules) {
  MetricReader reader;
  for (const MetricRule& rule : rules) {
    if (!is_name(rule.name))
      return Error::invalid("a metric cannot be called " + base::quote(rule.name))
          .with_hint("a name has 1 to " + std::to_string(kMaxMetricName) + " printable bytes");
    for (const Rule& other : reader.rules_)
      if (other.name == rule.name)
        return Error::invalid("the metric " + base::quote(rule.name) + " has two patterns");
    Rule& made = reader.rules_.emplace_back();
    made.name = rule.name;
    made.is_step = rule.name == kStep;
    if (!made.is_step) {
      if (reader.names_.size() == kMaxMetrics)
        return Error::invalid("a sweep has at most " + std::to_string(kMaxMetrics) + " metrics");
      reader.names_.push_back(rule.name);
    }
    if (rule.pattern.empty()) continue;
    Result<std::shared_ptr<const RE2>> pattern = compile(rule);
    if (!pattern) return std::move(pattern).error();
    made.pattern = *std::move(pattern);
  }
  return reader;
}

// ---- output ------------------------------------------------------------------------------------

void MetricReader::output(std::string_view bytes, bool is_error) {
  if (rules_.empty()) return;
  (is_error ? error_ : output_).take(bytes, [this](std::string_view line) {
    take_output_line(line);
  });
}

// Of several matches in a line the last one that is a number.
std::optional<double> MetricReader::last_match(Rule& rule, std::string_view line) {
  std::optional<double> last;
  const re2::StringPiece text(line.data(), line.size());
  re2::StringPiece groups[2];
  std::size_t at = 0;
  for (int times = 0; times < kMaxMatches && at <= line.size(); ++times) {
    if (!rule.pattern->Match(text, at, line.size(), RE2::UNANCHORED, groups, 2)) break;
    const std::string_view group(groups[1].data(), groups[1].size());
    if (const std::optional<double> number = number_in_text(group))
      last = number;
    else
      ++rule.not_numbers;
    const auto end = static_cast<std::size_t>(groups[0].data() - line.data()) + groups[0].size();
    at = groups[0].empty() ? end + 1 : end;
  }
  return last;
}

void MetricReader::take_output_line(std::string_view line) {
  Found found;
  std::optional<std::uint64_t> step;
  for (Rule& rule : rules_) {
    const std::optional<double> value = rule.pattern ? last_match(rule, line) : number_of(line);
    if (!value) continue;
    rule.found = true;
    if (rule.is_step)
      step = step_of(*value);
    else
      add(found, rule.name, *value);
  }
  report(of_output_, step, found);
}

// ---- METE_METRICS ------------------------------------------------------------------------------

void MetricReader::lines(std::string_view bytes, bool at_end) {
  file_.take(bytes, [this](std::string_view line) { take_file_line(line); });
  if (!at_end || file_.rest().empty()) return;
  if (const auto numbers = numbers_of_object(file_.rest())) {
    file_.drop_rest();
    take_object(*numbers);
  }
}

void MetricReader::take_file_line(std::string_view line) {
  if (base::trim(line).empty()) return;
  if (const auto numbers = numbers_of_object(line))
    take_object(*numbers);
  else
    ++malformed_;
}

void MetricReader::take_object(const std::vector<Metric>& numbers) {
  Found found;
  std::optional<std::uint64_t> step;
  std::optional<double> epoch;
  for (const Metric& number : numbers) {
    if (number.name == kStep)
      step = step_of(number.value);
    else if (number.name == kEpoch)
      epoch = number.value;
    else
      add(found, number.name, number.value);
  }
  file_has_steps_ |= step.has_value();
  if (epoch && file_has_steps_)
    add(found, std::string(kEpoch), *epoch);
  else if (epoch)
    step = step_of(*epoch);
  report(of_file_, step, found);
}

// ---- points ------------------------------------------------------------------------------------

void MetricReader::add(Found& found, const std::string& name, double value) {
  auto known = std::find(names_.begin(), names_.end(), name);
  if (known == names_.end()) {
    if (names_.size() == kMaxMetrics || !is_name(name)) {
      if (left_out_.empty()) left_out_ = base::quote(name);
      return;
    }
    known = names_.insert(names_.end(), name);
  }
  const auto which = static_cast<std::size_t>(known - names_.begin());
  for (auto& [other, of_other] : found) {
    if (other != which) continue;
    of_other = value;  // a member twice: the last one
    return;
  }
  found.emplace_back(which, value);
}

void MetricReader::report(Source& source, std::optional<std::uint64_t> step, const Found& found) {
  if (step) source.step = step;
  const std::size_t before = points_.size();
  for (const auto& [which, value] : found) {
    const std::uint64_t at = source.step ? *source.step : ++source.counts[which];
    const auto point =
        std::find_if(points_.begin() + static_cast<std::ptrdiff_t>(before), points_.end(),
                     [&](const TrialPoint& other) { return other.step == at; });
    TrialPoint& to = point != points_.end() ? *point : points_.emplace_back(TrialPoint{at, {}});
    to.metrics.push_back({names_[which], value});
  }
}

void MetricReader::finish() {
  const LineCutter::Each each = [this](std::string_view line) { take_output_line(line); };
  output_.end(each);
  error_.end(each);
  file_.end([this](std::string_view line) { take_file_line(line); });
}

std::string MetricReader::remarks() const {
  std::vector<std::string> all;
  if (malformed_ == 1) all.push_back("1 line of METE_METRICS is no JSON object");
  if (malformed_ > 1)
    all.push_back(std::to_string(malformed_) + " lines of METE_METRICS are no JSON objects");
  for (const Rule& rule : rules_)
    if (rule.not_numbers > 0 && !rule.found)
      all.push_back("the pattern of " + base::quote(rule.name) +
                    " matched, and its group was never a number");
  if (!left_out_.empty())
    all.push_back("metrics were left out, such as " + left_out_ + ": at most " +
                  std::to_string(kMaxMetrics) + ", with printable names of at most " +
                  std::to_string(kMaxMetricName) + " bytes");
  return base::join(all, "; ");
}

}  // namespace mete::runner
