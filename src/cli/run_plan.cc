// SPDX-License-Identifier: Apache-2.0
// See run_plan.h.
#include "cli/run_plan.h"

#include <array>

#include "base/text.h"
#include "cli/job_words.h"
#include "cli/json.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "core/request/gpu.h"

namespace mete::cli {

namespace {

// Options for jobs without a terminal.
constexpr OptionSpec of_submit(std::string_view name, std::string_view value) {
  return {.name = name, .value = value, .other_verb = "mete submit"};
}

constexpr std::array kRunPlanOptions{
    kGpuOption,
    kDevicesOption,
    kGpuTypeOption,
    kWhereOption,
    kCpuOnlyOption,
    kOrCpuOption,
    kProcsOption,
    kCpusOption,
    kRamOption,
    kTimeOption,
    kPriorityOption,
    kNoWaitOption,
    kDryRunOption,
    OptionSpec{"--exec", "",
               "replace mete with the program instead of starting it as a child: no hints, no "
               "--time, and mete does not learn the exit code"},
    kNameOption,
    kVisibleOption,
    kEnvOption,
    kChdirOption,
    kQuietOption,
    kOutputOption,
    OptionSpec::later("--compute", "SHARE", "it comes with MPS support"),
    of_submit("--after", "ID"),
    of_submit("--array", "RANGE"),
    of_submit("--retries", "N"),
    of_submit("--retry-gpu", "SHARE"),
    of_submit("--requeue", ""),
    of_submit("--begin", "TIME"),
    of_submit("--deadline", "TIME"),
    kNotifyOption,
    kNotifyOnOption,
    kPreemptibleOption,
    kNotPreemptibleOption,
    kIdleOption,
    kNoPreemptOption,
    kShedOption,
    of_submit("--hold", ""),
    of_submit("--print", ""),
    of_submit("--label", "KEY=VALUE"),
    of_submit("--tty", ""),
    of_submit("--log", "FILE"),
    of_submit("--err", "FILE"),
    OptionSpec::later("--pool", "NAME", "it comes with Slurm support"),
};

// The part of a command that lists show: the first of thousands of file names are enough, and a
// request has a limit.
std::vector<std::string> shown(const std::vector<std::string>& command) {
  constexpr std::size_t kMost = 16 << 10;
  std::vector<std::string> words;
  std::size_t left = kMost;
  for (const std::string& word : command) {
    if (word.size() + 1 > left) {
      words.push_back(word.substr(0, left) + "…");
      break;
    }
    words.push_back(word);
    left -= word.size() + 1;
  }
  return words;
}

}  // namespace

std::span<const OptionSpec> run_options() { return kRunPlanOptions; }

Result<RunPlan> make_run_plan(const Parsed& parsed) {
  RunPlan plan;
  core::JobSpec& spec = plan.job.spec;
  Result<core::Request> request = parse_request(parsed);
  if (!request) return std::move(request).error();
  spec.request = *std::move(request);
  if (Result<void> r = parse_program(parsed, "run", plan.job); !r) return std::move(r).error();
  if (Result<void> r = parse_limits(parsed, spec); !r) return std::move(r).error();
  if (Result<void> r = check_share_is_said(spec.request); !r) return std::move(r).error();
  if (Result<void> r = check_limits(spec); !r) return std::move(r).error();
  if (spec.command.empty()) spec.command = {"-"};  // a dry run without a command
  Result<std::string> name = job_name(parsed, spec.command.front());
  if (!name) return std::move(name).error();
  spec.name = *std::move(name);
  plan.wait = !parsed.has("--no-wait");
  plan.exec = parsed.has("--exec");
  plan.quiet = parsed.has("--quiet");
  if (plan.exec && (spec.request.procs > 1 || spec.time_s))
    return Error::invalid(std::string("--exec and ") +
                          (spec.request.procs > 1 ? "--procs" : "--time") +
                          " contradict each other: nobody is left to do it")
        .with_hint("leave --exec out");
  if (plan.exec && core::is_parkable(spec))
    return Error::invalid(
               "--exec contradicts --preemptible, --idle and shares that grow: no process "
               "is left that could park the job")
        .with_hint("leave --exec out");
  if (Result<void> r = runner::check_not_nested(); !r && spec.request.gpu != core::no_gpu())
    return std::move(r).error();
  return plan;
}

wire::RunRequest request_of(const RunPlan& plan) {
  wire::RunRequest request;
  request.spec = plan.job.spec;
  request.spec.command = shown(plan.job.spec.command);
  if (request.spec.folder.empty()) request.spec.folder = current_folder();
  request.wait = plan.wait;
  return request;
}

std::string grant_json(const runner::JobPlan& plan, const std::string& id) {
  std::vector<std::string> cards;
  for (const core::CardShare& share : plan.cards)
    cards.push_back(JsonObject()
                        .number("index", share.card.index)
                        .text("uuid", share.card.uuid)
                        .text("name", share.card.name)
                        .number("bytes", share.limit.count())
                        .str());
  return JsonObject()
      .text("schema", "mete.run/1")
      .text("at", timestamp())
      .text("id", id)
      .raw("cards", json_array(cards))
      .str();
}

}  // namespace mete::cli
