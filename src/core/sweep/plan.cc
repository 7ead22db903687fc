// SPDX-License-Identifier: Apache-2.0
// See plan.h.
#include "core/sweep/plan.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/text.h"
#include "core/sweep/fill.h"

namespace mete::core::sweep {

namespace {

bool is_sweep_name(std::string_view name) {
  const auto fine = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  if (name.empty() || name.size() > kMaxSweepName || !fine(name.front())) return false;
  return std::all_of(name.begin(), name.end(),
                     [&](char c) { return fine(c) || c == '.' || c == '_' || c == '-'; });
}

// A name is a part of the rules' texts: metric=NAME,min=1.
Result<void> check_metric_name(const std::string& name) {
  if (name.empty() || name.size() > kMaxMetricName)
    return Error::invalid("the name of a metric has 1 to " + std::to_string(kMaxMetricName) +
                          " bytes");
  if (base::trim(name) == name && base::printable(name) == name &&
      name.find_first_of(",=") == std::string::npos)
    return {};
  return Error::invalid("the name of a metric has no ',', no '=' and no blanks at its ends")
      .with_evidence(base::quote(name));
}

Result<void> check_metrics(const Plan& plan) {
  if (plan.metrics.size() > kMaxMetrics)
    return Error::invalid("a sweep has at most " + std::to_string(kMaxMetrics) + " metrics");
  if (plan.goal)
    if (Result<void> r = check_metric_name(plan.goal->metric); !r) return r;
  if (plan.halving && !plan.halving->metric.empty())
    if (Result<void> r = check_metric_name(plan.halving->metric); !r) return r;
  std::set<std::string> names;
  for (const MetricRule& rule : plan.metrics) {
    if (Result<void> r = check_metric_name(rule.name); !r) return r;
    if (rule.pattern.size() > kMaxPattern)
      return Error::invalid("the pattern of metric " + rule.name + " is too long")
          .with_evidence("it may have " + std::to_string(kMaxPattern) + " bytes");
    if (!names.insert(rule.name).second)
      return Error::invalid("metric " + base::quote(rule.name) + " is given twice");
  }
  return {};
}

// Each parameter has an environment variable of its own.
Result<void> check_environment(const Plan& plan) {
  std::map<std::string, std::string> names;
  for (const std::string& name : plan.space.names()) {
    const auto [known, fresh] = names.emplace(environment_name(name), name);
    if (!fresh)
      return Error::invalid("parameters " + known->second + " and " + name +
                            " would have one environment variable")
          .with_evidence("METE_PARAM_" + known->first)
          .with_hint("rename one of them");
  }
  return {};
}

std::size_t bytes_of(const std::vector<std::string>& words) {
  std::size_t bytes = 0;
  for (const std::string& word : words) bytes += word.size() + 1;
  return bytes;
}

// The longest command that the plan can make. Its own is stored too, and may be longer: a name in
// braces becomes a short value.
std::size_t longest_command(const Plan& plan) {
  Params longest;
  for (const Parameter& parameter : plan.space.parameters()) {
    Value value = of_text(std::string(24, '9'));  // of a range: the longest number
    if (const auto* values = std::get_if<std::vector<Value>>(&parameter.domain))
      value = *std::max_element(values->begin(), values->end(), [](const Value& a, const Value& b) {
        return a.text.size() < b.text.size();
      });
    longest.emplace_back(parameter.name, of_text(value.text));
  }
  return std::max(
      bytes_of(plan.job.command),
      bytes_of(fill_command(plan.job.command, plan.space.names(), longest, plan.as_flags)));
}

Result<void> check_limits(const Plan& plan) {
  if (plan.space.points() == 0)
    return Error::invalid("the space has no point").with_hint("--keep leaves out all of them");
  if (plan.sampling.trials > kMaxTrials)
    return Error::invalid("a sweep has at most " + std::to_string(kMaxTrials) + " trials")
        .with_evidence("asked for " + std::to_string(plan.sampling.trials));
  const std::optional<std::uint64_t> most = trials_of(plan);
  if (!most && !plan.for_s && !plan.until)
    return Error::invalid("this sweep has no end: its space is continuous")
        .with_hint("give --trials N, --for 2h or --until 18:00");
  if (most && *most > kMaxTrials && !plan.for_s && !plan.until)
    return Error::invalid("this sweep has more than " + std::to_string(kMaxTrials) + " trials")
        .with_evidence("the space has " + std::to_string(*most) + " points")
        .with_hint("give --trials N, or --fraction 0.01");
  return {};
}

// A target that can never be reached, or is reached by any number.
Result<void> check_target(const Plan& plan) {
  if (!plan.target) return {};
  const std::vector<std::string> names = plan.target->names();
  if (names.empty() || (names.size() == 1 && base::trim(plan.target->text()) == names.front()))
    return Error::invalid("a target compares a metric with a number")
        .with_evidence("--target " + base::quote(plan.target->text()))
        .with_hint("--target 'val_loss < 0.1'");
  const std::vector<std::string> parameters = plan.space.names();
  for (const std::string& name : names) {
    const auto named = [&](const MetricRule& rule) { return rule.name == name; };
    if (std::find(parameters.begin(), parameters.end(), name) == parameters.end() ||
        std::any_of(plan.metrics.begin(), plan.metrics.end(), named) ||
        (plan.goal && plan.goal->metric == name))
      continue;
    return Error::invalid("a target is about metrics, and " + name + " is a parameter")
        .with_evidence("--target " + base::quote(plan.target->text()))
        .with_hint("--keep limits parameters");
  }
  return {};
}

}  // namespace

Result<Expression> parse_target(std::string_view text, const Plan& plan) {
  std::vector<std::string> names;
  for (const MetricRule& rule : plan.metrics) names.push_back(rule.name);
  if (plan.goal) names.push_back(plan.goal->metric);
  if (plan.halving) names.push_back(plan.halving->metric);
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const auto is_part = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); };
  // Words of the language are no names, wherever they stand.
  constexpr std::array kWords = {"and", "or", "not", "in", "true", "false", "True", "False"};
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!is_letter(text[at]) || (at > 0 && is_part(text[at - 1]))) continue;
    std::size_t end = at;
    while (end < text.size() && is_part(text[end])) ++end;
    const std::string_view word = text.substr(at, end - at);
    if (std::find(kWords.begin(), kWords.end(), word) == kWords.end()) names.emplace_back(word);
    at = end - 1;
  }
  return Expression::parse(text, names);
}

