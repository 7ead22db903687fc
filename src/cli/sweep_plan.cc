// SPDX-License-Identifier: Apache-2.0
// See sweep_plan.h. plan() fills in one part after the other, each from its options and then from
// the file, so that an error names what is wrong; at the end checked() of core looks at the whole.
// The job of the trials is planned by the code of `mete submit` from the options that both verbs
// have. The command is checked here against the names of the space, before anything is sent.
#include "cli/sweep_plan.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/file.h"
#include "base/text.h"
#include "base/time_words.h"
#include "cli/job_words.h"
#include "cli/output.h"
#include "cli/submit_plan.h"
#include "cli/sweep_options.h"
#include "cli/sweep_text.h"
#include "runner/metric_reader.h"
#include "wire/submit.h"

namespace mete::cli {

using core::sweep::Method;
using core::sweep::Plan;
using core::sweep::Point;

namespace {

constexpr std::string_view kExample =
    "mete sweep --gpu 8G --grid lr=1e-3,1e-4 -- python train.py --lr {lr}";

// "0.1", "10%": above 0, at most 1.
std::optional<long double> parse_fraction(std::string_view text) {
  const bool percent = text.ends_with('%');
  if (percent) text.remove_suffix(1);
  double value = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (wrong != std::errc() || end != text.data() + text.size()) return std::nullopt;
  const long double fraction = percent ? value / 100.0L : static_cast<long double>(value);
  if (!(fraction > 0) || fraction > 1) return std::nullopt;
  return fraction;
}

bool is_finite(const core::sweep::Space& space) {
  for (std::size_t i = 0; i < space.parameters().size(); ++i)
    if (!space.values_of(i)) return false;
  return true;
}

bool is_space_file(const std::string& word) {
  return (word.ends_with(".yaml") || word.ends_with(".yml") || word.ends_with(".json")) &&
         !base::real_path(word).empty();
}

// A command whose first word is no program would fail once for each trial.
Result<void> check_program(const Parsed& parsed) {
  const std::string& word = parsed.rest.front();
  if (is_space_file(word))
    return Error::invalid(base::quote(word) + " is a file with a space, and no program")
        .with_hint("mete sweep --space " + word + " -- COMMAND");
  const std::vector<std::string> variables = parsed.all("--env");
  const bool elsewhere = parsed.has("--chdir") || word.find('{') != std::string::npos ||
                         std::any_of(variables.begin(), variables.end(),
                                     [](const auto& each) { return each.starts_with("PATH="); });
  if (elsewhere || word.empty()) return {};
  if (word.find('/') != std::string::npos) {
    if (!base::real_path(word).empty()) return {};
    return Error::not_found("there is no file " + base::quote(word))
        .with_hint("check the name of the program");
  }
  if (is_program_of_path(word)) return {};
  if (!base::real_path(word).empty())
    return Error::not_found(base::quote(word) + " is a file here, and no program of PATH")
        .with_hint("write ./" + word);
  return Error::not_found("there is no program " + base::quote(word) + " in PATH")
      .with_hint("check its name");
}

// Different trials need different files.
Result<void> check_files(const core::Detached& detached) {
  for (const auto& [option, path] : {std::pair("--log", &detached.log), {"--err", &detached.err}}) {
    if (path->empty() || path->find("%j") != std::string::npos ||
        path->find("%x") != std::string::npos)
      continue;
    return Error::invalid(std::string(option) + " would be one file for all trials")
        .with_evidence(*path)
        .with_hint("write %j for the job, or %x for the sweep and the trial: " +
                   std::string(option) + " out/%x.log");
  }
  return {};
}

}  // namespace

int SweepPlanner::exit_code(const Error& error) const {
  if (in_file_ || reader_.in_file()) return kExitBadFile;
  // What was named is missing from the machine, as for mete submit.
  return error.code == ErrorCode::kNotFound ? kExitBadFile : exit_code_of(error.code);
}

Result<SweepPlan> SweepPlanner::plan() {
  if (Result<void> r = check_words(); !r) return std::move(r).error();
  Result<SpaceInput> input = reader_.read();
  if (!input) return std::move(input).error();
  Plan& plan = plan_.request.plan;
  plan.space = std::move(input->space);
  if (Result<void> r = add_times(); !r) return std::move(r).error();
  if (Result<void> r = add_sampling(input->file); !r) return std::move(r).error();
  if (Result<void> r = add_metrics(input->file); !r) return std::move(r).error();
  if (Result<void> r = add_rules(); !r) return std::move(r).error();
  if (Result<void> r = add_limits(); !r) return std::move(r).error();
  if (Result<void> r = add_job(); !r) return std::move(r).error();
  const std::string* name = parsed_.find("--name");
  plan_.named = name != nullptr;
  plan.name = plan_.named ? *name : name_for(parsed_.rest);
  // checked() looks at the job too, which is sent beside the plan.
  Plan whole = std::move(plan);
  whole.job = plan_.request.submit.spec;
  Result<Plan> fine = core::sweep::checked(std::move(whole));
  if (!fine) return std::move(fine).error();
  plan = *std::move(fine);
  plan.job = {};
  add_notes();
  return std::move(plan_);
}

Result<void> SweepPlanner::check_words() const {
  if (parsed_.rest.empty())
    return Error::invalid("the sweep has no command").with_hint(std::string(kExample));
  if (parsed_.rest.front().empty())
    return Error::invalid("the name of the program is empty").with_hint(std::string(kExample));
  if (Result<void> r = check_program(parsed_); !r) return r;
  if (parsed_.has("--detach") && parsed_.has("--csv"))
    return Error::invalid("--csv is written while mete follows the sweep, and --detach ends that")
        .with_hint("mete sweep report NAME -o csv prints the results at any time");
  return {};
}

Result<std::optional<std::uint64_t>> SweepPlanner::number(std::string_view option,
                                                          std::uint64_t least) const {
  const std::string* text = parsed_.find(option);
  if (text == nullptr) return std::optional<std::uint64_t>();
  const Result<std::uint64_t> value = base::parse_uint(*text);
  if (!value || *value < least)
    return Error::invalid(std::string(option) + " " + base::quote(*text) + " is not a number" +
                          (least > 0 ? " from " + std::to_string(least) + " on" : ""))
        .with_hint("write " + std::string(option) + " 20");
  return std::optional(*value);
}

// ---- which points ------------------------------------------------------------------------------

Result<void> SweepPlanner::add_sampling(const sweep::SpaceFile& file) {
  core::sweep::Sampling& sampling = plan_.request.plan.sampling;
  const bool finite = is_finite(plan_.request.plan.space);
  if (Result<void> r = add_trials(file.trials); !r) return r;
  if (const std::string* text = parsed_.find("--sampler"); text != nullptr) {
    const std::optional<Method> method = core::sweep::parse_method(*text);
    if (!method) {
      const std::string_view near =
          base::nearest(*text, {core::sweep::kMethods.begin(), core::sweep::kMethods.end()});
      return Error::invalid("--sampler " + base::quote(*text) + ": there is no such sampler")
          .with_hint(near.empty() ? "grid, random, sobol, halton, lhs or tpe"
                                  : "did you mean " + std::string(near) + "?");
    }
    sampling.method = *method;
  } else {
    sampling.method =
        file.sampler.value_or(finite && sampling.trials == 0 ? Method::kGrid : Method::kRandom);
  }
  const Result<std::optional<std::uint64_t>> seed = number("--seed", 0);
  if (!seed) return seed.error();
  sampling.seed = *seed ? *seed : file.seed;
  const bool draws = sampling.method == Method::kRandom || sampling.method == Method::kLatin ||
                     sampling.method == Method::kTpe;
  if (draws && !sampling.seed) {
    sampling.seed = random_;
    plan_.seed_drawn = true;
  }
  // A grid that may not be finished has each value of each parameter early.
  const Plan& plan = plan_.request.plan;
  const std::optional<std::uint64_t> size = plan.space.size();
  sampling.scattered =
      sampling.method == Method::kGrid &&
      (plan.for_s || plan.until || (sampling.trials != 0 && size && sampling.trials < *size));
  return {};
}

Result<void> SweepPlanner::add_trials(const std::optional<std::uint64_t>& of_file) {
  Plan& plan = plan_.request.plan;
  const Result<std::optional<std::uint64_t>> trials = number("--trials", 1);
  if (!trials) return trials.error();
  const std::optional<std::uint64_t> size = plan.space.size();
  if (const std::string* text = parsed_.find("--fraction"); text != nullptr) {
    if (*trials)
      return Error::invalid("--fraction and --trials exclude each other")
          .with_hint("give one of them");
    const std::optional<long double> fraction = parse_fraction(*text);
    if (!fraction)
      return Error::invalid("--fraction " + base::quote(*text) + " is no part of a space")
          .with_hint("write --fraction 0.1 or --fraction 10%");
    if (!size)
      return Error::invalid("--fraction needs a finite space")
          .with_evidence(is_finite(plan.space) ? "this space is too large to be counted"
                                               : "a parameter of this space is a continuous range")
          .with_hint("give --trials N");
    // 29 of 100 points, though 0.29 * 100 is a little less than 29.
    const long double points = std::floor(*fraction * static_cast<long double>(*size) + 1e-9L);
    plan.sampling.trials = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(points));
    return {};
  }
  plan.sampling.trials = trials->value_or(of_file.value_or(0));
  if (size && plan.sampling.trials > *size) {
    plan_.notes.push_back("the space has " + numbered(*size, "point") + ", so there are " +
                          numbered(*size, "trial") + " instead of " +
                          std::to_string(plan.sampling.trials));
    plan.sampling.trials = *size;
  }
  return {};
}

