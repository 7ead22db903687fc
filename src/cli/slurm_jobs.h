// SPDX-License-Identifier: Apache-2.0
// Which jobs squeue, scancel and scontrol mean, and facts about a job as Slurm names them: words
// and options in, jobs of the daemon out. See slurm.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/slurm.h"
#include "cli/slurm_options.h"
#include "core/job/job.h"
#include "runner/daemon_client.h"
#include "wire/job.h"
#include "wire/show.h"

namespace mete::cli {

constexpr std::string_view kSlurmPartition = "mete";

// Takes the options of the program and returns the other words. Options may stand between words, as
// everywhere in Slurm. invalid, unsupported: an option that is unknown or refused.
Result<SlurmWords> slurm_plain_words(const SlurmProgram& program, SlurmWords words,
                                     SlurmOptions& options);
// The value of an option that is a list: "a,b".
std::vector<std::string> slurm_list(const SlurmOptions& options, std::string_view name);
std::string slurm_upper(std::string text);

// A choice of jobs; empty lists: all.
struct SlurmChosen {
  std::vector<std::string> users;   // names or numbers
  std::vector<std::string> names;   // patterns of the shell
  std::vector<std::string> states;  // "PD", "RUNNING"; in capitals
  std::vector<core::JobId> ids;

  bool wants(const core::Job& job) const;
  // Whether jobs that have ended may be chosen.
  bool ended() const;
};
Result<SlurmChosen> slurm_chosen(const SlurmOptions& options, const std::vector<std::string>& ids);

// The jobs that words name: "12", "12_3", "12,13", "12_[1-3]".
Result<std::vector<core::JobId>> slurm_ids(const SlurmWords& words);

// Limits, folder and dependencies of a job are in `show` alone.
enum class SlurmDetails { kListed, kShown };
using SlurmJobs = std::vector<wire::JobView>;
// Without a daemon there are no jobs.
Result<SlurmJobs> slurm_jobs(const SlurmChosen& chosen,
                             SlurmDetails details = SlurmDetails::kListed);
Result<wire::ShowDocument> slurm_show(runner::DaemonClient& client, core::JobId id);

std::int64_t slurm_seconds_used(const core::Job& job, WallTime now);
std::string slurm_gres(const core::Job& job);
std::string slurm_dependency(const core::Job& job);
std::optional<WallTime> slurm_start(const wire::JobView& view);
// The end, or for a running job with a limit the time when the limit ends it.
std::optional<WallTime> slurm_end(const core::Job& job);
std::string slurm_reason_of(const wire::JobView& view);

}  // namespace mete::cli
