// SPDX-License-Identifier: Apache-2.0
// `mete slurm`: see slurm.h.
#include "cli/slurm.h"

#include <algorithm>
#include <array>

#include "cli/help.h"
#include "cli/shipped.h"
#include "cli/subword.h"
#include "cli/verbs.h"

namespace mete::cli {

namespace {

struct Program {
  std::string_view name;
  int (*run)(const SlurmWords& words, const Output& output);
};
constexpr std::array kPrograms{
    Program{"srun", run_srun},     Program{"sbatch", run_sbatch},
    Program{"squeue", run_squeue}, Program{"scancel", run_scancel},
    Program{"sinfo", run_sinfo},   Program{"scontrol", run_scontrol},
};

const Program* find_program(std::string_view name) {
  const auto* const found = std::find_if(kPrograms.begin(), kPrograms.end(),
                                         [&](const Program& each) { return each.name == name; });
  return found == kPrograms.end() ? nullptr : found;
}

int run_slurm(const Parsed& parsed, const Output& output) {
  const Result<std::string> word = sub_word(
      "slurm", parsed.rest, {"srun", "sbatch", "squeue", "scancel", "sinfo", "scontrol", "path"});
  if (!word) return output.fail(word.error());
  if (*word == "path") {
    const Result<std::string> folder = shipped_path("slurm");
    if (!folder) return output.fail(folder.error());
    output.data(*folder);
    return kExitOk;
  }
  const SlurmWords words(parsed.rest.begin() + 1, parsed.rest.end());
  if (!words.empty() && (words.front() == "--help" || words.front() == "--usage")) {
    output.data(verb_help(kSlurmVerb));
    return kExitOk;
  }
  if (!words.empty() && (words.front() == "--version" || words.front() == "-V"))
    return kVersionVerb.run(Parsed(), output);
  return find_program(*word)->run(words, output);
}

}  // namespace

bool is_slurm_program(std::string_view name) { return find_program(name) != nullptr; }

const Verb kSlurmVerb{
    "slurm",
    "srun, sbatch, squeue and the like, for scripts written for Slurm",
    "mete slurm srun|sbatch|squeue|scancel|sinfo|scontrol [word...]\n"
    "mete slurm path",
    "PATH=$(mete slurm path):$PATH        # the six programs, under their names\n"
    "mete slurm sbatch --gpus=1 --wrap='python train.py'\n"
    "mete slurm squeue --me -o '%i %j %T %M'",
    "For machines without Slurm. The folder share/mete/slurm has the six programs as links; in "
    "front of PATH, it makes scripts work that call them. sbatch is mete submit, srun is mete run; "
    "inside a job srun starts the tasks of the job, with SLURM_PROCID, SLURM_LOCALID, SLURM_NTASKS "
    "and the like set. An option that needs what is not there is refused, with the line of the "
    "script; an option without a meaning here is named in a warning. See mete-slurm(7).",
    {},
    Rest::kCommand,
    run_slurm,
    {"srun", "sbatch", "squeue", "scancel", "sinfo", "scontrol", "path"},
};

}  // namespace mete::cli
