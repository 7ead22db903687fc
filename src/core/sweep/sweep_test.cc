// SPDX-License-Identifier: Apache-2.0
// A sweep is driven as the daemon drives it: next() until there is nothing more, every step
// applied, jobs that end as the test says. After each step the state is compared with a copy made
// from its parts, as after a restart.
#include "core/sweep/sweep.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/sweep/fill.h"

namespace mete::core::sweep {
namespace {

Parameter listed(const std::string& name, std::vector<std::string> words) {
  std::vector<Value> values;
  for (const std::string& word : words) values.push_back(guess(word));
  return {name, std::move(values), {}};
}

Plan plan_of(std::vector<Parameter> parameters) {
  Plan plan;
  plan.name = "scan";
  plan.space = *Space::make(std::move(parameters));
  plan.sampling.method = Method::kGrid;
  plan.job.command = {"train", "--lr", "{lr}"};
  return plan;
}

Plan automatic(int trials) {
  std::vector<std::string> words;
  for (int i = 1; i <= trials; ++i) words.push_back(std::to_string(i));
  Plan plan = plan_of({listed("lr", words)});
  plan.auto_gpu = true;
  return plan;
}

Plan four() { return plan_of({listed("lr", {"1", "2", "3", "4"})}); }

class SweepTest : public ::testing::Test {
 protected:
  void start(Plan plan) {
    Result<Plan> fine = checked(std::move(plan));
    ASSERT_TRUE(fine.ok()) << fine.error().message;
    sweep_.emplace(1, std::make_shared<const Plan>(*std::move(fine)), now_);
    settle();
  }

  // Applies steps until there are none.
  void settle() {
    for (int i = 0; i < 10'000; ++i) {
      now_.ms += 5;
      std::optional<Step> step = sweep_->next({now_, card_, {}, peak_of()});
      if (!step) return;
      if (auto* begin = std::get_if<Begin>(&*step)) begin->job = JobId{++last_job_};
      if (const auto* end = std::get_if<EndTrial>(&*step)) {
        const JobId job = *sweep_->find(end->n)->job;
        std::visit([&](const auto& what) { sweep_->apply(what, now_); }, *step);
        sweep_->job_ended({end->n, job, Outcome::kCancelled, {}, ""}, now_);
      } else {
        std::visit([&](const auto& what) { sweep_->apply(what, now_); }, *step);
      }
      ASSERT_TRUE(Sweep(sweep_->parts()) == *sweep_);
    }
    FAIL() << "the sweep never settles";
  }

  void run(std::uint64_t n) {
    sweep_->job_runs(n, *sweep_->find(n)->job, now_, {0});
    settle();
  }
  void end(std::uint64_t n, Outcome outcome, std::vector<Metric> metrics = {}, Bytes peak = {}) {
    Exit exit;
    exit.code = outcome == Outcome::kOk ? 0 : 1;
    exit.metrics = std::move(metrics);
    if (!peak.is_zero()) exit.peaks = {peak};
    sweep_->job_ended({n, *sweep_->find(n)->job, outcome, exit, ""}, now_);
    settle();
  }
  void ok(std::uint64_t n, double loss) { end(n, Outcome::kOk, {{"loss", loss}}); }
  void report(std::uint64_t n, std::uint64_t step, double loss) {
    sweep_->apply(Reported{n, {{step, {{"loss", loss}}}}}, now_);
    settle();
  }
  std::function<std::optional<Bytes>(JobId)> peak_of() const {
    return [this](JobId) { return used_; };
  }
  TrialState state_of(std::uint64_t n) const { return sweep_->find(n)->state; }
  std::vector<std::uint64_t> active() const {
    return {sweep_->active().begin(), sweep_->active().end()};
  }

