// SPDX-License-Identifier: Apache-2.0
// What time does to the engine: clocks that are set, deadlines that pass in the middle of a turn,
// and what was under way when the machine went down. Wall time and monotonic time of the fake clock
// move independently.
#include "engine/test/engine_world.h"

namespace mete::engine {
namespace {

using core::Outcome;
using seam::Milliseconds;

class TimeTest : public EngineTest {
 protected:
  WallTime in(std::int64_t seconds) { return {clock_.wall().ms + seconds * 1000}; }
  void reboot(const std::string& id) {
    options_.boot_id = id;
    crash_and_restart();
  }
};

TEST_F(TimeTest, AClockThatIsSetBackLetsThoseStartWhoWereBehind) {
  run(detached("60G"));
  core::Submit first = detached("80G");
  first.spec.begin = in(-1);
  submit(first);
  const JobId behind = submit(detached("10G"));
  EXPECT_EQ(state_of(behind), JobState::kPending)
      << "the card is held for the first job in the queue";
  clock_.set_wall(Milliseconds(-60'000));
  tick();
  EXPECT_EQ(state_of(behind), JobState::kStarting) << "whose time has not come any more";
}

TEST_F(TimeTest, NobodyStartsAfterItsDeadlineBesideSomebodyWhoDoesNotWait) {
  const JobId running = run("80G");
  core::Submit late = detached("40G");
  late.spec.time_s = 50;
  late.spec.deadline = in(100);
  const JobId id = submit(late);
  clock_.advance(Milliseconds(60'000));
  turn({end_of(running), job("1G", false)});
  EXPECT_EQ(state_of(id), JobState::kEnded);
  EXPECT_EQ(engine_->state().find(id)->outcome, Outcome::kDeadline);
}

// A job can stop its own keeper (SIGSTOP), which is its user's process.
TEST_F(TimeTest, WhoIsNotEndedAfterItsTimeIsEndedByTheEngine) {
  core::Submit asked = detached("10G");
  asked.spec.time_s = 100;
  const JobId kept = run(asked);
  core::Submit of_run = job("10G");
  of_run.spec.time_s = 100;
  const JobId held = run(of_run);
  const JobId unlimited = run(detached("10G"));
  const Milliseconds patience = Milliseconds(130'000) + kLimitPatience;  // its time, and the grace
  clock_.set_wall(Milliseconds(86'400'000));  // not part of a program's run time
  clock_.advance(patience - Milliseconds(1'000));
  tick();
  EXPECT_EQ(state_of(kept), JobState::kRunning) << "its keeper does that";
  ASSERT_TRUE(engine_->next_change());
  EXPECT_LE(engine_->next_change()->ms, clock_.wall().ms + 1'000);
  (void)launcher_.take_calls();
  clock_.advance(Milliseconds(1'000));
  tick();
  for (const JobId id : {kept, held}) {
    EXPECT_EQ(state_of(id), JobState::kStopping);
    EXPECT_EQ(engine_->state().find(id)->outcome, Outcome::kTimeout);
  }
  EXPECT_EQ(launcher_.take_calls(), (Calls{"stop 1", "stop 2"}));
  EXPECT_EQ(state_of(unlimited), JobState::kRunning);
  turn({core::JobGone{kept}, core::JobGone{held}});
  EXPECT_EQ(state_of(kept), JobState::kEnded);
  EXPECT_EQ(state_of(held), JobState::kEnded);
  EXPECT_FALSE(engine_->next_change());
}

// It can do so before its start was reported.
TEST_F(TimeTest, WhoNeverSaysThatItHasBegunIsEndedToo) {
  core::Submit asked = detached("10G");
  asked.spec.time_s = 100;
  const JobId id = submit(asked);
  clock_.advance(Milliseconds(129'000) + kLimitPatience + kStartPatience);
  tick();
  EXPECT_EQ(state_of(id), JobState::kStarting);
  clock_.advance(Milliseconds(1'000));
  tick();
  EXPECT_EQ(state_of(id), JobState::kStopping);
  EXPECT_EQ(engine_->state().find(id)->outcome, Outcome::kTimeout);
}

TEST_F(TimeTest, AfterARestartItsTimeCountsAnew) {
  core::Submit asked = detached("10G");
  asked.spec.time_s = 100;
  const JobId id = run(asked);
  clock_.advance(Milliseconds(100'000));
  crash_and_restart();
  clock_.advance(Milliseconds(130'000));
  tick();
  EXPECT_EQ(state_of(id), JobState::kRunning);
  clock_.advance(kLimitPatience);
  tick();
  EXPECT_EQ(state_of(id), JobState::kStopping);
}

// A `mete run` that is stopped (Ctrl-Z), or does not react.
TEST_F(TimeTest, ARunThatDoesNotEndItsJobIsEndedByTheEngine) {
  const JobId deaf = run("10G");
  const JobId good = run("10G");
  (void)launcher_.take_calls();
  turn({core::Cancel{deaf, alice()}, core::Cancel{good, alice()}});
  EXPECT_EQ(launcher_.take_calls(), (Calls{"watch 1", "wake 1", "watch 2", "wake 2"}));
  turn({end_of(good)});
  (void)launcher_.take_calls();
  const Milliseconds patience = Milliseconds(30'000) + kStopPatience;  // the grace first
  clock_.advance(patience - Milliseconds(1'000));
  tick();
  EXPECT_EQ(launcher_.take_calls(), Calls{}) << "its runner does that";
  ASSERT_TRUE(engine_->next_change());
  EXPECT_LE(engine_->next_change()->ms, clock_.wall().ms + 1'000);
  clock_.advance(Milliseconds(1'000));
  tick();
  EXPECT_EQ(launcher_.take_calls(), Calls{"stop 1"});
  EXPECT_FALSE(engine_->next_change());
  tick();
  EXPECT_EQ(launcher_.take_calls(), Calls{}) << "once";
  turn({core::JobGone{deaf}});
  EXPECT_EQ(state_of(deaf), JobState::kEnded);
  EXPECT_EQ(engine_->state().find(deaf)->outcome, Outcome::kCancelled);
}

TEST_F(TimeTest, AfterARestartARunHasItsTimeToEndAnew) {
  const JobId deaf = run("10G");
  turn({core::Cancel{deaf, alice()}});
  clock_.advance(Milliseconds(30'000));
  (void)launcher_.take_calls();
  crash_and_restart();
  EXPECT_EQ(launcher_.take_calls(), (Calls{"reserve 1", "watch 1", "wake 1"}));
  clock_.advance(Milliseconds(30'000));
  tick();
  EXPECT_EQ(launcher_.take_calls(), Calls{});
  clock_.advance(kStopPatience);
  tick();
  EXPECT_EQ(launcher_.take_calls(), Calls{"stop 1"});
}

// `run --exec`: the program is its own runner, and nothing else could end it.
TEST_F(TimeTest, AProgramThatIsItsOwnRunnerIsEndedAtOnce) {
  const core::Submit asked = job("10G");
  const JobId id = submit(asked);
  turn({core::Started{id, kAlice, *asked.runner}});
  (void)launcher_.take_calls();
  turn({core::Cancel{id, alice()}});
  EXPECT_EQ(launcher_.take_calls(), Calls{"stop 1"});
  turn({core::RunnerGone{id}, core::JobGone{id}});
  EXPECT_EQ(engine_->state().find(id)->outcome, Outcome::kCancelled);
}

TEST_F(TimeTest, AProgramThatIsItsOwnRunnerEndsAsNoProcessOfOursKnows) {
  const core::Submit asked = job("10G");
  const JobId id = submit(asked);
  turn({core::Started{id, kAlice, *asked.runner}});
  turn({core::RunnerGone{id}});
  EXPECT_EQ(state_of(id), JobState::kStopping);
  turn({core::JobGone{id}});
  EXPECT_EQ(engine_->state().find(id)->outcome, Outcome::kUnknown);
}

TEST_F(TimeTest, ARunThatWasBeingCancelledWhenTheMachineWentDownIsCancelled) {
  reboot("one");
  const JobId cancelled = run("20G");
  const JobId other = run("20G");
  turn({core::Cancel{cancelled, alice()}});
  EXPECT_EQ(state_of(cancelled), JobState::kStopping);
  reboot("two");
  EXPECT_EQ(engine_->state().find(cancelled)->outcome, Outcome::kCancelled);
  EXPECT_EQ(engine_->state().find(other)->outcome, Outcome::kLost);
}

// Nothing happens for a while: a forecast is of the current time.
TEST_F(TimeTest, AForecastIsNotOfAMomentThatHasPassed) {
  core::Submit first = job("80G");
  first.spec.time_s = 600;
  run(std::move(first));
  const JobId waits = submit("80G");
  const WallTime began = clock_.wall();
  EXPECT_LE(engine_->forecast(waits)->at.ms - began.ms, 601'000);
  clock_.advance(std::chrono::seconds(605));
  engine_->see(machine_);
  tick();
  EXPECT_GE(engine_->forecast(waits)->at, clock_.wall());
}

}  // namespace
}  // namespace mete::engine