Result<void> SweepPlanner::add_times() {
  Plan& plan = plan_.request.plan;
  if (const std::string* text = parsed_.find("--for"); text != nullptr) {
    const Result<std::uint64_t> seconds = base::parse_duration(*text);
    if (!seconds)
      return Error::invalid("--for " + seconds.error().message)
          .with_hint("write --for 90m, 2h or 1d");
    plan.for_s = *seconds;
  }
  if (const std::string* text = parsed_.find("--until"); text != nullptr) {
    const Result<WallTime> moment = base::parse_moment(*text, around_.now);
    if (!moment)
      return Error::invalid("--until " + moment.error().message).with_hint(moment.error().hint);
    if (*moment <= around_.now)
      return Error::invalid("--until " + base::quote(*text) + " has passed")
          .with_hint("write --until 18:00, \"tomorrow 08:00\" or now+2h");
    plan.until = *moment;
  }
  return {};
}

// ---- results -----------------------------------------------------------------------------------

Result<void> SweepPlanner::add_metrics(const sweep::SpaceFile& file) {
  Plan& plan = plan_.request.plan;
  for (const std::string& text : parsed_.all("--metric")) {
    Result<core::sweep::MetricRule> rule = sweep::parse_metric(text);
    if (!rule) return std::move(rule).error();
    plan.metrics.push_back(*std::move(rule));
  }
  const std::size_t of_words = plan.metrics.size();
  for (const core::sweep::MetricRule& rule : file.metrics) {
    const auto end = plan.metrics.begin() + static_cast<std::ptrdiff_t>(of_words);
    if (std::none_of(plan.metrics.begin(), end,
                     [&](const auto& each) { return each.name == rule.name; }))
      plan.metrics.push_back(rule);
  }
  in_file_ = of_words == 0 && !file.metrics.empty();
  if (Result<void> r = runner::check_metric_rules(plan.metrics); !r) return r;
  in_file_ = false;
  const std::string* least = parsed_.find("--minimize");
  const std::string* most = parsed_.find("--maximize");
  if (least != nullptr && most != nullptr)
    return Error::invalid("--minimize and --maximize exclude each other")
        .with_hint("give one of them");
  plan.goal = file.goal;
  if (least != nullptr) plan.goal = core::sweep::Goal{*least, false};
  if (most != nullptr) plan.goal = core::sweep::Goal{*most, true};
  if (plan.goal && (plan.goal->metric.empty() || plan.goal->metric.find('=') != std::string::npos))
    return Error::invalid(base::quote(plan.goal->metric) + " is no name of a metric")
        .with_hint("--minimize val_loss --metric 'val_loss=val_loss: (\\S+)'");
  return {};
}