  WallTime now_{1'000'000};
  std::optional<Bytes> used_;  // by each running job
  std::optional<Bytes> card_ = Bytes::from_gib(16);
  std::uint64_t last_job_ = 0;
  std::optional<Sweep> sweep_;
};

using Numbers = std::vector<std::uint64_t>;

TEST_F(SweepTest, AGridIsTriedInOrderAndEachPointOnce) {
  start(four());
  EXPECT_EQ(active(), (Numbers{1, 2, 3, 4}));
  for (std::uint64_t n = 1; n <= 4; ++n) {
    run(n);
    EXPECT_EQ(sweep_->find(n)->point[0]->text, std::to_string(n));
  }
  for (std::uint64_t n = 1; n <= 4; ++n) end(n, Outcome::kOk);
  EXPECT_EQ(sweep_->state(), SweepState::kDone);
  EXPECT_EQ(sweep_->why(), "all 4 trials are over");
  EXPECT_EQ(sweep_->trials().size(), 4u);
}

TEST_F(SweepTest, NoMoreThanMaxParallelHaveAJob) {
  Plan plan = four();
  plan.max_parallel = 2;
  start(std::move(plan));
  EXPECT_EQ(active(), (Numbers{1, 2}));
  run(1);
  run(2);
  end(2, Outcome::kOk);
  EXPECT_EQ(active(), (Numbers{1, 3}));
}

TEST_F(SweepTest, AFewTrialsWaitInTheQueueAndNotTheWholeSpace) {
  std::vector<std::string> words;
  for (int i = 0; i < 100; ++i) words.push_back(std::to_string(i));
  start(plan_of({listed("lr", words)}));
  EXPECT_EQ(active().size(), kQueued);
  run(1);
  EXPECT_EQ(active().size(), kQueued + 1);
}

TEST_F(SweepTest, ALostTrialRunsAgainWithItsParameters) {
  start(four());
  run(2);
  const Point point = sweep_->find(2)->point;
  end(2, Outcome::kLost);
  EXPECT_EQ(state_of(2), TrialState::kPending);
  EXPECT_EQ(sweep_->find(2)->runs, 2u);
  EXPECT_EQ(sweep_->find(2)->point, point);
  EXPECT_TRUE(sweep_->active().contains(2));
  EXPECT_EQ(sweep_->trials().size(), 4u);
}

TEST_F(SweepTest, ATrialThatIsLostForEverFails) {
  start(four());
  for (std::uint32_t i = 0; i < kMaxRuns; ++i) end(1, Outcome::kLost);
  EXPECT_EQ(state_of(1), TrialState::kFailed);
}

TEST_F(SweepTest, TheEndOfAnEarlierJobOfATrialIsIgnored) {
  start(four());
  const JobId old = *sweep_->find(1)->job;
  end(1, Outcome::kLost);
  sweep_->job_ended({1, old, Outcome::kOk, {}, ""}, now_);
  settle();
  EXPECT_EQ(state_of(1), TrialState::kPending);
}

TEST_F(SweepTest, TheBestIsTheLowestOfThoseThatEndedWell) {
  Plan plan = four();
  plan.goal = Goal{"loss", false};
  start(std::move(plan));
  ok(1, 0.5);
  EXPECT_EQ(sweep_->best(), (Best{1, 0.5}));
  ok(2, 0.4);
  end(3, Outcome::kFailed, {{"loss", 0.1}});
  ok(4, 0.45);
  EXPECT_EQ(sweep_->best(), (Best{2, 0.4}));
}

TEST_F(SweepTest, TheBestIsTheHighestWhenTheGoalIsToMaximize) {
  Plan plan = four();
  plan.goal = Goal{"loss", true};
  start(std::move(plan));
  ok(1, 0.5);
  ok(2, 0.4);
  EXPECT_EQ(sweep_->best(), (Best{1, 0.5}));
}

TEST_F(SweepTest, AMetricThatNeverAppearsFailsTheTrialAndSaysSo) {
  Plan plan = four();
  plan.goal = Goal{"loss", false};
  start(std::move(plan));
  end(1, Outcome::kOk, {{"accuracy", 0.9}});
  EXPECT_EQ(state_of(1), TrialState::kFailed);
  EXPECT_EQ(sweep_->find(1)->why, "it ended well, but loss never appeared; it reported accuracy");
  end(2, Outcome::kOk, {{"loss", std::nan("")}});
  EXPECT_EQ(sweep_->find(2)->why, "it ended well, but loss is no finite number");
  EXPECT_EQ(sweep_->best(), std::nullopt);
}

TEST_F(SweepTest, AFailedTrialDoesNotStopTheOthers) {
  start(four());
  end(1, Outcome::kFailed);
  EXPECT_EQ(sweep_->find(1)->why, "exit code 1");
  EXPECT_EQ(active(), (Numbers{2, 3, 4}));
}

TEST_F(SweepTest, FailFastEndsTheOthers) {
  Plan plan = four();
  plan.max_failures = 1;
  start(std::move(plan));
  end(2, Outcome::kFailed);
  EXPECT_EQ(sweep_->state(), SweepState::kDone);
  EXPECT_EQ(sweep_->why(), "1 trial failed");
  EXPECT_EQ(state_of(1), TrialState::kStopped);
  EXPECT_EQ(sweep_->count(TrialState::kFailed), 1u);
}

TEST_F(SweepTest, ATargetEndsTheOthersAndTheTrialThatReachedItFinishes) {
  Plan plan = four();
  plan.goal = Goal{"loss", false};
  plan.target = *parse_target("loss < 0.1", plan);
  start(std::move(plan));
  for (std::uint64_t n = 1; n <= 4; ++n) run(n);
  report(3, 1, 0.05);
  EXPECT_EQ(active(), (Numbers{3}));
  EXPECT_EQ(state_of(1), TrialState::kStopped);
  ok(3, 0.04);
  EXPECT_EQ(sweep_->state(), SweepState::kDone);
  EXPECT_EQ(sweep_->why(), "trial 3 reached the target loss < 0.1");
  EXPECT_EQ(sweep_->best(), (Best{3, 0.04}));
}

TEST_F(SweepTest, AWeakTrialIsStoppedAndDoesNotCountAsFailed) {
  Plan plan = four();
  plan.goal = Goal{"loss", false};
  plan.halving = *parse_halving("min=1,max=9,eta=3");
  start(std::move(plan));
  for (std::uint64_t n = 1; n <= 4; ++n) run(n);
  report(1, 1, 0.5);
  report(2, 1, 0.9);
  EXPECT_EQ(state_of(2), TrialState::kStopped);
  EXPECT_NE(sweep_->find(2)->why.find("weak at step 1"), std::string::npos);
  EXPECT_EQ(state_of(1), TrialState::kRunning);
  report(1, 9, 0.2);
  EXPECT_EQ(state_of(1), TrialState::kOk) << "at max it is finished";
  EXPECT_EQ(sweep_->best(), (Best{1, 0.2}));
  EXPECT_EQ(sweep_->count(TrialState::kFailed), 0u);
}

TEST_F(SweepTest, PauseLetsRunningTrialsFinishAndBeginsNone) {
  start(four());
  run(1);
  sweep_->set_state(SweepState::kPaused);
  settle();
  end(1, Outcome::kOk);
  end(2, Outcome::kLost);
  EXPECT_EQ(active(), (Numbers{3, 4}));
  sweep_->set_state(SweepState::kRunning);
  settle();
  EXPECT_EQ(active(), (Numbers{2, 3, 4}));
}

TEST_F(SweepTest, StoppedTrialsRunAgainAfterResume) {
  start(four());
  run(1);
  ok(2, 1);
  sweep_->set_state(SweepState::kStopped);
  settle();
  EXPECT_TRUE(active().empty());
  EXPECT_EQ(state_of(1), TrialState::kPending);
  EXPECT_EQ(state_of(2), TrialState::kOk);
  sweep_->set_state(SweepState::kRunning);
  settle();
  EXPECT_EQ(active(), (Numbers{1, 3, 4}));
  for (const std::uint64_t n : {1, 3, 4}) end(n, Outcome::kOk);
  EXPECT_EQ(sweep_->state(), SweepState::kDone);
  EXPECT_EQ(sweep_->trials().size(), 4u);
}

TEST_F(SweepTest, NoTrialBeginsAfterItsTimeAndThoseThatRunFinish) {
  Plan plan = four();
  plan.max_parallel = 1;
  plan.for_s = 60;
  start(std::move(plan));
  run(1);
  EXPECT_EQ(sweep_->next_change(now_), (WallTime{sweep_->started().ms + 60'000}));
  now_.ms = sweep_->started().ms + 60'000;
  ok(1, 1);
  EXPECT_EQ(sweep_->state(), SweepState::kDone);
  EXPECT_EQ(sweep_->why(), "its time is over");
  EXPECT_EQ(sweep_->trials().size(), 1u);
}

TEST_F(SweepTest, ExtendingTheSpaceRunsOnlyTheNewPoints) {
  start(four());
  for (std::uint64_t n = 1; n <= 4; ++n) end(n, Outcome::kOk);
  ASSERT_EQ(sweep_->state(), SweepState::kDone);
  sweep_->extend(std::make_shared<const Plan>(plan_of({listed("lr", {"4", "5", "1"})})));
  settle();
  EXPECT_EQ(active(), (Numbers{5}));
  EXPECT_EQ(sweep_->find(5)->point[0]->text, "5");
}

TEST_F(SweepTest, ASpaceThatKeepsNothingEndsInsteadOfSearchingForEver) {
  Plan plan = plan_of({Parameter{"lr", Range{0, 1}, {}}});
  const std::vector<std::string> names = {"lr"};
  plan.space = *Space::make(plan.space.parameters(), *Expression::parse("lr > 2", names));
  plan.sampling = {Method::kRandom, 1, 10};
  start(std::move(plan));
  EXPECT_EQ(sweep_->state(), SweepState::kDone);
  EXPECT_EQ(sweep_->why(), "no new point was found in 50000 draws after 0 trials");
}

TEST_F(SweepTest, ATrialThatRunsOutOfMemoryRunsOnceMoreWithALargerShare) {
  Plan plan = four();
  plan.auto_gpu = true;
  start(std::move(plan));
  EXPECT_EQ(sweep_->find(1)->granted, Bytes::from_gib(4));
  run(1);
  end(1, Outcome::kGpuOom);
  EXPECT_EQ(state_of(1), TrialState::kPending);
  run(2);  // one trial waits in the queue at a time
  EXPECT_GT(*sweep_->find(1)->granted, Bytes::from_gib(4));
  end(1, Outcome::kGpuOom);
  EXPECT_EQ(state_of(1), TrialState::kFailed);
  EXPECT_EQ(sweep_->find(1)->why, "out of GPU memory");
}

TEST_F(SweepTest, AutomaticSharesWaitUntilACardWasSeen) {
  card_.reset();
  Plan plan = four();
  plan.auto_gpu = true;
  start(std::move(plan));
  EXPECT_TRUE(active().empty());
  card_ = Bytes::from_gib(16);
  settle();
  EXPECT_EQ(active(), (Numbers{1}));
}

// Four fit at a time at first. The fifth and sixth complete what is learned from; the others wait
// for that instead of taking room that they do not need.
TEST_F(SweepTest, AutomaticSharesAreWaitedForOnceOneTrialHasEnded) {
  start(automatic(24));
  for (std::uint64_t n = 1; n <= 4; ++n) run(n);
  EXPECT_EQ(active(), (Numbers{1, 2, 3, 4, 5})) << "the cards are filled first";
  for (std::uint64_t n = 1; n <= 4; ++n) {
    end(n, Outcome::kOk, {}, Bytes::from_gib(1));
    if (state_of(5) == TrialState::kPending) run(5);
    if (sweep_->find(6) != nullptr && state_of(6) == TrialState::kPending) run(6);
  }
  EXPECT_EQ(active(), (Numbers{5, 6}));
  end(5, Outcome::kOk, {}, Bytes::from_gib(1));
  EXPECT_EQ(active(), (Numbers{6}));
  end(6, Outcome::kOk, {}, Bytes::from_gib(1));
  EXPECT_EQ(active(), (Numbers{7}));
  EXPECT_LE(*sweep_->find(7)->granted, Bytes::from_mib(1024 + 256));
}

TEST_F(SweepTest, TheLastTrialsWaitForNoPeaks) {
  start(automatic(8));
  for (std::uint64_t n = 1; n <= 4; ++n) run(n);
  for (std::uint64_t n = 1; n <= 4; ++n) end(n, Outcome::kOk, {}, Bytes::from_gib(1));
  for (std::uint64_t n = 5; n <= 7; ++n) run(n);
  EXPECT_EQ(active(), (Numbers{5, 6, 7, 8}));
}

TEST_F(SweepTest, FailedTrialsAreNotWaitedFor) {
  start(automatic(24));
  for (std::uint64_t n = 1; n <= 12; ++n) {
    run(n);
    end(n, Outcome::kFailed, {}, Bytes::from_gib(1));
  }
  EXPECT_EQ(active(), (Numbers{13}));
}

// Trials of hours: what they have used after a minute is learned from, and waited for.
TEST_F(SweepTest, AutomaticSharesLearnFromTrialsThatRun) {
  start(automatic(24));
  for (std::uint64_t n = 1; n <= 4; ++n) run(n);
  end(1, Outcome::kOk, {}, Bytes::from_gib(1));
  run(5);
  run(6);
  EXPECT_EQ(active(), (Numbers{2, 3, 4, 5, 6}));
  used_ = Bytes::from_gib(1);
  const std::optional<WallTime> next = sweep_->next_change(now_);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->ms, sweep_->find(2)->started->ms + kSteadyMs);
  now_.ms = sweep_->find(6)->started->ms + kSteadyMs - 100;
  settle();
  EXPECT_EQ(active(), (Numbers{2, 3, 4, 5, 6}));
  now_.ms += 100;
  settle();
  EXPECT_EQ(active(), (Numbers{2, 3, 4, 5, 6, 7}));
  EXPECT_LE(*sweep_->find(7)->granted, Bytes::from_mib(1024 + 256));
}

TEST_F(SweepTest, TrialsWhosePeakStaysUnknownAreNotWaitedForLong) {
  start(automatic(24));
  for (std::uint64_t n = 1; n <= 4; ++n) run(n);
  end(1, Outcome::kOk, {}, Bytes::from_gib(1));
  run(5);
  run(6);
  now_.ms += kSteadyMs;
  settle();
  EXPECT_EQ(active(), (Numbers{2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(sweep_->find(7)->granted, Bytes::from_gib(4)) << "nothing is learned";
}

TEST_F(SweepTest, AutomaticSharesFollowWhatTrialsUsed) {
  start(automatic(12));
  for (std::uint64_t n = 1; n <= 11; ++n) {
    run(n);
    end(n, Outcome::kOk, {}, Bytes::from_gib(1));
  }
  EXPECT_LE(*sweep_->find(12)->granted, Bytes::from_mib(1024 + 256));
  EXPECT_GE(*sweep_->find(12)->granted, Bytes::from_gib(1));
}

// Blocked sweeps drew a point in every turn, and threw it away.
TEST(Sweep, DrawsNothingWhileNoJobWouldBeAccepted) {
  const Sweep sweep(1, std::make_shared<const Plan>(four()), {1'000});
  int asked = 0;
  Circumstances blocked{{2'000}, {}, [&] {
                          ++asked;
                          return false;
                        }};
  EXPECT_FALSE(sweep.next(blocked));
  EXPECT_EQ(asked, 1);
  blocked.may_begin = [] { return true; };
  const std::optional<Step> step = sweep.next(blocked);
  ASSERT_TRUE(step);
  EXPECT_TRUE(std::holds_alternative<Begin>(*step));
}

TEST(SweepPlan, RefusesASweepWithoutAnEnd) {
  Plan plan = plan_of({Parameter{"lr", Range{0, 1}, {}}});
  plan.sampling.method = Method::kRandom;
  const Result<Plan> fine = checked(std::move(plan));
  ASSERT_FALSE(fine.ok());
  EXPECT_NE(fine.error().hint.find("--trials N"), std::string::npos);
}

TEST(SweepPlan, RefusesACommandThatMayBecomeTooLong) {
  Plan plan = plan_of({listed("lr", {"1", std::string(3000, 'x')})});
  plan.job.command = {"train", "{lr}", "{lr}"};
  ASSERT_FALSE(checked(std::move(plan)).ok());
}

TEST(SweepPlan, RefusesParametersThatShareAnEnvironmentVariable) {
  Plan plan = plan_of({listed("lr", {"1"}), listed("LR", {"2"})});
  const Result<Plan> fine = checked(std::move(plan));
  ASSERT_FALSE(fine.ok());
  EXPECT_NE(fine.error().message.find("lr and LR"), std::string::npos);
}

// A plan is stored with its rules as texts. One with the metric "a,b" kept the daemon from
// starting.
TEST(SweepPlan, IsReadBackFromItsTexts) {
  for (const char* name : {"a,b", "a=b", " a", "a ", "", "a\nb", "min=1"}) {
    Plan plan = four();
    plan.goal = Goal{name, false};
    plan.halving = *parse_halving("min=1,max=3");
    EXPECT_FALSE(checked(plan).ok()) << name;
    plan.goal = Goal{"loss", false};
    plan.halving->metric = name;
    EXPECT_EQ(checked(plan).ok(), *name == '\0') << name;
  }
  Plan plan = four();
  plan.goal = Goal{"val/loss of 3", false};
  plan.halving = *parse_halving("min=1,max=3");
  const Result<Plan> fine = checked(plan);
  ASSERT_TRUE(fine.ok());
  EXPECT_EQ(*parse_halving(to_string(*fine->halving)), *fine->halving);
}

// A template beyond the limit was stored by its hash, and ran with its braces.
TEST(SweepPlan, RefusesALongCommandWhoseTrialsAreShort) {
  const std::string name(120, 'n');
  Plan plan = plan_of({listed(name.c_str(), {"1"})});
  plan.job.command.assign(40, "{" + name + "}");
  ASSERT_FALSE(checked(std::move(plan)).ok());
}

TEST(SweepPlan, RefusesATargetThatComparesNoMetric) {
  for (const char* text : {"loss", "1 < 2", "loss < 1 and lr > 2"}) {
    Plan plan = four();
    plan.target = *parse_target(text, plan);
    EXPECT_FALSE(checked(std::move(plan)).ok()) << text;
  }
}

TEST(SweepPlan, RefusesASpaceWithoutAPoint) {
  Plan plan = four();
  plan.space = *Space::make(plan.space.parameters(),
                            *Expression::parse("lr > 4", std::vector<std::string>{"lr"}));
  const Result<Plan> fine = checked(std::move(plan));
  ASSERT_FALSE(fine.ok());
  EXPECT_EQ(fine.error().message, "the space has no point");
}

TEST(SweepPlan, CountsThePointsThatThereAre) {
  Plan plan = four();
  plan.space = *Space::make({plan.space.parameters().front(), listed("mom", {"1", "2", "3"})},
                            *Expression::parse("lr > 2", std::vector<std::string>{"lr", "mom"}));
  EXPECT_EQ(plan.space.size(), 12u);
  EXPECT_EQ(trials_of(plan), 6u);
}

TEST(SweepPlan, ATargetMayNameAMetricThatOnlyTheProgramKnows) {
  const Result<Expression> target = parse_target("val_loss < 0.1 and not (epoch < 3)", four());
  ASSERT_TRUE(target.ok());
  EXPECT_EQ(target->names(), (std::vector<std::string>{"val_loss", "epoch"}));
  EXPECT_FALSE(parse_target("val_loss <", four()).ok());
}

TEST(SweepPlan, TheJobOfATrialHasItsParametersAndNoKeyOfTheSweep) {
  Plan plan = four();
  plan.job.key = "k";
  plan.halving = *parse_halving("metric=loss,min=1,max=9,eta=3");
  const JobSpec spec =
      job_of_trial(plan, 7, 3, plan.space.at(std::vector{0.9}), Bytes::from_gib(2));
  EXPECT_EQ(spec.command, (std::vector<std::string>{"train", "--lr", "4"}));
  EXPECT_EQ(spec.name, "scan.3");
  EXPECT_EQ(spec.key, "");
  ASSERT_TRUE(spec.trial);
  EXPECT_EQ(spec.trial->sweep, 7u);
  EXPECT_EQ(spec.trial->rungs, (Numbers{1, 3, 9}));
  EXPECT_EQ(to_string(*spec.request.gpu), "2G");
}

}  // namespace
}  // namespace mete::core::sweep