std::optional<std::uint64_t> trials_of(const Plan& plan) {
  if (plan.sampling.trials != 0) return plan.sampling.trials;
  return plan.space.points();
}

// A parsed condition takes some thirty times its text.
std::uint64_t bytes_of(const Plan& plan) {
  std::uint64_t bytes = 4'096 + 32 * plan.space.condition_bytes() + bytes_of(plan.job.command);
  for (const Parameter& parameter : plan.space.parameters()) {
    bytes += 256 + parameter.name.size();
    if (const auto* values = std::get_if<std::vector<Value>>(&parameter.domain))
      for (const Value& value : *values) bytes += 64 + value.text.size();
  }
  for (const MetricRule& rule : plan.metrics) bytes += 64 + rule.name.size() + rule.pattern.size();
  if (plan.job.detached)
    bytes += plan.job.detached->environment_bytes + plan.job.detached->script_bytes;
  return bytes;
}

Result<Plan> checked(Plan plan) {
  if (plan.name.size() > kMaxSweepName)
    return Error::invalid("the name of a sweep has at most " + std::to_string(kMaxSweepName) +
                          " characters")
        .with_hint("--name lr-scan");
  if (!is_sweep_name(plan.name))
    return Error::invalid("the name of a sweep has letters, digits, '.', '_' and '-'")
        .with_evidence(base::quote(plan.name))
        .with_hint("--name lr-scan");
  if (plan.space.parameters().empty())
    return Error::invalid("the sweep has no parameters")
        .with_hint("--grid lr=0.1,0.01 or --space FILE");
  if (Result<void> r = check_environment(plan); !r) return std::move(r).error();
  if (Result<void> r = check_metrics(plan); !r) return std::move(r).error();
  if (Result<void> r = check_target(plan); !r) return std::move(r).error();
  if (Result<void> r = check(plan.space, plan.sampling); !r) return std::move(r).error();
  if (Result<void> r = check_limits(plan); !r) return std::move(r).error();
  if (plan.job.command.empty()) return Error::invalid("the sweep has no command");
  if (Result<void> r = check_command(plan.job.command, plan.space.names()); !r)
    return std::move(r).error();
  if (const std::size_t bytes = longest_command(plan); bytes > kMaxCommand)
    return Error::invalid("the command of a trial may become " + std::to_string(bytes) +
                          " bytes long")
        .with_evidence("it may have " + std::to_string(kMaxCommand) + " bytes")
        .with_hint("put long arguments into a script");
  if (plan.halving && plan.halving->metric.empty()) {
    if (!plan.goal)
      return Error::invalid("--asha does not know which metric counts")
          .with_hint("--minimize val_loss, or --asha metric=val_loss");
    plan.halving->metric = plan.goal->metric;
  }
  if (plan.sampling.method == Method::kTpe && !plan.goal)
    return Error::invalid("--sampler tpe learns from a metric")
        .with_hint("--minimize val_loss --metric 'val_loss=val_loss: (\\S+)'");
  if (plan.reduce && !plan.goal)
    return Error::invalid("a reducer needs a metric").with_hint("--minimize val_loss");
  if (plan.auto_gpu && plan.job.request.gpu)
    return Error::invalid("--gpu auto and a share exclude each other");
  // Neighbours on a grid differ in one parameter: nothing would be learned of the others.
  if (plan.auto_gpu) plan.sampling.scattered = true;
  return plan;
}

JobSpec job_of_trial(const Plan& plan, std::uint64_t sweep, std::uint64_t n, const Point& point,
                     std::optional<Bytes> gpu_bytes) {
  JobSpec spec = plan.job;
  TrialOf trial;
  trial.sweep = sweep;
  trial.name = plan.name;
  trial.n = n;
  trial.params = named(plan.space, point);
  trial.metrics = plan.metrics;
  if (plan.halving) trial.rungs = rungs_of(*plan.halving);
  spec.command = fill_command(plan.job.command, plan.space.names(), trial.params, plan.as_flags);
  spec.name = plan.name + "." + std::to_string(n);
  spec.key.clear();
  if (gpu_bytes) spec.request.gpu = GpuRequest{{CardCount::Kind::kOne, 0}, Size{*gpu_bytes}};
  spec.trial = std::move(trial);
  return spec;
}

}  // namespace mete::core::sweep
