// SPDX-License-Identifier: Apache-2.0
// What a script that was written for Slurm finds in its environment: the variables of sbatch that
// scripts ask for, with what they mean here. Pure. Only for scripts with #SBATCH lines: to other
// programs such variables would say that they run below Slurm. docs/guide/queue.md has the list.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/job/job.h"

namespace mete::runner {

// Whether there is such a line before the first command, where alone they are read.
bool has_slurm_lines(std::string_view script);

struct SlurmJob {
  core::JobId id;
  std::uint32_t attempt = 1;
  std::size_t cards = 0;
  std::string host;
};

// A number in every case, since programs compute with it: of element 3 of array 12 it is 120000003,
// the element in seven digits behind the array's.
std::string slurm_job_id(core::JobId id);

std::vector<std::pair<std::string, std::string>> slurm_environment(const SlurmJob& job,
                                                                   const core::JobSpec& spec);

// Of the shell that submitted it, and then of another job.
bool is_slurm_variable(std::string_view line);

}  // namespace mete::runner
