// SPDX-License-Identifier: Apache-2.0
// `mete cap`: runs a program inside a memory cap. No daemon, no reservation; one grant file, gone
// when the job is.
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <system_error>

#include "base/file.h"
#include "base/text.h"
#include "cli/cap_plan.h"
#include "cli/cap_sampler.h"
#include "cli/verbs.h"
#include "launch/environment.h"
#include "launch/grant_file.h"
#include "launch/leftovers.h"
#include "launch/state_dir.h"
#include "launch/supervise.h"
#include "node/probe.h"

namespace mete::cli {

namespace {

// What a context was measured to cost on an H200; used where it cannot be measured.
constexpr Bytes kContextFirst = Bytes::from_mib(518);
constexpr Bytes kContextMore = Bytes::from_mib(524);

std::vector<std::string> own_environment() {
  std::vector<std::string> lines;
  for (char** line = environ; line != nullptr && *line != nullptr; ++line)
    lines.emplace_back(*line);
  return lines;
}

std::string library(const CapPlan& plan, const char* name) {
  return plan.simulated ? base::join_path(plan.parts.simgpu, name) : name;
}

node::ContextCost context_cost(const CapPlan& plan, const MachineCard& card,
                               const std::string& state, const Output& output) {
  const node::ContextCost assumed{kContextFirst, kContextMore};
  if (plan.parts.probe.empty() || plan.driver.empty()) return assumed;
  const char* pipe = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
  node::ProbeRequest request;
  request.key.uuid = card.card.uuid;
  request.key.type = card.card.type;
  request.key.driver = plan.driver;
  request.key.mps = node::mps_is_active(pipe == nullptr ? "" : pipe);
  request.program = plan.parts.probe;
  request.cuda = library(plan, "libcuda.so.1");
  request.nvml = library(plan, "libnvidia-ml.so.1");
  // What was measured on simulated cards is not to be believed of real ones that share a UUID by
  // chance.
  request.cache = base::join_path(state, plan.simulated ? "context-cost-sim" : "context-cost");
  request.environment = own_environment();
  const Result<node::ContextCost> cost = node::context_cost(request, seam::system_clock());
  if (cost) return *cost;
  output.say("what a context costs could not be measured (" + cost.error().message +
             "); assuming " + to_string(assumed.first));
  return assumed;
}

Result<launch::GrantFile> make_grant(const CapPlan& plan, const Output& output) {
  const Result<std::string> state = launch::state_dir();
  if (!state) return state.error();
  const Result<std::string> folder = launch::make_grants_dir(*state);
  if (!folder) return folder.error();
  (void)launch::remove_leftovers(*folder);
  std::vector<launch::GrantedCard> cards;
  for (const core::CardShare& share : plan.shares) {
    const MachineCard& card = plan.cards[cards.size()];
    const node::ContextCost cost = context_cost(plan, card, *state, output);
    cards.push_back({card.card.index, card.card.uuid, share.from, share.limit, card.total,
                     cost.first, cost.more});
  }
  return launch::GrantFile::make(*folder, cards);
}

launch::JobEnvironment job_environment_of(const CapPlan& plan, const launch::GrantFile* grant) {
  launch::JobEnvironment job;
  job.job = grant != nullptr ? grant->job() : "cap-" + std::to_string(getpid());
  if (grant != nullptr) job.grant_path = grant->path();
  for (const core::CardShare& share : plan.shares)
    job.cards.push_back({share.card.index, share.card.uuid, share.limit});
  job.visible_by_index = plan.visible_by_index;
  job.preload = plan.parts.preload;
  if (plan.simulated) job.simgpu = plan.parts.simgpu;
  job.extra = plan.extra_environment;
  return job;
}

// The refusal itself is an ordinary error inside the program; here is why it may have failed.
void explain_failure(const CapPlan& plan, abi::Grant& grant, const Output& output) {
  for (std::uint32_t c = 0; c < plan.shares.size() && c < abi::kMaxCards; ++c) {
    const abi::Account& account = grant.accounts[0][c];
    const std::uint64_t refusals = account.refusals.load();
    if (refusals == 0) continue;
    const std::uint64_t peak_units = std::min(account.peak_units.load(), abi::kMaxUnits);
    output.say("hint: the program was refused GPU memory " + std::to_string(refusals) +
               (refusals == 1 ? " time" : " times") + ": its cap on card " +
               std::to_string(plan.cards[c].card.index) + " is " + to_string(plan.shares[c].limit) +
               ", its peak was " + to_string(Bytes::from_bytes(peak_units * abi::kUnitBytes)) +
               "; a larger --gpu may help");
  }
}

// Memory that the meter did not see being taken: it was counted against the cap, but could not be
// refused.
void report_escapes(const abi::Grant& grant, const Output& output) {
  const std::uint64_t escapes = grant.header.escapes.load();
  if (escapes == 0) return;
  output.say("warning: " + std::to_string(escapes) + (escapes == 1 ? " process" : " processes") +
             " of the job held GPU memory outside the cap (pid " +
             std::to_string(grant.header.escape_pid.load()) + ", up to " +
             to_string(Bytes::from_bytes(grant.header.escape_bytes.load())) +
             "): was LD_PRELOAD dropped, or the program linked statically?");
}

int cannot_run(const CapPlan& plan, const launch::Ended& ended, const Output& output) {
  const std::string why = std::generic_category().message(ended.start_error);
  Error error =
      ended.exit_code == kExitNotFound
          ? Error::not_found("cannot run " + base::quote(plan.command.front()) + ": not found")
          : Error::io("cannot run " + base::quote(plan.command.front()));
  error.evidence = why;
  return output.fail(error, ended.exit_code);
}

// The sampler of a job, started again a few times when it dies: the cap holds without it, but what
// the driver takes unasked is then seen by nobody.
class Sampler {
 public:
  Sampler(const CapPlan& plan, const launch::GrantFile& grant)
      : grant_(grant), nvml_(library(plan, "libnvidia-ml.so.1")) {}

