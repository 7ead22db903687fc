// SPDX-License-Identifier: Apache-2.0
// Jobs of mete submit: started, found again, ended and forgotten by the launcher, each once and
// only after it is on disk; over crashes, reboots and full disks. The launcher is a fake that
// records its calls; a test plays the keepers.
#include <algorithm>

#include "engine/test/engine_world.h"

namespace mete::engine {
namespace {

class DetachedTest : public EngineTest {
 protected:
  DetachedTest() { (void)launcher_.take_calls(); }

  // What the launcher reports about keepers.
  void keeper_started(JobId id) {
    turn({core::Started{id, 0, program_of(id), 0, core::ProcessRef{77, 7}}});
    EXPECT_EQ(state_of(id), JobState::kRunning);
  }
  void keeper_ended(JobId id, int code = 0) {
    core::Exit exit;
    exit.code = code;
    turn({core::Ended{id, 0, exit}});
  }
  JobId run_detached(core::Submit asked) {
    const JobId id = submit(std::move(asked));
    keeper_started(id);
    (void)launcher_.take_calls();
    return id;
  }
  JobId run_detached(const std::string& gpu) { return run_detached(detached(gpu)); }
  const core::Job& job_of(JobId id) { return *engine_->state().find(id); }
  // Runs turns as the daemon does: at once, and when time alone changes something.
  void go_on() {
    tick();
    while (engine_->again()) tick();
  }
  void reboot(const std::string& boot_id) {
    options_.boot_id = boot_id;
    crash_and_restart();
  }
};

// ---- asked for twice ---------------------------------------------------------------------------

TEST_F(DetachedTest, AnEqualKeyOfItsUserIsTheSameJob) {
  core::Submit asked = detached("50G");
  asked.spec.key = "k1";
  const JobId id = submit(asked);
  EXPECT_EQ(submit(asked), id) << "its answer was lost";
  crash_and_restart();
  EXPECT_EQ(submit(asked), id) << "with its daemon";
  ASSERT_TRUE(engine_->save().ok());
  crash_and_restart();
  EXPECT_EQ(submit(asked), id) << "and by the short form of the log";
  EXPECT_EQ(engine_->state().jobs().size(), 1u);
  core::Submit another = asked;
  another.spec.uid = kAlice + 1;
  EXPECT_NE(submit(another), id) << "another user's key is another key";
  asked.spec.key = "k2";
  EXPECT_NE(submit(asked), id);
  asked.spec.key = "";
  EXPECT_NE(submit(asked), submit(asked));
}

TEST_F(DetachedTest, AnEqualKeyInOneTurnIsTheSameJob) {
  core::Submit asked = detached("50G");
  asked.spec.key = "k1";
  asked.spec.array = *core::parse_array("0-2");
  const std::vector<Answer> answers = turn({asked, asked});
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(*answers[0].result, JobId{1});
  EXPECT_EQ(*answers[1].result, JobId{1}) << "the array, not one of it";
  EXPECT_EQ(engine_->state().jobs().size(), 3u);
}

TEST_F(DetachedTest, AKeyIsForgottenWithItsJob) {
  options_.rules.ended_kept = 0;
  crash_and_restart();
  core::Submit asked = detached("0");
  asked.spec.key = "k1";
  const JobId first = submit(asked);
  keeper_started(first);
  keeper_ended(first);
  EXPECT_EQ(submit(asked), first);
  for (int i = 0; i < 200; ++i) keeper_ended(run_detached("0"));
  ASSERT_EQ(engine_->state().find(first), nullptr);
  EXPECT_NE(submit(asked), first);
}

TEST_F(DetachedTest, WhatDoesNotWaitIsRefusedTwice) {
  core::Submit asked = detached("50G");
  asked.spec.key = "k1";
  asked.wait = false;
  launcher_.others_agree = [](JobId, const std::vector<core::GrantedCard>&) { return false; };
  ASSERT_FALSE(turn({asked}).front().result);
  launcher_.others_agree = nullptr;
  const Result<JobId> again = turn({asked}).front().result;
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kExhausted);
}

// ---- started, ended, put away ------------------------------------------------------------------

TEST_F(DetachedTest, IsStartedOnceWhenItHasItsGrant) {
  const JobId id = submit(detached("50G"));
  EXPECT_EQ(launcher_.take_calls(), (Calls{"reserve 1", "start 1"}));
  EXPECT_EQ(launcher_.kept().at(id).grant.front().bytes, Bytes::from_gib(50));
  const JobId waits = submit(detached("50G"));
  tick();
  EXPECT_EQ(launcher_.take_calls(), Calls{}) << "neither again, nor one that waits";
  keeper_started(id);
  EXPECT_EQ(launcher_.take_calls(), Calls{});
  EXPECT_EQ(job_of(id).runner, (core::ProcessRef{77, 7}));
  keeper_ended(id);
  EXPECT_EQ(launcher_.take_calls(), (Calls{"reserve 2", "forget 1", "start 2"}));
  EXPECT_EQ(state_of(waits), JobState::kStarting);
  tick();
  EXPECT_EQ(launcher_.take_calls(), Calls{});
}

TEST_F(DetachedTest, NothingIsStartedThatIsNotOnDisk) {
  store_.set_full(0);
  EXPECT_EQ(turn({detached("8G")}).front().result.error().code, ErrorCode::kExhausted);
  EXPECT_EQ(launcher_.take_calls(), (Calls{"reserve 1", "forget 1"}));
  EXPECT_TRUE(launcher_.kept().empty());
  store_.set_room();
  clock_.advance(seam::Milliseconds(1'000));
  EXPECT_EQ(tick().size(), 0u);
  EXPECT_TRUE(turn({detached("8G")}).front().result.ok());
  EXPECT_EQ(launcher_.take_calls(), (Calls{"reserve 1", "start 1"}));
}

TEST_F(DetachedTest, AnEndThatIsNotOnDiskIsNotPutAway) {
  const JobId id = run_detached("8G");
  store_.set_full(0);
  keeper_ended(id);
  EXPECT_EQ(launcher_.take_calls(), Calls{"reserve 1"})
      << "the keeper's record is all there is of it";
  store_.set_room();
  tick();
  EXPECT_EQ(launcher_.take_calls(), Calls{"forget 1"});
}

TEST_F(DetachedTest, IsStoppedOnce) {
  const JobId id = run_detached("8G");
  turn({core::Cancel{id, alice()}});
  EXPECT_EQ(launcher_.take_calls(), Calls{"stop 1"}) << "the keeper waits for the order";
  turn({core::Cancel{id, alice()}});
  turn({core::RunnerGone{id}});
  tick();
  EXPECT_EQ(launcher_.take_calls(), Calls{});
  turn({core::JobGone{id}});
  EXPECT_EQ(launcher_.take_calls(), Calls{"forget 1"});
  EXPECT_EQ(job_of(id).outcome, core::Outcome::kCancelled);
}

TEST_F(DetachedTest, WhatIsCancelledInTheTurnOfItsGrantIsFoundAndStopped) {
  const std::vector<Answer> answers = turn({detached("8G")});
  (void)launcher_.take_calls();
  const JobId first = *answers.front().result;
  keeper_ended(first);
  (void)launcher_.take_calls();
  // Granted and cancelled before anything was done about it.
  core::Submit two = detached("40G");
  two.spec.array = *core::parse_array("0-2");
  two.wait = false;
  EXPECT_FALSE(turn({two}).front().result.ok()) << "two of three have room";
  EXPECT_EQ(launcher_.take_calls(), (Calls{"reserve 2_0", "reserve 2_1", "forget 2_2", "start 2_0",
                                           "stop 2_0", "start 2_1", "stop 2_1"}));
  EXPECT_EQ(launcher_.kept().at(JobId{2, 0}).state, JobState::kStopping)
      << "the launcher does not begin it";
  turn({core::NotLaunched{{2, 0}, ""}, core::NotLaunched{{2, 1}, ""}});
  EXPECT_EQ(launcher_.take_calls(), (Calls{"forget 2_0", "forget 2_1"}));
  EXPECT_EQ(engine_->state().unfinished(), 0u);
}

TEST_F(DetachedTest, WhatCouldNotBeBegunIsBegunAnew) {
  const JobId id = submit(detached("8G"));
  (void)launcher_.take_calls();
  turn({core::NotLaunched{id, ""}});
  EXPECT_EQ(launcher_.take_calls(), Calls{"forget 1"}) << "before it is promised the same again";
  EXPECT_TRUE(engine_->again());
  go_on();
  EXPECT_EQ(launcher_.take_calls(), (Calls{"reserve 1", "start 1"}));
  EXPECT_EQ(job_of(id).attempt, 1u);
}

TEST_F(DetachedTest, EachAttemptIsPutAwayBeforeTheNextBegins) {
  core::Submit asked = detached("10G");
  asked.spec.retry_gpu_pct = 150;
  const JobId id = run_detached(asked);
  core::Exit exit;
  exit.code = 1;
  exit.gpu_oom = true;
  turn({core::Ended{id, 0, exit}});
  EXPECT_EQ(launcher_.take_calls(), Calls{"forget 1"});
  go_on();
  EXPECT_EQ(launcher_.take_calls(), (Calls{"reserve 1", "start 1"}));
  EXPECT_EQ(launcher_.kept().at(id).attempt, 2u);
  EXPECT_EQ(launcher_.kept().at(id).grant.front().bytes, Bytes::from_gib(15));
}

TEST_F(DetachedTest, ARetryComesWhenItsPauseIsOver) {
  core::Submit asked = detached("10G");
  asked.spec.retries = 1;
  const JobId id = run_detached(asked);
  keeper_ended(id, 1);
  EXPECT_FALSE(engine_->again());
  const std::optional<WallTime> due = engine_->next_change();
  ASSERT_TRUE(due.has_value());
  go_on();
  EXPECT_EQ(state_of(id), JobState::kPending);
  clock_.advance(seam::Milliseconds(due->ms - clock_.wall().ms));
  go_on();
  EXPECT_EQ(state_of(id), JobState::kStarting) << "without any input";
}

TEST_F(DetachedTest, AJobThatRunsOnceMoreWasPutAwayAlready) {
  const JobId id = run_detached("8G");
  keeper_ended(id);
  (void)launcher_.take_calls();
  const std::vector<Answer> answers = turn({core::Requeue{id, alice()}});
  EXPECT_EQ(answers.front().changed, Ids{id});
  go_on();
  EXPECT_EQ(launcher_.take_calls(), (Calls{"reserve 1", "start 1"}));
}

TEST_F(DetachedTest, AnArrayIsStartedElementByElement) {
  core::Submit asked = detached("30G");
  asked.spec.array = *core::parse_array("0-2");
  const JobId id = submit(asked);
  EXPECT_EQ(id, JobId{1});
  EXPECT_EQ(launcher_.take_calls(),
            (Calls{"reserve 1_0", "reserve 1_1", "start 1_0", "start 1_1"}));
  const std::vector<Answer> answers = turn({core::Cancel{id, alice()}});
  EXPECT_EQ(answers.front().changed, (Ids{{1, 0}, {1, 1}, {1, 2}}));
  EXPECT_EQ(launcher_.take_calls(), (Calls{"forget 1_2", "stop 1_0", "stop 1_1"}));
}

TEST_F(DetachedTest, ADeadlineStopsIt) {
  core::Submit asked = detached("8G");
  asked.spec.deadline = WallTime{clock_.wall().ms + 60'000};
  const JobId id = run_detached(asked);
  EXPECT_EQ(engine_->next_change(), asked.spec.deadline);
  clock_.advance(seam::Milliseconds(60'000));
  tick();
  EXPECT_EQ(launcher_.take_calls(), Calls{"stop 1"});
  keeper_ended(id);
  EXPECT_EQ(job_of(id).outcome, core::Outcome::kDeadline);
}

TEST_F(DetachedTest, OneThatWaitsForATimeStartsThen) {
  core::Submit asked = detached("8G");
  asked.spec.begin = WallTime{clock_.wall().ms + 60'000};
  const JobId id = submit(asked);
  EXPECT_EQ(engine_->next_change(), asked.spec.begin);
  EXPECT_EQ(state_of(id), JobState::kPending);
  clock_.advance(seam::Milliseconds(60'000));
  tick();
  EXPECT_EQ(state_of(id), JobState::kStarting);
}

TEST_F(DetachedTest, WhoHangsOnAFailureEndsInTheSameTurn) {
  const JobId first = run_detached("8G");
  core::Submit asked = detached("8G");
  asked.spec.after = {{first, core::When::kOk}};
  const JobId second = submit(asked);
  asked.spec.after = {{second, core::When::kOk}};
  const JobId third = submit(asked);
  keeper_ended(first, 1);
  EXPECT_EQ(job_of(second).outcome, core::Outcome::kDependency);
  EXPECT_EQ(job_of(third).outcome, core::Outcome::kDependency);
}

// ---- restart -----------------------------------------------------------------------------------

TEST_F(DetachedTest, AfterARestartKeepersAreFoundOfAllThatHoldAGrant) {
  const JobId starts = submit(detached("10G"));
  const JobId runs = run_detached("10G");
  const JobId stops = run_detached("10G");
  turn({core::Cancel{stops, alice()}});
  const JobId over = run_detached("10G");
  keeper_ended(over);
  submit(detached("80G"));
  (void)launcher_.take_calls();
  crash_and_restart();
  EXPECT_EQ(launcher_.take_calls(), (Calls{"reserve 1", "reserve 2", "reserve 3", "start 1",
                                           "start 2", "start 3", "stop 3"}));
  EXPECT_EQ(launcher_.kept().at(runs).program, program_of(runs));
  tick();
  EXPECT_EQ(launcher_.take_calls(), Calls{}) << "each once";
  keeper_started(starts);
  keeper_ended(runs);
  EXPECT_EQ(state_of(runs), JobState::kEnded) << "also what ended while no daemon ran";
}

TEST_F(DetachedTest, AKeeperThatIsGoneWithoutAWordLosesItsJob) {
  const JobId id = run_detached("10G");
  core::Submit asked = detached("10G");
  asked.spec.requeue = true;
  const JobId again = run_detached(asked);
  crash_and_restart();
  turn({core::RunnerGone{id}, core::RunnerGone{again}});
  EXPECT_EQ(launcher_.stops().size(), 2u) << "what they may have left is looked for";
  turn({core::JobGone{id}, core::JobGone{again}});
  EXPECT_EQ(job_of(id).outcome, core::Outcome::kLost);
  go_on();
  EXPECT_EQ(state_of(again), JobState::kStarting);
  EXPECT_EQ(job_of(again).attempt, 2u);
}

TEST_F(DetachedTest, ACrashAtAnyMomentStartsNoAttemptTwice) {
  // A crash follows every turn; the launcher of the next daemon repeats its reports.
  core::Submit asked = detached("10G");
  asked.spec.retry_gpu_pct = 200;
  const JobId id = submit(asked);
  std::uint32_t attempts = 0;
  for (int i = 0; i < 20 && state_of(id) != JobState::kEnded; ++i) {
    crash_and_restart();
    const core::Job& now = job_of(id);
    if (now.state == JobState::kPending) {
      tick();
    } else if (now.state == JobState::kStarting) {
      EXPECT_EQ(now.attempt, ++attempts);
      EXPECT_EQ(launcher_.kept().at(id).attempt, now.attempt);
      keeper_started(id);
    } else {
      core::Exit exit;
      exit.code = 1;
      exit.gpu_oom = true;
      turn({core::Ended{id, 0, exit}});
    }
  }
  EXPECT_EQ(job_of(id).outcome, core::Outcome::kGpuOom);
  EXPECT_EQ(attempts, 4u);
}

// ---- the machine was started anew --------------------------------------------------------------

TEST_F(DetachedTest, AfterARebootRunsAreLostAndKeepersAreAskedFor) {
  reboot("first");
  const JobId theirs = run("10G");
  const JobId mine = run_detached("10G");
  const JobId theirs_waits = submit("80G");
  const JobId mine_waits = submit(detached("80G"));
  (void)launcher_.take_calls();
  reboot("second");
  EXPECT_EQ(job_of(theirs).outcome, core::Outcome::kLost);
  EXPECT_EQ(job_of(theirs_waits).outcome, core::Outcome::kLost);
  EXPECT_EQ(state_of(mine), JobState::kRunning) << "its keeper may have left a record";
  EXPECT_EQ(state_of(mine_waits), JobState::kPending);
  EXPECT_EQ(launcher_.take_calls(), (Calls{"reserve 2", "forget 1", "forget 3", "start 2"}));
  EXPECT_TRUE(launcher_.watched().empty()) << "their numbers are others' now";
  EXPECT_EQ(engine_->state().boot_id(), "second");
}

TEST_F(DetachedTest, TheFirstBootThatIsKnownLosesNothing) {
  const JobId id = run("10G");
  reboot("first");
  EXPECT_EQ(state_of(id), JobState::kRunning) << "of before nothing is known";
  const std::size_t events = store_.committed().size();
  reboot("first");
  EXPECT_EQ(store_.committed().size(), events) << "a restart is no reboot";
  EXPECT_EQ(state_of(id), JobState::kRunning);
  reboot("");
  EXPECT_EQ(state_of(id), JobState::kRunning);
  EXPECT_EQ(engine_->state().boot_id(), "first");
}

TEST_F(DetachedTest, OnAFullDiskARebootIsActedOnWhenItIsRecorded) {
  reboot("first");
  const JobId theirs = run("10G");
  run_detached("10G");
  store_.set_full(0);
  reboot("second");
  EXPECT_FALSE(engine_->settled());
  EXPECT_EQ(launcher_.take_calls(), Calls{"reserve 2"}) << "nothing is done that is not on disk";
  reboot("second");
  store_.set_room();
  tick();
  EXPECT_TRUE(engine_->settled());
  EXPECT_EQ(job_of(theirs).outcome, core::Outcome::kLost);
  EXPECT_EQ(launcher_.take_calls(), (Calls{"reserve 2", "forget 1", "start 2"}));
}

// ---- contents ----------------------------------------------------------------------------------

TEST_F(DetachedTest, ContentsAreKeptWithTheJobThatSpeaksOfThem) {
  clock_.advance(seam::Milliseconds(1));
  const auto ask = [&](core::Submit asked, std::vector<std::pair<std::string, std::string>> blobs) {
    const auto answers = engine_->turn({{++tickets_, std::move(asked), std::move(blobs)}});
    return answers.ok() && answers->size() == 1 && answers->front().result.ok();
  };
  EXPECT_FALSE(ask(detached("90G"), {{"e0", "never"}}));
  EXPECT_TRUE(store_.blobs().empty()) << "what is refused leaves nothing";
  EXPECT_TRUE(ask(detached("8G"), {{"e1", "A=b"}}));
  EXPECT_EQ(*store_.load_blob("e1"), "A=b");
  EXPECT_EQ(*engine_->blob("e1"), "A=b");
  EXPECT_TRUE(ask(detached("8G"), {{"e1", "not asked for again"}}));
  EXPECT_EQ(*store_.load_blob("e1"), "A=b");
  crash_and_restart();
  EXPECT_EQ(*engine_->blob("e1"), "A=b");
}

TEST_F(DetachedTest, OnAFullDiskContentsComeWithTheirJobOrNotAtAll) {
  store_.set_full(0);
  for (std::uint64_t ticket : {1, 2}) {
    const auto refused = engine_->turn({{ticket, detached("8G"), {{"e1", "A=b"}}}});
    ASSERT_EQ(refused->size(), 1u);
    EXPECT_EQ(refused->front().result.error().code, ErrorCode::kExhausted);
  }
  store_.set_room();
  clock_.advance(seam::Milliseconds(1'000));
  tick();
  EXPECT_TRUE(store_.blobs().empty());
  ASSERT_TRUE(engine_->turn({{3, detached("8G"), {{"e1", "A=b"}}}})->front().result.ok());
  EXPECT_EQ(*store_.load_blob("e1"), "A=b") << "what was withdrawn is put again";
}

TEST_F(DetachedTest, ContentsThatNoJobSpeaksOfGoWithTheNextSnapshot) {
  options_.rules.ended_kept = 0;
  crash_and_restart();
  core::Submit first = detached("0");
  first.spec.detached->environment = "old";
  first.spec.detached->script = "script";
  ASSERT_TRUE(engine_->turn({{1, first, {{"old", "A=b"}, {"script", "#!/bin/sh"}}}}).ok());
  ASSERT_TRUE(engine_->save().ok());
  EXPECT_EQ(store_.blobs().size(), 2u);
  keeper_ended(JobId{1});
  for (int i = 0; i < 200; ++i) {
    const JobId id = submit(detached("0"));
    keeper_ended(id);
  }
  ASSERT_EQ(engine_->state().find(JobId{1}), nullptr) << "it is forgotten";
  ASSERT_TRUE(engine_->save().ok());
  EXPECT_EQ(store_.blobs().count("old") + store_.blobs().count("script"), 0u);
  // It is put again when another job needs it.
  ASSERT_TRUE(engine_->turn({{2, first, {{"old", "A=b"}, {"script", "#!/bin/sh"}}}}).ok());
  EXPECT_EQ(*store_.load_blob("old"), "A=b");
}

// ---- history -----------------------------------------------------------------------------------

TEST_F(DetachedTest, ALogIsReplayedByADaemonThatRemembersLess) {
  const JobId first = run_detached("0");
  keeper_ended(first);
  for (int i = 0; i < 200; ++i) {
    const JobId id = submit(detached("0"));
    keeper_ended(id);
  }
  turn({core::Requeue{first, alice()}});
  go_on();
  ASSERT_EQ(state_of(first), JobState::kStarting);
  options_.rules.ended_kept = 10;
  crash_and_restart();
  EXPECT_EQ(state_of(first), JobState::kStarting);
  EXPECT_LT(engine_->state().jobs().size(), 150u);
}

// ---- the disk is full --------------------------------------------------------------------------

TEST_F(DetachedTest, OnAFullDiskEndsAreRecordedAndNothingIsStarted) {
  const JobId a = run_detached("40G");
  const JobId b = run_detached("40G");
  const JobId waits = submit(detached("80G"));
  store_.set_full(10);
  keeper_ended(a);
  keeper_ended(b, 3);
  EXPECT_TRUE(engine_->disk_full());
  EXPECT_EQ(state_of(waits), JobState::kPending);
  crash_and_restart();
  EXPECT_EQ(job_of(a).outcome, core::Outcome::kOk);
  EXPECT_EQ(job_of(b).exit->code, 3);
  store_.set_room();
  go_on();
  EXPECT_EQ(state_of(waits), JobState::kStarting);
}

// A state that cannot be recorded must not cause retries without a pause.
TEST_F(DetachedTest, OnAFullDiskNobodyIsHurried) {
  core::Submit asked = detached("10G");
  asked.spec.retry_gpu_pct = 150;
  const JobId id = run_detached(asked);
  store_.set_full(0);
  core::Exit exit;
  exit.code = 1;
  exit.gpu_oom = true;
  turn({core::Ended{id, 0, exit}});
  tick();
  EXPECT_FALSE(engine_->again());
  store_.set_room();
  tick();
  go_on();
  EXPECT_EQ(state_of(id), JobState::kStarting);
}

}  // namespace
}  // namespace mete::engine
