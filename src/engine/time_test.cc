// SPDX-License-Identifier: Apache-2.0
// What time does to the engine: clocks that are set, deadlines that pass in the middle of things,
// and what was under way when the machine went down.
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
  EXPECT_EQ(state_of(behind), JobState::kPending) << "the card is held for the first in line";
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

}  // namespace
}  // namespace mete::engine
