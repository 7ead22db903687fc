// SPDX-License-Identifier: Apache-2.0
#include "daemon/judge.h"

#include <gtest/gtest.h>

namespace mete::daemon {
namespace {

constexpr char kCard[] = "GPU-00000000-0000-0000-0000-000000000001";
const core::JobId kJob{12};

// Job 12 has a grant of 4 GiB on the card and one process there, 100.
class JudgeTest : public testing::Test {
 protected:
  JudgeTest() {
    core::GrantedCard granted;
    granted.uuid = kCard;
    granted.bytes = Bytes::from_gib(4);
    jobs_ = {{kJob, {granted}, true, false}};
    seam::CardReading& card = snapshot_.cards.emplace_back();
    card.uuid = kCard;
    card.total = Bytes::from_gib(80);
    card.processes.emplace();
    seam::ProcessReading& process = card.processes->emplace_back();
    process.pid = 100;
    process.used = Bytes::from_gib(1);
    node::ProcessFacts& facts = snapshot_.processes.emplace_back();
    facts.pid = 100;
    facts.meter.state = node::MeterFacts::State::kSlot;
    facts.meter.charges = {{kCard, Bytes::from_gib(1)}};
  }
  // One more reading, a second later.
  Judge::Verdicts see(std::optional<unsigned> busy) {
    snapshot_.at += std::chrono::seconds(1);
    return judge_.see(snapshot_, WallTime{snapshot_.at.count() / 1'000'000}, {{100, kJob}},
                      {{kJob, {busy}}}, jobs_, stale_);
  }
  template <typename T>
  static std::size_t count(const Judge::Verdicts& verdicts) {
    std::size_t count = 0;
    for (const core::Input& input : verdicts.inputs) count += std::holds_alternative<T>(input);
    return count;
  }
  Judge judge_{true};
  node::CardSnapshot snapshot_;
  std::vector<Judge::Subject> jobs_;
  bool stale_ = false;
};

TEST_F(JudgeTest, AJobThatDoesNothingIsIdleAfterAWhile) {
  EXPECT_EQ(count<core::Idle>(see(0)), 0u);
  Judge::Verdicts last;
  for (int i = 0; i < 5; ++i) last = see(0);
  EXPECT_EQ(count<core::Idle>(last), 1u);
  EXPECT_EQ(last.idle_since.at(kJob), WallTime{1000}) << "since the first reading";
  jobs_[0].idle = true;
  EXPECT_EQ(count<core::Active>(see(50)), 1u);
}

TEST_F(JudgeTest, AnUnusedGrantIsIdleOnlyForAJobThatAskedToBeParked) {
  const auto look = [&](const node::JobLoads& loads) {
    snapshot_.at += std::chrono::seconds(1);
    return count<core::Idle>(
        judge_.see(snapshot_, WallTime{snapshot_.at.count() / 1'000'000}, {}, loads, jobs_, false));
  };
  for (int i = 0; i < 6; ++i) EXPECT_EQ(look({{kJob, {}}}), 0u) << "it may use its cards later";
  jobs_[0].unused_is_idle = true;
  for (int i = 0; i < 6; ++i) EXPECT_EQ(look({}), 0u) << "the driver may not list its processes";
  for (int i = 0; i < 5; ++i) (void)look({{kJob, {}}});
  EXPECT_EQ(look({{kJob, {}}}), 1u);
}

TEST_F(JudgeTest, AParkedJobIsNotJudged) {
  jobs_[0].running = false;
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(see(0).inputs.empty());
  snapshot_.cards[0].processes->front().used = Bytes::from_gib(40);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(count<core::Escaped>(see(0)), 0u);
}

TEST_F(JudgeTest, AnOldReadingSaysNothing) {
  for (int i = 0; i < 5; ++i) (void)see(0);
  stale_ = true;
  jobs_[0].idle = true;
  const Judge::Verdicts verdicts = see(0);
  EXPECT_TRUE(verdicts.inputs.empty());
  EXPECT_TRUE(verdicts.idle_since.empty());
}

TEST_F(JudgeTest, AnEscapeIsToldAndEndedOnlyWhenItIsCertain) {
  snapshot_.cards[0].processes->front().used = Bytes::from_gib(40);
  std::vector<bool> ends;
  for (int i = 0; i < 4; ++i) {
    for (const core::Input& input : see(10).inputs) {
      const auto* escaped = std::get_if<core::Escaped>(&input);
      if (escaped != nullptr) ends.push_back(escaped->stop);
    }
  }
  ASSERT_GE(ends.size(), 2u);
  EXPECT_FALSE(ends.front());
  EXPECT_TRUE(ends.back());
  judge_ = Judge(false);
  for (int i = 0; i < 6; ++i) {
    for (const core::Input& input : see(10).inputs) {
      const auto* escaped = std::get_if<core::Escaped>(&input);
      EXPECT_FALSE(escaped != nullptr && escaped->stop) << "the configuration does not want it";
    }
  }
}

}  // namespace
}  // namespace mete::daemon
