// SPDX-License-Identifier: Apache-2.0
#include "launch/environment.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace mete::launch {
namespace {

using Lines = std::vector<std::string>;

JobEnvironment two_cards() {
  JobEnvironment job;
  job.job = "cap-7";
  job.grant_path = "/state/grants/cap-7.1";
  job.visible = job.uuids = {"GPU-d", "GPU-c"};
  job.limit = Bytes::from_gib(4);
  job.preload = {"/m/libmete.so", "/m/libmete-x.so"};
  return job;
}

TEST(JobEnvironment, PinsTheCardsAndNamesTheGrant) {
  EXPECT_EQ(job_environment({"HOME=/h", "CUDA_VISIBLE_DEVICES=0"}, two_cards()),
            (Lines{"HOME=/h", "CUDA_VISIBLE_DEVICES=GPU-d,GPU-c", "CUDA_DEVICE_ORDER=PCI_BUS_ID",
                   "NVIDIA_VISIBLE_DEVICES=GPU-d,GPU-c", "LD_PRELOAD=/m/libmete.so:/m/libmete-x.so",
                   "ASAN_OPTIONS=verify_asan_link_order=0", "METE_GRANT=/state/grants/cap-7.1",
                   "METE_GPU_MEM_BYTES=4294967296", "METE_JOB_ID=cap-7", "METE_ATTEMPT=1"}));
}

TEST(JobEnvironment, ShowsIndicesToProgramsThatParseThem) {
  JobEnvironment job = two_cards();
  job.visible = {"3", "2"};
  const Lines lines = job_environment({}, job);
  EXPECT_EQ(lines.front(), "CUDA_VISIBLE_DEVICES=3,2");
  EXPECT_EQ(lines[2], "NVIDIA_VISIBLE_DEVICES=GPU-d,GPU-c");
}

TEST(JobEnvironment, KeepsTheOptionsOfASanitizer) {
  const Lines lines = job_environment({"ASAN_OPTIONS=detect_leaks=0"}, two_cards());
  EXPECT_EQ(lines.front(), "ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0");
}

TEST(JobEnvironment, ReplacesEveryCopyOfAVariable) {
  const Lines lines = job_environment({"METE_GRANT=a", "X=1", "METE_GRANT=b"}, two_cards());
  EXPECT_EQ(lines[0], "METE_GRANT=/state/grants/cap-7.1");
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                          [](const std::string& line) { return line.starts_with("METE_GRANT="); }),
            1);
}

TEST(JobEnvironment, WithoutGpuHidesCardsAndPreloadsNothing) {
  JobEnvironment job;
  job.job = "cap-7";
  EXPECT_EQ(job_environment({"METE_GRANT=x", "LD_PRELOAD=j.so"}, job),
            (Lines{"LD_PRELOAD=j.so", "CUDA_VISIBLE_DEVICES=-1", "NVIDIA_VISIBLE_DEVICES=void",
                   "METE_GPU_MEM_BYTES=0", "METE_JOB_ID=cap-7", "METE_ATTEMPT=1"}));
}

TEST(JobEnvironment, FindsSimulatedDriversFirst) {
  JobEnvironment job = two_cards();
  job.simgpu = "/m/simgpu";
  EXPECT_EQ(job_environment({}, job).back(), "LD_LIBRARY_PATH=/m/simgpu");
  EXPECT_EQ(job_environment({"LD_LIBRARY_PATH=/a"}, job).front(), "LD_LIBRARY_PATH=/m/simgpu:/a");
  EXPECT_EQ(job_environment({"LD_LIBRARY_PATH=/m/simgpu:/a"}, job).front(),
            "LD_LIBRARY_PATH=/m/simgpu:/a");
}

TEST(JobEnvironment, TakesExtraVariablesBeforeItsOwn) {
  JobEnvironment job = two_cards();
  job.extra = {{"A", "1"}, {"LD_PRELOAD", "mine.so"}};
  const Lines lines = job_environment({"A=0"}, job);
  EXPECT_EQ(lines[0], "A=1");
  EXPECT_EQ(lines[1], "LD_PRELOAD=/m/libmete.so:/m/libmete-x.so:mine.so");
}

TEST(Preload, GoesFirstButAfterASanitizer) {
  const Lines ours{"/m/libmete.so"};
  EXPECT_EQ(merge_preload("", ours), "/m/libmete.so");
  EXPECT_EQ(merge_preload("libjemalloc.so /l/libasan.so.8", ours),
            "/l/libasan.so.8:/m/libmete.so:libjemalloc.so");
  EXPECT_EQ(merge_preload("/l/libclang_rt.tsan-x86_64.so:a.so", ours),
            "/l/libclang_rt.tsan-x86_64.so:/m/libmete.so:a.so");
}

TEST(Preload, NamesEachOfOursOnce) {
  EXPECT_EQ(merge_preload("/m/libmete.so:a.so", {"/m/libmete.so"}), "/m/libmete.so:a.so");
}

TEST(Env, RefusesWhatTheGrantDecides) {
  EXPECT_EQ(*parse_env("A=b=c"), (std::pair<std::string, std::string>("A", "b=c")));
  EXPECT_EQ(parse_env("A=")->second, "");
  for (const char* bad : {"A", "=x", "", "CUDA_VISIBLE_DEVICES=0", "METE_GRANT=/x"}) {
    const auto pair = parse_env(bad);
    ASSERT_FALSE(pair) << bad;
    EXPECT_EQ(pair.error().code, ErrorCode::kInvalid);
  }
}

TEST(Environment, ARankHasTorchrunsVariablesAndItsPartOfTheGrant) {
  JobEnvironment job;
  job.grant_path = "/g";
  job.rank = {3, 4, 1, "29501"};
  const std::vector<std::string> lines = job_environment({"RANK=9", "METE_PART=7"}, job);
  for (const char* wanted : {"RANK=3", "LOCAL_RANK=3", "WORLD_SIZE=4", "MASTER_ADDR=127.0.0.1",
                             "MASTER_PORT=29501", "METE_PART=1"})
    EXPECT_EQ(std::count(lines.begin(), lines.end(), wanted), 1) << wanted;
  // A process of a Slurm script knows its own number; other processes have no such variable.
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "SLURM_PROCID=3"), 0);
  job.extra = {{"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}};
  const std::vector<std::string> slurm = job_environment({}, job);
  EXPECT_EQ(std::count(slurm.begin(), slurm.end(), "SLURM_PROCID=3"), 1);
  EXPECT_EQ(std::count(slurm.begin(), slurm.end(), "SLURM_LOCALID=3"), 1);
  // A job without ranks inside one with ranks starts anew.
  job.rank.reset();
  const std::vector<std::string> inner = job_environment({"METE_PART=7"}, job);
  EXPECT_EQ(std::count(inner.begin(), inner.end(), "METE_PART=7"), 0);
}

}  // namespace
}  // namespace mete::launch
