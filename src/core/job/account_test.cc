// SPDX-License-Identifier: Apache-2.0
#include "core/job/account.h"

#include <gtest/gtest.h>

#include "core/test/state_world.h"

namespace mete::core {
namespace {

constexpr std::uint64_t kKb = 1'000;

JobSpec with_content(const std::string& content, std::uint64_t bytes) {
  JobSpec spec;
  spec.name = "train";
  spec.user = "alice";
  spec.command_content = content;
  spec.command_bytes = bytes;
  return spec;
}

Job job_of(std::uint64_t number, const JobSpec& spec, std::optional<std::uint32_t> element = {}) {
  Job job;
  job.id = {number, element};
  job.spec = spec;
  return job;
}

TEST(Account, CountsWhatIsSaidAndWhatIsKeptElsewhere) {
  Account account;
  const Job job = job_of(1, with_content("aa", 100 * kKb));
  const std::uint64_t more = account.more_by(*job.spec, 1);
  EXPECT_GE(more, 100 * kKb + kJobBytes);
  account.hold(job);
  EXPECT_EQ(account.bytes(), more);
  account.drop(job);
  EXPECT_EQ(account.bytes(), 0u);
}

TEST(Account, WhatIsSharedCountsOnce) {
  Account account;
  const Job first = job_of(1, with_content("aa", 100 * kKb)),
            second = job_of(2, with_content("aa", 100 * kKb));
  account.hold(first);
  account.hold(second);
  EXPECT_LT(account.bytes(), 110 * kKb);
  account.drop(first);
  EXPECT_GE(account.bytes(), 100 * kKb) << "the other one has it still";
  account.drop(second);
  EXPECT_EQ(account.bytes(), 0u);
}

TEST(Account, AnArrayHasOneSpec) {
  Account account;
  JobSpec spec = with_content("", 0);
  spec.folder = std::string(10 * kKb, 'x');
  const std::uint64_t whole = account.more_by(spec, 100);
  for (std::uint32_t i = 0; i < 100; ++i) account.hold(job_of(7, spec, i));
  EXPECT_EQ(account.bytes(), whole);
  EXPECT_LT(whole, 100 * kJobBytes + 11 * kKb);
  EXPECT_EQ(account.more_by(spec, 1, 7), kJobBytes);
  for (std::uint32_t i = 0; i < 100; ++i) account.drop(job_of(7, spec, i));
  EXPECT_EQ(account.bytes(), 0u);
}

class AccountWorld : public StateWorld {
 protected:
  static Rules small() {
    Rules rules;
    rules.user_bytes = 1'000 * kKb;
    return rules;
  }
  AccountWorld() { state_ = State(small()); }
  static JobSpec large(const std::string& content, const std::string& user = "alice") {
    JobSpec spec = spec_of("0", user);
    spec.command_content = content;
    spec.command_bytes = 100 * kKb;
    return spec;
  }
};

TEST_F(AccountWorld, WhatCannotBeKeptIsRefusedToThatUserAlone) {
  for (int i = 0; i < 9; ++i) submit(large(std::to_string(i)));
  const Result<JobId> refused = try_submit(large("one more"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kExhausted);
  EXPECT_NE(refused.error().evidence.find("they take 8"), std::string::npos)
      << refused.error().evidence;
  EXPECT_NE(refused.error().hint.find("user_bytes"), std::string::npos);
  EXPECT_TRUE(try_submit(large("8")).ok()) << "what is there already is not kept twice";
  EXPECT_TRUE(try_submit(spec_of("0")).ok()) << "a small one has room";
  EXPECT_TRUE(try_submit(large("another user's", "bob")).ok());
  for (int i = 0; i < 9; ++i) submit(large("root " + std::to_string(i), "root"));
  EXPECT_FALSE(try_submit(large("and not root either", "root")).ok());
  EXPECT_EQ(State::from_parts(state_.parts(), small()).bytes_of("alice"), state_.bytes_of("alice"));
}

TEST_F(AccountWorld, EndedJobsAreForgottenForNewOnes) {
  Ids ids;
  for (int i = 0; i < 9; ++i) {
    ids.push_back(run(large(std::to_string(i))));
    ended(ids.back());
  }
  EXPECT_EQ(state_.bytes_of("alice", true), 0u);
  ids.push_back(submit(large("one more")));
  EXPECT_EQ(state_.find(ids[0]), nullptr) << "the oldest";
  EXPECT_NE(state_.find(ids[8]), nullptr);
  EXPECT_LE(state_.bytes_of("alice"), 1'000 * kKb);
  for (int i = 0; i < 50; ++i) ended(run(large("later " + std::to_string(i))));
  EXPECT_LE(state_.bytes_of("alice"), 1'000 * kKb);
  EXPECT_NE(state_.find(ids[9]), nullptr) << "it has not ended";
  EXPECT_LT(state_.blobs().size(), 12u);
}

TEST_F(AccountWorld, WhatRunsAgainNeedsRoomAgain) {
  const JobId first = run(large("first"));
  ended(first);
  for (int i = 0; i < 8; ++i) submit(large(std::to_string(i)));
  ASSERT_NE(state_.find(first), nullptr);
  submit(large("8"));
  if (state_.find(first) == nullptr) return;
  const Result<void> refused = take(Requeue{first, caller("alice")});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kExhausted);
}

TEST_F(AccountWorld, ARequeuedJobCountsAgain) {
  const JobId first = run(large("first"));
  const std::uint64_t bytes = state_.bytes_of("alice", true);
  ended(first);
  EXPECT_EQ(state_.bytes_of("alice", true), 0u);
  ASSERT_TRUE(take(Requeue{first, caller("alice")}).ok());
  EXPECT_EQ(state_.bytes_of("alice", true), bytes);
}

TEST_F(AccountWorld, ASpecOfEndlessTextsIsRefused) {
  JobSpec spec = spec_of("0");
  spec.folder = "/" + std::string(70'000, 'x');
  EXPECT_EQ(try_submit(spec).error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace mete::core
