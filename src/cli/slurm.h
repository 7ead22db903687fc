// SPDX-License-Identifier: Apache-2.0
// The programs of Slurm that scripts call, for a machine without Slurm: each takes the words after
// its name and returns its exit code. `mete slurm NAME ...` runs them; so does a link of that name
// to mete (share/mete/slurm).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/output.h"

namespace mete::cli {

using SlurmWords = std::vector<std::string>;

int run_srun(const SlurmWords& words, const Output& output);
int run_sbatch(const SlurmWords& words, const Output& output);
int run_squeue(const SlurmWords& words, const Output& output);
int run_scancel(const SlurmWords& words, const Output& output);
int run_sinfo(const SlurmWords& words, const Output& output);
int run_scontrol(const SlurmWords& words, const Output& output);

// Whether a program of that name is one of these.
bool is_slurm_program(std::string_view name);

}  // namespace mete::cli
