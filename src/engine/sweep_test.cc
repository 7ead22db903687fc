// SPDX-License-Identifier: Apache-2.0
// Sweeps through the whole engine: decided, recorded and acted on, over crashes that lose what was
// not synced. A test plays the keepers.
#include <map>
#include <memory>
#include <random>
#include <set>

#include "core/sweep/fill.h"
#include "engine/test/engine_world.h"

namespace mete::engine {
namespace {

using core::Outcome;
using core::sweep::SweepState;
using core::sweep::Trial;
using core::sweep::TrialState;

class SweepTest : public EngineTest {
 protected:
  static core::sweep::Plan plan_of(int points, const std::string& gpu = "20G") {
    std::vector<core::sweep::Value> values;
    for (int i = 1; i <= points; ++i) values.push_back(core::sweep::of_integer(i));
    core::sweep::Plan plan;
    plan.name = "scan";
    plan.space = *core::sweep::Space::make({{"lr", std::move(values), {}}});
    plan.sampling.method = core::sweep::Method::kGrid;
    plan.job = detached(gpu).spec;
    plan.job.command = {"train", "{lr}"};
    return plan;
  }
  Answer start(core::sweep::Plan plan) {
    core::StartSweep start{std::make_shared<const core::sweep::Plan>(std::move(plan)), false};
    const std::vector<Answer> answers = turn({std::move(start)});
    EXPECT_EQ(answers.size(), 1u);
    go_on();
    return answers.front();
  }
  Answer change(core::ChangeSweep::Kind kind, core::Caller by = alice()) {
    core::ChangeSweep change;
    change.sweep = 1;
    change.kind = kind;
    change.by = std::move(by);
    const std::vector<Answer> answers = turn({std::move(change)});
    EXPECT_EQ(answers.size(), 1u);
    go_on();
    return answers.front();
  }
  void go_on() {
    tick();
    while (engine_->again()) tick();
  }
  const core::sweep::Sweep& sweep() { return *engine_->state().sweeps().find(1); }
  Ids of_state(JobState state) { return in_state(state); }
  void keeper_started(JobId id) {
    turn({core::Started{id, 0, program_of(id), 0, core::ProcessRef{77, 7}}});
    go_on();
  }
  void keeper_ended(JobId id, int code = 0) {
    core::Exit exit;
    exit.code = code;
    turn({core::Ended{id, 0, exit}});
    go_on();
  }
  void keeper_gone(JobId id) {
    turn({core::RunnerGone{id}});
    turn({core::JobGone{id}});
    go_on();
  }
};

TEST_F(SweepTest, TrialsRunAtOnceAsFarAsTheCardGoes) {
  ASSERT_TRUE(start(plan_of(24)).result.ok());
  EXPECT_EQ(in_state(JobState::kStarting).size(), 4u) << "4 x 20 GiB on 80";
  for (const JobId id : in_state(JobState::kStarting)) keeper_started(id);
  EXPECT_EQ(in_state(JobState::kPending).size(), core::sweep::kQueued);
  const JobId first = in_state(JobState::kRunning).front();
  keeper_ended(first);
  EXPECT_EQ(sweep().count(TrialState::kOk), 1u);
  EXPECT_EQ(in_state(JobState::kRunning).size() + in_state(JobState::kStarting).size(), 4u);
}

TEST_F(SweepTest, ASecondSweepOfOneNameIsRefusedAndARepeatedRequestIsNot) {
  core::sweep::Plan plan = plan_of(3);
  plan.job.key = "k1";
  ASSERT_TRUE(start(plan).result.ok());
  EXPECT_TRUE(start(plan).result.ok()) << "its first answer was lost";
  EXPECT_EQ(engine_->state().sweeps().all().size(), 1u);
  plan.job.key = "k2";
  const Answer second = start(plan);
  ASSERT_FALSE(second.result.ok());
  EXPECT_EQ(second.result.error().code, ErrorCode::kInvalid);
  plan.job.uid = kAlice + 1;
  plan.job.user = "bob";
  EXPECT_TRUE(start(plan).result.ok()) << "names are each user's own";
}

TEST_F(SweepTest, WhatFitsNoCardIsRefusedAtOnce) {
  const Answer answer = start(plan_of(3, "200G"));
  ASSERT_FALSE(answer.result.ok());
  EXPECT_EQ(answer.result.error().code, ErrorCode::kInfeasible);
  EXPECT_TRUE(engine_->state().sweeps().all().empty());
}

TEST_F(SweepTest, AnotherUserCannotChangeIt) {
  ASSERT_TRUE(start(plan_of(3)).result.ok());
  const Answer answer = change(core::ChangeSweep::Kind::kStop, {kAlice + 1, false, "bob"});
  ASSERT_FALSE(answer.result.ok());
  EXPECT_EQ(answer.result.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(sweep().state(), SweepState::kRunning);
}

TEST_F(SweepTest, StopEndsTheJobsAndResumeRunsTheTrialsAgain) {
  ASSERT_TRUE(start(plan_of(2)).result.ok());
  for (const JobId id : in_state(JobState::kStarting)) keeper_started(id);
  ASSERT_TRUE(change(core::ChangeSweep::Kind::kStop).result.ok());
  const Ids ending = in_state(JobState::kStopping);
  ASSERT_EQ(ending.size(), 2u);
  EXPECT_EQ(launcher_.stops().size(), 2u);
  for (const JobId id : ending) keeper_ended(id, 143);
  EXPECT_EQ(sweep().count(TrialState::kPending), 2u);
  EXPECT_TRUE(sweep().active().empty());
  ASSERT_TRUE(change(core::ChangeSweep::Kind::kResume).result.ok());
  EXPECT_EQ(in_state(JobState::kStarting).size(), 2u);
  for (const JobId id : in_state(JobState::kStarting)) {
    keeper_started(id);
    keeper_ended(id);
  }
  EXPECT_EQ(sweep().state(), SweepState::kDone);
  EXPECT_EQ(sweep().trials().size(), 2u);
}

TEST_F(SweepTest, ATrialThatHasEndedIsNotRequeued) {
  ASSERT_TRUE(start(plan_of(1)).result.ok());
  const JobId id = in_state(JobState::kStarting).front();
  keeper_started(id);
  keeper_ended(id);
  ASSERT_EQ(sweep().state(), SweepState::kDone);
  const std::vector<Answer> answers = turn({core::Requeue{id, alice()}});
  ASSERT_EQ(answers.size(), 1u);
  ASSERT_FALSE(answers.front().result.ok()) << "the program would run a second time";
  EXPECT_EQ(answers.front().result.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(state_of(id), JobState::kEnded);
}

// The result of a retry is its own: it had the loss of the attempt that failed, and was the best.
TEST_F(SweepTest, ARetryInheritsNoMetric) {
  core::sweep::Plan plan = plan_of(1);
  plan.goal = core::sweep::Goal{"loss", false};
  plan.job.retries = 1;
  ASSERT_TRUE(start(plan).result.ok());
  const JobId id = in_state(JobState::kStarting).front();
  keeper_started(id);
  turn({core::TrialReport{id, 0, {{1, {{"loss", 0.1}}}}}});
  keeper_ended(id, 1);
  clock_.advance(seam::Milliseconds(3'600'000));
  go_on();
  keeper_started(id);
  keeper_ended(id);
  EXPECT_EQ(sweep().state(), SweepState::kDone);
  EXPECT_EQ(sweep().count(TrialState::kFailed), 1u);
  EXPECT_FALSE(sweep().best());
}

TEST_F(SweepTest, MetricNamesAreBoundedForTheWholeSweep) {
  ASSERT_TRUE(start(plan_of(24)).result.ok());
  for (int n = 0; n < 40; ++n) {
    const Ids starting = in_state(JobState::kStarting);
    if (starting.empty()) break;
    keeper_started(starting.front());
    turn({core::TrialReport{starting.front(), 0, {{1, {{"loss-" + std::to_string(n), 1}}}}}});
    turn({core::TrialReport{starting.front(), 0, {{1, {{std::string(65, 'x'), 1}}}}}});
    keeper_ended(starting.front());
  }
  EXPECT_EQ(sweep().metric_names().size(), core::sweep::kMaxMetrics);
  const std::vector<std::string> names = sweep().metric_names();
  crash_and_restart();
  EXPECT_EQ(sweep().metric_names(), names);
}

TEST_F(SweepTest, AJobThatWaitsReportsNothing) {
  ASSERT_TRUE(start(plan_of(24)).result.ok());
  for (const JobId id : in_state(JobState::kStarting)) keeper_started(id);
  const JobId waits = in_state(JobState::kPending).front();
  const std::vector<Answer> answers = turn({core::TrialReport{waits, 0, {{1, {{"loss", 0.1}}}}}});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_FALSE(answers.front().result.ok());
}

TEST_F(SweepTest, SweepsCountAsStateOfTheirUser) {
  options_.rules.user_bytes = 20'000;
  begin();
  core::sweep::Plan plan = plan_of(500);
  const Answer large = start(plan);
  ASSERT_FALSE(large.result.ok());
  EXPECT_EQ(large.result.error().code, ErrorCode::kExhausted);
  // Trials count too: no more are drawn than there is room for.
  ASSERT_TRUE(start(plan_of(60)).result.ok());
  for (int n = 0; n < 60 && !in_state(JobState::kStarting).empty(); ++n) {
    const JobId id = in_state(JobState::kStarting).front();
    keeper_started(id);
    keeper_ended(id);
  }
  EXPECT_LT(sweep().trials().size(), 60u);
  EXPECT_LE(sweep().bytes(), 20'000u);
}

TEST_F(SweepTest, ASweepThatEndedEarlyGoesOn) {
  core::sweep::Plan plan = plan_of(6);
  plan.max_failures = 1;
  plan.max_parallel = 1;
  ASSERT_TRUE(start(plan).result.ok());
  const auto end_one = [&](int code) {
    const JobId id = in_state(JobState::kStarting).front();
    keeper_started(id);
    keeper_ended(id, code);
  };
  end_one(1);
  ASSERT_EQ(sweep().state(), SweepState::kDone);
  core::ChangeSweep more;
  more.sweep = 1;
  more.kind = core::ChangeSweep::Kind::kExtend;
  more.by = alice();
  more.trials = 3;
  ASSERT_TRUE(turn({more}).front().result.ok());
  go_on();
  for (int n = 0; n < 3; ++n) end_one(0);
  EXPECT_EQ(sweep().state(), SweepState::kDone);
  EXPECT_EQ(sweep().trials().size(), 4u);
  more.trials = 100;
  ASSERT_TRUE(turn({more}).front().result.ok());
  go_on();
  for (int n = 0; n < 2; ++n) end_one(0);
  EXPECT_EQ(sweep().state(), SweepState::kDone);
  const std::vector<Answer> all = turn({more});
  ASSERT_FALSE(all.front().result.ok()) << "it has tried all points";
}

TEST_F(SweepTest, ItIsForgottenOnlyWhenNothingOfItRuns) {
  ASSERT_TRUE(start(plan_of(1)).result.ok());
  const Answer early = change(core::ChangeSweep::Kind::kRemove);
  ASSERT_FALSE(early.result.ok());
  EXPECT_EQ(early.result.error().code, ErrorCode::kBusy);
  const JobId id = in_state(JobState::kStarting).front();
  keeper_started(id);
  keeper_ended(id);
  ASSERT_TRUE(change(core::ChangeSweep::Kind::kRemove).result.ok());
  EXPECT_TRUE(engine_->state().sweeps().all().empty());
  crash_and_restart();
  EXPECT_TRUE(engine_->state().sweeps().all().empty());
  EXPECT_TRUE(start(plan_of(1)).result.ok()) << "its name is free again";
}

TEST_F(SweepTest, AFullDiskStopsNewTrialsAndLosesNoResult) {
  ASSERT_TRUE(start(plan_of(24)).result.ok());
  for (const JobId id : in_state(JobState::kStarting)) keeper_started(id);
  const std::size_t before = sweep().trials().size();
  store_.set_full(10);
  keeper_ended(in_state(JobState::kRunning).front());
  EXPECT_EQ(sweep().trials().size(), before);
  store_.set_room();
  clock_.advance(seam::Milliseconds(5'000));
  go_on();
  for (const JobId id : in_state(JobState::kStarting)) keeper_started(id);
  EXPECT_EQ(sweep().count(TrialState::kOk), 1u);
  EXPECT_GT(sweep().trials().size(), before);
}

// Random kills of the daemon, of keepers, and both: one result for each point, and a trial whose
// end was recorded is never run again.
TEST_F(SweepTest, EachPointHasOneResultWhateverIsKilled) {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    std::mt19937 dice(seed);
    store_ = FaultyStore();
    launcher_.crash();
    options_.snapshot_every = 1 + seed % 7;  // often from a snapshot
    begin();
    ASSERT_TRUE(start(plan_of(24)).result.ok());
    std::map<std::uint64_t, JobId> ended;  // trial: the job that ended it
    for (int step = 0; sweep().state() != SweepState::kDone; ++step) {
      ASSERT_LT(step, 5'000) << "seed " << seed;
      Ids live = in_state(JobState::kStarting);
      for (const JobId id : in_state(JobState::kRunning)) live.push_back(id);
      const auto what = dice() % 10;
      if (what == 0) {
        crash_and_restart();
      } else if (!live.empty()) {
        const JobId id = live[dice() % live.size()];
        if (state_of(id) == JobState::kStarting)
          keeper_started(id);
        else if (what < 3)
          keeper_gone(id);
        else
          keeper_ended(id, what == 9 ? 1 : 0);
      } else {
        go_on();
      }
      for (const Trial& trial : sweep().trials()) {
        if (!is_over(trial)) {
          ASSERT_FALSE(ended.contains(trial.n))
              << "trial " << trial.n << " runs again, seed " << seed;
          continue;
        }
        const auto [known, fresh] = ended.emplace(trial.n, *trial.job);
        ASSERT_EQ(known->second, *trial.job) << "seed " << seed;
      }
    }
    std::set<std::string> points;
    for (const Trial& trial : sweep().trials()) points.insert(trial.point[0]->text);
    EXPECT_EQ(points.size(), 24u);
    EXPECT_EQ(sweep().trials().size(), 24u);
    EXPECT_EQ(ended.size(), 24u) << "seed " << seed;
  }
}

}  // namespace
}  // namespace mete::engine
