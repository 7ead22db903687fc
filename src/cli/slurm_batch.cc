// SPDX-License-Identifier: Apache-2.0
// sbatch: `mete submit` of a script, with options in Slurm's words. See slurm.h.
#include <unistd.h>

#include <optional>

#include "base/file.h"
#include "base/text.h"
#include "cli/slurm.h"
#include "cli/slurm_options.h"
#include "cli/submit.h"
#include "cli/verbs.h"

namespace mete::cli {

namespace {

// The script: --wrap, a file, or else what standard input has.
Result<Script> script_of(const SlurmOptions& options, const SlurmWords& rest) {
  if (const SlurmGiven* wrap = options.find("wrap"); wrap != nullptr) {
    if (!rest.empty())
      return Error::invalid("sbatch --wrap and a script contradict each other")
          .with_hint("leave one of the two out");
    return Script{
        "wrap", "#!/bin/sh\n# This script was created by sbatch --wrap.\n\n" + wrap->value + "\n"};
  }
  if (!rest.empty()) return read_script(rest.front());
  if (isatty(STDIN_FILENO) != 0)
    return Error::invalid("sbatch names no script").with_hint("sbatch train.sh");
  Result<Script> script = read_script("/dev/stdin");
  if (script) script->path = "sbatch";
  return script;
}

Parsed parsed_of(std::vector<std::string> rest) {
  Parsed parsed;
  parsed.rest = std::move(rest);
  return parsed;
}

}  // namespace

int run_sbatch(const SlurmWords& words, const Output& output) {
  SlurmOptions options;
  Result<SlurmWords> rest = options.take(kSbatch, words);
  if (!rest) return output.fail(rest.error());
  const Result<Script> script = script_of(options, *rest);
  // As a bad file: there is none, or it is no script.
  if (!script) return output.fail(script.error(), kExitBadFile);
  const bool quiet = options.has("quiet"), parsable = options.has("parsable");
  const bool waits = options.has("wait");
  for (const char* own : {"wrap", "quiet", "parsable", "wait"}) options.remove(own);
  if (!rest->empty()) rest->erase(rest->begin());
  const Parsed nothing;
  SubmitPlanner planner(nothing, Surroundings::ours());
  Result<SubmitPlan> plan = planner.plan_batch(*script, *rest, std::move(options));
  if (!plan) return output.fail(plan.error(), planner.exit_code(plan.error()));
  if (!quiet)
    for (const std::string& warning : plan->warnings) output.say(warning);
  std::optional<core::JobId> id;
  const int code = submit_plan(*std::move(plan), output, [&](const wire::SubmitReply& reply) {
    id = reply.id;
    return (parsable ? "" : "Submitted batch job ") + to_string(reply.id);
  });
  if (code != kExitOk || !waits || !id) return code;
  return kWaitVerb.run(parsed_of({to_string(*id)}), Output(Format::kText, [](std::string_view) {}));
}

}  // namespace mete::cli
