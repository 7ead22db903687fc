// SPDX-License-Identifier: Apache-2.0
// See slurm_environment.h.
#include "runner/slurm_environment.h"

#include <algorithm>

#include "base/text.h"

namespace mete::runner {

namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

constexpr std::size_t kElementDigits = 7;
static_assert(core::kMaxElement < 10'000'000);

void add_array(const SlurmJob& job, const core::JobSpec& spec, Variables& variables) {
  variables.emplace_back("SLURM_ARRAY_JOB_ID", std::to_string(job.id.number));
  variables.emplace_back("SLURM_ARRAY_TASK_ID", std::to_string(*job.id.element));
  if (!spec.array || spec.array->ranges.empty()) return;
  const std::vector<std::uint32_t> elements = core::elements_of(*spec.array);
  const auto [least, most] = std::minmax_element(elements.begin(), elements.end());
  variables.emplace_back("SLURM_ARRAY_TASK_COUNT", std::to_string(elements.size()));
  variables.emplace_back("SLURM_ARRAY_TASK_MIN", std::to_string(*least));
  variables.emplace_back("SLURM_ARRAY_TASK_MAX", std::to_string(*most));
  // Several ranges have no common step.
  const std::uint32_t step = spec.array->ranges.size() == 1 ? spec.array->ranges.front().step : 1;
  variables.emplace_back("SLURM_ARRAY_TASK_STEP", std::to_string(step));
}

}  // namespace

bool has_slurm_lines(std::string_view script) {
  for (const std::string_view line : base::split(script, '\n')) {
    if (!line.starts_with("#") && !base::trim(line).empty()) return false;
    constexpr std::string_view kMark = "#SBATCH";
    if (line.starts_with(kMark) &&
        (line.size() == kMark.size() || line[kMark.size()] == ' ' || line[kMark.size()] == '\t'))
      return true;
  }
  return false;
}

std::string slurm_job_id(core::JobId id) {
  std::string text = std::to_string(id.number);
  if (!id.element) return text;
  const std::string element = std::to_string(*id.element);
  return text.append(kElementDigits - std::min(kElementDigits, element.size()), '0') + element;
}

Variables slurm_environment(const SlurmJob& job, const core::JobSpec& spec) {
  const std::string id = slurm_job_id(job.id);
  const std::uint32_t tasks = std::max(spec.request.procs, std::max(1u, job.tasks));
  Variables variables{{"SLURM_JOB_ID", id},
                      {"SLURM_JOBID", id},
                      {"SLURM_JOB_NAME", spec.name},
                      {"SLURM_JOB_USER", spec.user},
                      {"SLURM_JOB_UID", std::to_string(spec.uid)},
                      {"SLURM_SUBMIT_DIR", spec.folder},
                      {"SLURM_SUBMIT_HOST", job.host},
                      {"SLURM_NTASKS", std::to_string(tasks)},
                      {"SLURM_NPROCS", std::to_string(tasks)},
                      {"SLURM_TASKS_PER_NODE", std::to_string(tasks)},
                      {"SLURM_PROCID", "0"},
                      {"SLURM_LOCALID", "0"},
                      {"SLURM_NODEID", "0"},
                      {"SLURM_NNODES", "1"},
                      {"SLURM_JOB_NUM_NODES", "1"},
                      {"SLURMD_NODENAME", job.host},
                      {"SLURM_JOB_NODELIST", job.host},
                      {"SLURM_NODELIST", job.host}};
  if (job.id.element) add_array(job, spec, variables);
  if (spec.request.cpus)
    variables.emplace_back("SLURM_CPUS_PER_TASK",
                           std::to_string(std::max(1u, *spec.request.cpus / tasks)));
  if (job.cards != 0) variables.emplace_back("SLURM_GPUS_ON_NODE", std::to_string(job.cards));
  if (job.attempt > 1)
    variables.emplace_back("SLURM_RESTART_COUNT", std::to_string(job.attempt - 1));
  return variables;
}

bool is_slurm_variable(std::string_view line) {
  if (line.starts_with(std::string(kSlurmTasks) + "=")) return false;  // it is this job's
  return line.starts_with("SLURM_") || line.starts_with("SLURMD_");
}

}  // namespace mete::runner
