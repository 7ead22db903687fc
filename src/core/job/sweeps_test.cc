// SPDX-License-Identifier: Apache-2.0
// The sweeps of State: which has its step, and who is asked first.
#include "core/job/sweeps.h"

#include "core/test/state_world.h"

namespace mete::core {
namespace {

class SweepsTest : public StateWorld {
 protected:
  // Started, without a step.
  void start(const std::string& name) {
    sweep::Plan plan;
    plan.name = name;
    const std::vector<sweep::Value> values{sweep::of_integer(1), sweep::of_integer(2)};
    plan.space = *sweep::Space::make({{"lr", values, {}}});
    plan.sampling.method = sweep::Method::kGrid;
    plan.job = spec_of("8G");
    plan.job.command = {"train", "{lr}"};
    ASSERT_TRUE(take(StartSweep{std::make_shared<const sweep::Plan>(*checked(std::move(plan)))}));
  }
  // The number of the sweep whose step is next.
  std::optional<std::uint64_t> next(std::uint64_t from) {
    Moment asked = moment();
    asked.sweeps_from = from;
    const std::vector<Happened> due = state_.due(asked);
    return due.empty() ? std::nullopt : sweep_of(due.front());
  }
};

// The steps of one sweep do not keep the others from theirs: the caller goes on with the next one.
TEST_F(SweepsTest, HaveTheirStepsInTurn) {
  for (const char* name : {"one", "two", "three"}) start(name);
  EXPECT_EQ(next(0), 1u);
  EXPECT_EQ(next(2), 2u);
  EXPECT_EQ(next(3), 3u);
  EXPECT_EQ(next(4), 1u) << "from the beginning again";
  EXPECT_EQ(next(Moment::kNoSweeps), std::nullopt) << "the time of the turn is over";
  settle();
  EXPECT_EQ(state_.jobs().size(), 6u);
}

// A sweep whose trials would not be accepted shows nothing but "running": it says why.
TEST_F(SweepsTest, SayWhyTheyBeginNoTrial) {
  start("one");
  const auto why = [&] { return state_.why_blocked(*state_.sweeps().find(1), moment()); };
  EXPECT_EQ(why(), "");
  Rules rules;
  rules.user_bytes = state_.sweeps().bytes_of(uid_of("alice")) + 100;
  state_ = State::from_parts(state_.parts(), rules);
  EXPECT_NE(why(), "");
  settle();
  EXPECT_EQ(state_.sweeps().find(1)->trials().size(), 0u);
  rules.user_bytes = 1'000'000;
  state_ = State::from_parts(state_.parts(), rules);
  EXPECT_EQ(why(), "");
  settle();
  EXPECT_EQ(state_.sweeps().find(1)->trials().size(), 2u);
  EXPECT_EQ(why(), "") << "its trials wait in the queue";
}

}  // namespace
}  // namespace mete::core
