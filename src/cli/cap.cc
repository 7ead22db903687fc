// SPDX-License-Identifier: Apache-2.0
// `mete cap`: runs a program inside a memory cap. No daemon, no reservation; one grant file, gone
// when the job is.
#include <string>

#include "cli/cap_plan.h"
#include "cli/verbs.h"
#include "runner/job_runner.h"

namespace mete::cli {

namespace {

int run_plan(const runner::JobPlan& plan, bool quiet, const Output& output) {
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
  if (!parsed.has("--dry-run")) return run_plan(*plan, parsed.has("--quiet"), output);
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
    cap_options(),
    Rest::kCommand,
    run_cap,
};

}  // namespace mete::cli