Result<void> SweepPlanner::add_rules() {
  Plan& plan = plan_.request.plan;
  if (const std::string* text = parsed_.find("--asha"); text != nullptr) {
    Result<core::sweep::HalvingRule> rule = core::sweep::parse_halving(*text);
    if (!rule) return std::move(rule).error().within("--asha");
    plan.halving = *std::move(rule);
  }
  if (const std::string* text = parsed_.find("--reduce"); text != nullptr) {
    const Result<core::sweep::ReduceRule> rule = core::sweep::parse_reduce(*text);
    if (!rule) return Error(rule.error()).within("--reduce");
    plan.reduce = *rule;
  }
  if (const std::string* text = parsed_.find("--target"); text != nullptr) {
    Result<core::sweep::Expression> target = core::sweep::parse_target(*text, plan);
    if (!target) return std::move(target).error().within("--target");
    plan.target = *std::move(target);
  }
  return {};
}

Result<void> SweepPlanner::add_limits() {
  Plan& plan = plan_.request.plan;
  const Result<std::optional<std::uint64_t>> parallel = number("--max-parallel", 1);
  if (!parallel) return parallel.error();
  plan.max_parallel = parallel->value_or(0);
  const Result<std::optional<std::uint64_t>> failures = number("--max-failures", 1);
  if (!failures) return failures.error();
  plan.max_failures = failures->value_or(0);
  if (parsed_.has("--fail-fast")) {
    if (plan.max_failures > 1)
      return Error::invalid("--fail-fast and --max-failures exclude each other")
          .with_evidence("--fail-fast is --max-failures 1")
          .with_hint("give one of them");
    plan.max_failures = 1;
  }
  plan.as_flags = parsed_.has("--as-flags");
  return {};
}

