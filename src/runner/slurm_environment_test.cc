// SPDX-License-Identifier: Apache-2.0
#include "runner/slurm_environment.h"

#include <gtest/gtest.h>

#include <map>

namespace mete::runner {
namespace {

std::map<std::string, std::string> variables_of(const SlurmJob& job, const core::JobSpec& spec) {
  std::map<std::string, std::string> all;
  for (const auto& [name, value] : slurm_environment(job, spec)) all[name] = value;
  return all;
}

core::JobSpec spec_of(const char* array) {
  core::JobSpec spec;
  spec.name = "train";
  spec.folder = "/home/alice/x";
  if (array != nullptr) spec.array = core::parse_array(array).value();
  return spec;
}

TEST(SlurmEnvironment, OnlyScriptsWithLinesBeforeTheFirstCommand) {
  EXPECT_TRUE(has_slurm_lines("#!/bin/bash\n\n# text\n#SBATCH -J x\necho\n"));
  EXPECT_TRUE(has_slurm_lines("#!/bin/bash\n#SBATCH"));
  EXPECT_FALSE(has_slurm_lines("#!/bin/bash\necho\n#SBATCH -J x\n"));
  EXPECT_FALSE(has_slurm_lines("#!/bin/bash\n#SBATCHES\n ##SBATCH -J x\n"));
  EXPECT_FALSE(has_slurm_lines(""));
}

TEST(SlurmEnvironment, JobIdIsANumberAndOneOfItsOwnForEachElement) {
  EXPECT_EQ(slurm_job_id({12, std::nullopt}), "12");
  EXPECT_EQ(slurm_job_id({12, 3}), "120000003");
  EXPECT_EQ(slurm_job_id({1, core::kMaxElement}), "19999999");
}

TEST(SlurmEnvironment, OfAJob) {
  core::JobSpec spec = spec_of(nullptr);
  spec.request.cpus = 4;
  const auto all = variables_of({{12, std::nullopt}, 1, 2, "node7"}, spec);
  EXPECT_EQ(all.at("SLURM_JOB_ID"), "12");
  EXPECT_EQ(all.at("SLURM_JOBID"), "12");
  EXPECT_EQ(all.at("SLURM_JOB_NAME"), "train");
  EXPECT_EQ(all.at("SLURM_SUBMIT_DIR"), "/home/alice/x");
  EXPECT_EQ(all.at("SLURM_CPUS_PER_TASK"), "4");
  EXPECT_EQ(all.at("SLURM_GPUS_ON_NODE"), "2");
  EXPECT_EQ(all.at("SLURM_NTASKS"), "1");
  EXPECT_EQ(all.at("SLURM_NNODES"), "1");
  EXPECT_EQ(all.at("SLURM_JOB_NODELIST"), "node7");
  EXPECT_EQ(all.at("SLURMD_NODENAME"), "node7");
  EXPECT_FALSE(all.contains("SLURM_ARRAY_TASK_ID"));
  EXPECT_FALSE(all.contains("SLURM_RESTART_COUNT"));
  for (const auto& [name, value] : all) EXPECT_TRUE(is_slurm_variable(name)) << name;
}

TEST(SlurmEnvironment, OfAnElement) {
  const auto all = variables_of({{12, 5}, 3, 0, "node7"}, spec_of("1-9:4%2"));
  EXPECT_EQ(all.at("SLURM_ARRAY_JOB_ID"), "12");
  EXPECT_EQ(all.at("SLURM_ARRAY_TASK_ID"), "5");
  EXPECT_EQ(all.at("SLURM_RESTART_COUNT"), "2");
  EXPECT_FALSE(all.contains("SLURM_CPUS_PER_TASK"));
  EXPECT_FALSE(all.contains("SLURM_GPUS_ON_NODE"));
  const auto step = variables_of({{12, 5}, 1, 0, "node7"}, spec_of("1-10:4"));
  EXPECT_EQ(step.at("SLURM_ARRAY_TASK_COUNT"), "3");
  EXPECT_EQ(step.at("SLURM_ARRAY_TASK_MIN"), "1");
  EXPECT_EQ(step.at("SLURM_ARRAY_TASK_MAX"), "9");
  EXPECT_EQ(step.at("SLURM_ARRAY_TASK_STEP"), "4");
  const auto list = variables_of({{12, 7}, 1, 0, "node7"}, spec_of("7,3,5"));
  EXPECT_EQ(list.at("SLURM_ARRAY_TASK_COUNT"), "3");
  EXPECT_EQ(list.at("SLURM_ARRAY_TASK_MIN"), "3");
  EXPECT_EQ(list.at("SLURM_ARRAY_TASK_MAX"), "7");
}

}  // namespace
}  // namespace mete::runner
