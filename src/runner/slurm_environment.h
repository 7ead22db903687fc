// SPDX-License-Identifier: Apache-2.0
// The environment of scripts that were written for Slurm: the variables of sbatch that scripts
// read, with their meaning here. Pure. Only for scripts with #SBATCH lines and jobs of sbatch:
// other programs would conclude that they run under Slurm. docs/guide/queue.md has the list.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/job/job.h"

namespace mete::runner {

// Whether a #SBATCH line precedes the first command; Slurm ignores later ones.
bool has_slurm_lines(std::string_view script);
// In the environment of a job that was submitted by sbatch: how many tasks its `srun` starts.
inline constexpr char kSlurmTasks[] = "SLURM_METE_TASKS";

struct SlurmJob {
  core::JobId id;
  std::uint32_t attempt = 1;
  std::size_t cards = 0;
  std::string host;
  std::uint32_t tasks = 1;  // that `srun` starts
};

// Always a number, since programs compute with it. Element 3 of array 12 has 120000003: the array's
// number, then the element in seven digits.
std::string slurm_job_id(core::JobId id);

std::vector<std::pair<std::string, std::string>> slurm_environment(const SlurmJob& job,
                                                                   const core::JobSpec& spec);

// Variables of the submitting shell that belong to another job.
bool is_slurm_variable(std::string_view line);

}  // namespace mete::runner
