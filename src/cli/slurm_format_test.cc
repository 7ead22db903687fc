// SPDX-License-Identifier: Apache-2.0
#include "cli/slurm_format.h"

#include <gtest/gtest.h>

#include "cli/slurm_options.h"

namespace mete::cli {
namespace {

std::string line(std::string_view format) {
  const Result<std::string> text =
      slurm_line(format, [](char letter) -> std::optional<std::string> {
        if (letter == 'i') return "12";
        if (letter == 'j') return "training";
        return std::nullopt;
      });
  return text ? *text : text.error().message;
}

TEST(SlurmLine, FillsAndCutsFields) {
  EXPECT_EQ(line("%i %j"), "12 training");
  EXPECT_EQ(line("%.5i|%5i|%.5j"), "   12|12   |train");
  EXPECT_EQ(line("100%% %i,"), "100% 12,");
  EXPECT_EQ(line("%i %X"), "the format has a field that is not known here: '%X'");
  EXPECT_EQ(line("%"), "the format has a field that is not known here: '%'");
  EXPECT_EQ(line("%99999999999999i"), "the format has a field that is not known here: '%99999'");
}

TEST(SlurmSpan, IsAsLongAsItMustBe) {
  EXPECT_EQ(slurm_span(0), "0:00");
  EXPECT_EQ(slurm_span(101), "1:41");
  EXPECT_EQ(slurm_span(7'380), "2:03:00");
  EXPECT_EQ(slurm_span(93'784), "1-02:03:04");
  EXPECT_EQ(slurm_span(-5), "0:00");
  EXPECT_EQ(slurm_limit({}), "UNLIMITED");
  EXPECT_EQ(slurm_time({}), "N/A");
}

TEST(SlurmId, IsAJobOrAnElement) {
  EXPECT_EQ(*parse_slurm_id("12"), (core::JobId{12}));
  EXPECT_EQ(*parse_slurm_id("12_3"), (core::JobId{12, 3}));
  EXPECT_EQ(*parse_slurm_id("120000003"), (core::JobId{12, 3})) << "as SLURM_JOB_ID has it";
  for (const char* wrong : {"", "0", "x", "12_", "12_x", "_3", "-1", "12_99999999999"})
    EXPECT_FALSE(parse_slurm_id(wrong).ok()) << wrong;
}

TEST(SlurmHosts, AreAList) {
  EXPECT_EQ(*slurm_hosts("a"), "a");
  EXPECT_EQ(*slurm_hosts("a,b"), "a\nb");
  EXPECT_EQ(*slurm_hosts("n[08-10,12],x"), "n08\nn09\nn10\nn12\nx");
  EXPECT_EQ(*slurm_hosts("x,n[1-2]"), "x\nn1\nn2");
  EXPECT_EQ(*slurm_hosts(""), "");
  for (const char* wrong : {"n[1-2", "n[x]", "n[3-1]", "n[1-2]x", "n[0-99999]"})
    EXPECT_FALSE(slurm_hosts(wrong).ok()) << wrong;
}

TEST(SlurmState, HasANameForEachState) {
  core::Job job;
  EXPECT_EQ(slurm_state(job).shortly, "PD");
  job.state = core::JobState::kParked;
  EXPECT_EQ(slurm_state(job).name, "SUSPENDED");
  job.state = core::JobState::kEnded;
  job.outcome = core::Outcome::kTimeout;
  EXPECT_EQ(slurm_state(job).shortly, "TO");
}

TEST(SlurmCommandLine, EndsAtTheFirstWord) {
  SlurmOptions options;
  const auto rest = options.take(kSrun, {"-n4", "--gpus=2", "-l", "-K1", "python", "-c", "x"});
  ASSERT_TRUE(rest.ok()) << rest.error().message;
  EXPECT_EQ(*rest, (std::vector<std::string>{"python", "-c", "x"}));
  EXPECT_EQ(options.value_of("ntasks"), "4");
  EXPECT_TRUE(options.has("label"));
  EXPECT_EQ(*slurm_tasks(options, 2), 4u);
  SlurmOptions sbatch;
  EXPECT_EQ(*sbatch.take(kSbatch, {"-Q", "-W", "-n", "2", "--", "-x"}),
            (std::vector<std::string>{"-x"}));
  EXPECT_EQ(SlurmOptions().take(kSbatch, {"--label", "x"}).error().message,
            "sbatch '--label': sbatch has no such option");
  EXPECT_EQ(SlurmOptions().take(kSrun, {"--gpus"}).error().message, "srun --gpus needs a value");
}

}  // namespace
}  // namespace mete::cli
