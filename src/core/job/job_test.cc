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

TEST(JobIds, OfArraysNameTheElementToo) {
  EXPECT_EQ(*parse_job_id("12_3"), (JobId{12, 3}));
  EXPECT_EQ(*parse_job_id("12_0"), (JobId{12, 0})) << "an element may be 0";
  EXPECT_EQ(*parse_job_id("12_9999999"), (JobId{12, kMaxElement}));
  for (const char* text : {"12_", "_3", "12_x", "12_3_4", "12_-1", "12_10000000", "0_1", "12 _3",
                           "12_4294967299", "12_99999999999999999999"})
    EXPECT_FALSE(parse_job_id(text)) << text;
  for (const JobId id : {JobId{1}, JobId{12, 0}, JobId{12, 3}, JobId{UINT64_MAX, kMaxElement}})
    EXPECT_EQ(*parse_job_id(to_string(id)), id);
}

TEST(JobIds, AnArrayComesBeforeItsElementsAndTheseBeforeTheNext) {
  EXPECT_LT(JobId{12}, (JobId{12, 0}));
  EXPECT_LT((JobId{12, 2}), (JobId{12, 10}));
  EXPECT_LT((JobId{12, 10}), JobId{13});
}

TEST(Dependencies, AreNamedAsWritten) {
  for (const When when : {When::kOk, When::kAny, When::kFail})
    EXPECT_EQ(parse_when(to_string(when)), when);
  EXPECT_EQ(parse_when("failed"), std::nullopt);
}

}  // namespace
}  // namespace mete::core
