// SPDX-License-Identifier: Apache-2.0
// `mete cap`: runs a program inside a memory cap. No daemon, no reservation; one grant file,
// removed with the job. The options become a plan, the plan is resolved on the cards of this
// machine, and runner/job_runner does the rest.
#include <cstdlib>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/cards_reader.h"
#include "cli/job_words.h"
#include "cli/json.h"
#include "cli/verbs.h"
#include "core/request/gpu.h"
#include "core/request/resolve.h"
#include "core/request/visible.h"
#include "runner/job_plan.h"
#include "runner/job_runner.h"

namespace mete::cli {

namespace {

constexpr std::string_view kDaemon = "mete cap neither reserves nor waits; mete run does";

std::vector<OptionSpec> cap_options() {
  std::vector<OptionSpec> all{
      kGpuOption,
      kDevicesOption,
      kGpuTypeOption,
      kCpuOnlyOption,
      kVisibleOption,
      kEnvOption,
      kChdirOption,
      {"--dry-run", "", "print the cards and bytes that the program would get, and run nothing"},
      kQuietOption,
      kOutputOption,
  };
  for (const std::string_view name : {"--procs",     "--where",       "--compute",
                                      "--cpus",      "--ram",         "--time",
                                      "--priority",  "--after",       "--array",
                                      "--retries",   "--retry-gpu",   "--requeue",
                                      "--begin",     "--deadline",    "--notify",
                                      "--notify-on", "--preemptible", "--not-preemptible",
                                      "--idle",      "--no-preempt",  "--shed",
                                      "--or-cpu",    "--tty",         "--log",
                                      "--err",       "--name",        "--no-wait",
                                      "--exec",      "--pool"})
    all.push_back({.name = name, .not_built = kDaemon});
  return all;
}
const std::vector<OptionSpec> kCapOptions = cap_options();

Result<void> resolve_shares(runner::JobPlan& plan) {
  const Result<CardsRead> read =
      read_cards(runner::driver_library(plan.parts, plan.simulated, "libnvidia-ml.so.1"));
  if (!read) return read.error();
  const char* const value = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::optional<std::string> visible =
      value == nullptr ? std::nullopt : std::optional<std::string>(value);
  Result<std::vector<core::Card>> mine = core::visible_cards(read->cards, visible);
  if (!mine) return std::move(mine).error();
  Result<std::vector<core::CardShare>> shares = core::resolve(plan.spec.request, *mine);
  if (!shares) {
    Error error = std::move(shares).error();
    const auto add = [&error](const std::string& text) {
      error.evidence += (error.evidence.empty() ? "" : "; ") + text;
    };
    if (error.code == ErrorCode::kInfeasible && mine->size() < read->cards.size())
      add("CUDA_VISIBLE_DEVICES=" + base::quote(*visible) + " hides cards");
    if (error.code == ErrorCode::kInfeasible && !read->left_out.empty()) add(read->left_out);
    return error;
  }
  plan.driver = read->driver;
  plan.cards = *std::move(shares);
  return {};
}

// Changes nothing, and reads the cards only after the options were checked: a wrong option is an
// error on every machine.
Result<runner::JobPlan> make_cap_plan(const Parsed& parsed) {
  runner::JobPlan plan;
  Result<core::Request> request = parse_request(parsed);
  if (!request) return std::move(request).error();
  plan.spec.request = *std::move(request);
  if (plan.spec.request.gpu && std::holds_alternative<core::Growing>(plan.spec.request.gpu->memory))
    return Error::invalid("--gpu " + as_written(*plan.spec.request.gpu) +
                          ": a cap alone cannot grow, since nobody counts the room")
        .with_hint("mete run --gpu " + as_written(*plan.spec.request.gpu) +
                   " -- command grows; or give one size");
  if (Result<void> r = parse_program(parsed, "cap", plan); !r) return std::move(r).error();
  // The options alone may be wrong, or need no card.
  if (plan.spec.request.gpu == core::no_gpu() ||
      (!plan.spec.request.gpu && plan.spec.request.devices.empty())) {
    Result<std::vector<core::CardShare>> none = core::resolve(plan.spec.request, {});
    if (!none) return std::move(none).error();
    return plan;
  }
  if (Result<void> r = runner::check_not_nested(); !r) return std::move(r).error();
  Result<launch::Parts> parts = launch::find_parts();
  if (!parts) return std::move(parts).error();
  plan.parts = *std::move(parts);
  const Result<bool> simulated = runner::is_simulated(plan.parts);
  if (!simulated) return simulated.error();
  plan.simulated = *simulated;
  if (Result<void> r = resolve_shares(plan); !r) return std::move(r).error();
  return plan;
}

// The document mete.cap/1.
std::string to_json(const runner::JobPlan& plan) {
  std::vector<std::string> cards;
  for (const auto& [card, from, limit] : plan.cards) {
    cards.push_back(JsonObject()
                        .number("index", card.index)
                        .text("uuid", card.uuid)
                        .text("name", card.name)
                        .text("type", card.type)
                        .number("bytes", limit.count())
                        .number("capacity_bytes", card.capacity.count())
                        .number("total_bytes", card.total.count())
                        .str());
  }
  std::vector<std::string> command;
  for (const std::string& word : plan.spec.command) command.push_back(json_string(word));
  JsonObject document;
  document.text("schema", "mete.cap/1").text("at", timestamp());
  if (plan.spec.request.gpu) document.text("request", to_string(*plan.spec.request.gpu));
  return document.raw("cards", json_array(cards)).raw("command", json_array(command)).str();
}

int run_capped(const runner::JobPlan& plan, bool quiet, const Output& output) {
  runner::JobHooks hooks;
  hooks.made = [&](const launch::GrantFile*) {
    if (!quiet && output.json()) output.say_json(to_json(plan));
    if (!quiet && !output.json()) output.say("cap: " + describe(plan));
  };
  const Result<runner::JobEnd> end = runner::run_job(plan, hooks, output.talk());
  if (!end) return output.fail(end.error(), runner::exit_code_of_launch(end.error()));
  if (!end->ended.started)
    return output.fail(runner::cannot_run(plan, end->ended), end->ended.exit_code);
  return end->ended.exit_code;
}

int run_cap(const Parsed& parsed, const Output& output) {
  const Result<runner::JobPlan> plan = make_cap_plan(parsed);
  if (!plan) return output.fail(plan.error());
  if (!parsed.has("--dry-run")) return run_capped(*plan, parsed.has("--quiet"), output);
  output.data(output.json() ? to_json(*plan) : describe(*plan));
  return kExitOk;
}

}  // namespace

const Verb kCapVerb{
    "cap",
    "run a program with a limit on its GPU memory",
    "mete cap --gpu SHARE [options] [--] command [argument...]",
    "mete cap --gpu 16G -- python train.py\n"
    "mete cap --gpu 40% -- ./server --port 8000\n"
    "mete cap --gpu 8G --devices 3,2 -- torchrun --nproc-per-node 2 train.py\n"
    "METE_SIM=1xH200 mete cap --gpu 8G -- ./program      # simulated card",
    "The program and all processes it forks share the limit. It is a limit, not a reservation: "
    "other programs can still fill the card. mete cap needs no daemon. It returns when the last "
    "process of the job has ended.\n"
    "\n"
    "Exit code: the program's own; 128+N after signal N; 64 usage, 69 can never fit on this "
    "machine, 125 mete failed, 126 and 127 as in sh.",
    kCapOptions,
    Rest::kCommand,
    run_cap,
};

}  // namespace mete::cli