// ---- the job -----------------------------------------------------------------------------------

Result<void> SweepPlanner::add_job() {
  JobWords words;
  words.options = trial_words(parsed_);
  words.command = parsed_.rest;
  words.share_follows = wants_auto_gpu(parsed_);
  if (words.share_follows && parsed_.has("--cpu-only"))
    return Error::invalid("--cpu-only and --gpu contradict each other")
        .with_hint("leave one of the two out");
  if (words.share_follows && parsed_.has("--retry-gpu"))
    return Error::invalid("--gpu auto gives a trial that ran out of memory more by itself")
        .with_hint("leave --retry-gpu out");
  Result<PlannedJob> job = make_job(words, around_);
  if (!job) return std::move(job).error();
  plan_.request.plan.auto_gpu = words.share_follows;
  plan_.request.submit = std::move(job->request);
  return check_files(*plan_.request.submit.spec.detached);
}

// A comparison with a parameter that is not in use is false.
void SweepPlanner::add_keep_note() {
  const core::sweep::Space& space = plan_.request.plan.space;
  if (!space.keep()) return;
  const std::vector<std::string> names = space.keep()->names();
  for (const core::sweep::Parameter& parameter : space.parameters())
    if (parameter.when && std::find(names.begin(), names.end(), parameter.name) != names.end())
      plan_.notes.push_back("--keep compares " + parameter.name +
                            ", which only some points have; points without it are kept only if "
                            "the rest of the rule holds, such as: not (" +
                            parameter.when->text() + ") or " + space.keep()->text());
}

