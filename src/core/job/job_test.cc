// SPDX-License-Identifier: Apache-2.0
#include "core/job/job.h"

#include <gtest/gtest.h>

namespace mete::core {
namespace {

TEST(Job, NamesReadBack) {
  for (int i = 0; i < 8; ++i) {
    const auto state = static_cast<JobState>(i);
    EXPECT_EQ(parse_job_state(to_string(state)), state);
  }
  for (int i = 0; i < 12; ++i) {
    const auto outcome = static_cast<Outcome>(i);
    EXPECT_EQ(parse_outcome(to_string(outcome)), outcome);
  }
  EXPECT_EQ(to_string(Reason::kRetry), "retry");
  EXPECT_EQ(parse_job_state("runing"), std::nullopt);
}

TEST(Job, NothingFollowsTheEnd) {
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(may_follow(JobState::kEnded, static_cast<JobState>(i)));
}

TEST(Job, StatesFollowEachOtherAsWritten) {
  EXPECT_TRUE(may_follow(JobState::kPending, JobState::kStarting));
  EXPECT_TRUE(may_follow(JobState::kStarting, JobState::kPending));
  EXPECT_TRUE(may_follow(JobState::kStopping, JobState::kEnded));
  EXPECT_FALSE(may_follow(JobState::kPending, JobState::kRunning));
  EXPECT_FALSE(may_follow(JobState::kStopping, JobState::kRunning));
}

TEST(JobIds, AreNumbersFromOne) {
  EXPECT_EQ(parse_job_id("12")->number, 12u);
  for (const char* text : {"", "0", "-1", "12x", "99999999999999999999"})
    EXPECT_FALSE(parse_job_id(text)) << text;
}

}  // namespace
}  // namespace mete::core