  Result<pid_t> start() {
    Result<launch::HelperProcess> started = start_sampler(grant_.grant(), grant_.path(), nvml_);
    if (!started) return std::move(started).error();
    process_.reset();
    process_.emplace(*std::move(started));
    return process_->pid();
  }

  pid_t start_again() {
    process_->was_reaped();
    if (++deaths_ > kMaxDeaths) return -1;
    const Result<pid_t> pid = start();
    return pid ? *pid : -1;
  }

 private:
  static constexpr int kMaxDeaths = 5;

  const launch::GrantFile& grant_;
  std::string nvml_;
  std::optional<launch::HelperProcess> process_;
  int deaths_ = 0;
};

std::string real_path(const std::string& path) {
  char buffer[PATH_MAX];
  return realpath(path.c_str(), buffer) != nullptr ? buffer : "";
}

Result<launch::Ended> run_job(const CapPlan& plan, const launch::GrantFile* grant) {
  std::optional<Sampler> sampler;
  launch::Outsiders outsiders;
  if (grant != nullptr) {
    sampler.emplace(plan, *grant);
    const Result<pid_t> pid = sampler->start();
    if (!pid) return pid.error();
    outsiders.pids.push_back(*pid);
  }
  if (plan.simulated)
    outsiders.program = real_path(base::join_path(plan.parts.simgpu, "mete-simgpu"));
  const launch::Program program{
      plan.command, launch::job_environment(own_environment(), job_environment_of(plan, grant)),
      plan.folder};
  return launch::run_program(program, outsiders, [&](pid_t) { return sampler->start_again(); });
}

int run_plan(const CapPlan& plan, bool quiet, const Output& output) {
  std::optional<launch::GrantFile> grant;
  if (!plan.shares.empty()) {
    Result<launch::GrantFile> made = make_grant(plan, output);
    if (!made) return output.fail(made.error());
    grant.emplace(*std::move(made));
  }
  if (!quiet && output.json()) output.say_json(to_json(plan));
  if (!quiet && !output.json()) output.say("cap: " + describe(plan));
  const Result<launch::Ended> ended = run_job(plan, grant ? &*grant : nullptr);
  if (!ended) {
    Error error = Error::io("the program cannot be started").with_evidence(ended.error().message);
    return output.fail(error);
  }
  if (!ended->started) return cannot_run(plan, *ended, output);
  if (ended->exit_code != 0 && grant) explain_failure(plan, grant->grant(), output);
  if (grant) report_escapes(grant->grant(), output);
  return ended->exit_code;
}

int run_cap(const Parsed& parsed, const Output& output) {
  const Result<CapPlan> plan = make_cap_plan(parsed);
  if (!plan) return output.fail(plan.error());
  if (!parsed.has("--dry-run")) return run_plan(*plan, parsed.has("--quiet"), output);
  output.data(output.json() ? to_json(*plan) : describe(*plan));
  return kExitOk;
}

}  // namespace

const Verb kCapVerb{
    "cap",
    "run a program inside a share of a card's memory",
    "mete cap --gpu SHARE [options] [--] command [argument...]",
    "mete cap --gpu 16G -- python train.py\n"
    "mete cap --gpu 40% -- ./server --port 8000\n"
    "mete cap --gpu 2x8G --devices 3,2 -- torchrun --nproc-per-node 2 train.py\n"
    "METE_SIM=1xH200 mete cap --gpu 8G -- ./program      # simulated card",
    "The program and all processes it forks share the cap. It is a limit and not a reservation:\n"
    "others may still fill the card. The program's exit code is returned, 128+N after signal N;\n"
    "64 usage, 69 can never fit here, 125 mete failed, 126 and 127 as in sh. mete stays until the\n"
    "last process of the job is gone.",
    cap_options(),
    Rest::kCommand,
    run_cap,
};

}  // namespace mete::cli