void SweepPlanner::add_notes() {
  const Plan& plan = plan_.request.plan;
  std::vector<std::string> wanted;
  if (plan.target) wanted = plan.target->names();
  if (plan.goal && std::find(wanted.begin(), wanted.end(), plan.goal->metric) == wanted.end())
    wanted.push_back(plan.goal->metric);
  for (const std::string& metric : wanted)
    if (!plan.metrics.empty() &&
        std::none_of(plan.metrics.begin(), plan.metrics.end(),
                     [&](const auto& rule) { return rule.name == metric; }))
      plan_.notes.push_back("no --metric finds " + metric +
                            " in the output: the program must append it to the file METE_METRICS");
  add_keep_note();
  const core::JobSpec& spec = plan_.request.submit.spec;
  // A command that names no parameter is its own filling.
  core::sweep::Params params;
  for (const std::string& name : plan.space.names())
    params.emplace_back(name, core::sweep::of_text("\x01"));
  const std::vector<std::string> names = plan.space.names();
  if (!plan.as_flags && core::sweep::fill_command(spec.command, names, params, false) ==
                            core::sweep::fill_command(spec.command, names, {}, false))
    plan_.notes.push_back("the command names no parameter: the program finds them in METE_PARAM_" +
                          core::sweep::environment_name(names.front()) +
                          " and the like, and in the file METE_PARAMS");
}

// ---- names and points --------------------------------------------------------------------------

std::string name_for(const std::vector<std::string>& command) {
  constexpr std::array<std::string_view, 9> kInterpreters{
      "python", "sh", "bash", "perl", "ruby", "node", "julia", "Rscript", "env"};
  const auto last_part = [](const std::string& path) {
    return path.substr(path.find_last_of('/') + 1);
  };
  std::string name = command.empty() ? "" : last_part(command.front());
  const bool runs_script =
      name.starts_with("python") ||
      std::find(kInterpreters.begin(), kInterpreters.end(), name) != kInterpreters.end();
  if (runs_script)
    for (std::size_t i = 1; i < command.size() && command[i] != "-c"; ++i) {
      if (command[i].starts_with("-") || command[i].find_first_of("= {") != std::string::npos)
        continue;
      name = last_part(command[i]);
      break;
    }
  if (const std::size_t dot = name.rfind('.'); dot != std::string::npos && dot > 0)
    name.resize(dot);
  constexpr std::string_view kFine =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  for (char& each : name)
    if (kFine.find(each) == std::string_view::npos) each = '-';
  name.erase(0, name.find_first_not_of("._-"));
  constexpr std::size_t kRoomForNumber = 8;
  name.resize(std::min(name.size(), core::sweep::kMaxSweepName - kRoomForNumber));
  return name.empty() ? "sweep" : name;
}

std::string free_name(const std::string& name, const std::vector<std::string>& taken) {
  std::string candidate = name;
  for (std::size_t number = 2; std::find(taken.begin(), taken.end(), candidate) != taken.end();
       ++number)
    candidate = name + "-" + std::to_string(number);
  return candidate;
}

std::vector<Point> first_points(const Plan& plan, std::size_t most) {
  constexpr std::uint64_t kMostDraws = 100'000;
  const std::uint64_t all =
      std::min(core::sweep::trials_of(plan).value_or(most), std::uint64_t{most});
  const std::optional<std::uint64_t> draws = core::sweep::draws(plan.space, plan.sampling);
  const std::uint64_t last = std::min(draws.value_or(kMostDraws), kMostDraws);
  std::vector<Point> points;
  for (std::uint64_t n = 0; n < last && points.size() < all; ++n) {
    std::optional<Point> point = core::sweep::draw(plan.space, plan.sampling, n);
    if (point && std::find(points.begin(), points.end(), *point) == points.end())
      points.push_back(*std::move(point));
  }
  return points;
}

}  // namespace mete::cli
