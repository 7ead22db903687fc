// SPDX-License-Identifier: Apache-2.0
// What the options of sbatch and srun that mean something here come to: their values in Slurm's
// notation, our words out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/slurm_options.h"

namespace mete::cli {

// Errors say where.
Result<std::vector<Word>> slurm_words(const std::vector<SlurmGiven>& given,
                                      std::vector<std::string>& warnings);

// Seconds of "90" (minutes), "10:30", "1:30:00", "2-12", "2-12:30", "2-12:30:00"; 0: no limit.
Result<std::uint64_t> parse_slurm_time(std::string_view text);

// `what` is the option as it was written.
Error slurm_refused(const std::string& what, std::string_view instead);

}  // namespace mete::cli
