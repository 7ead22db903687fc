// SPDX-License-Identifier: Apache-2.0
// The engine on fakes (test/engine_world.h): what is answered and done only after its commit, full
// disks, restarts and replay, the end of jobs, other daemons, changes of the machine. A crash drops
// everything that was not committed; the fake launcher checks that each call is on disk first.
#include "engine/engine.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "engine/test/engine_world.h"
#include "wire/job.h"
#include "wire/wait_text.h"

namespace mete::engine {
namespace {

// ---- decide, record, act -----------------------------------------------------------------------

TEST_F(EngineTest, AcknowledgedJobSurvivesCrash) {
  const JobId waits_for = run("80G");
  const JobId id = submit("8G");
  crash_and_restart();
  tick();
  EXPECT_EQ(in_state(JobState::kRunning), Ids{waits_for});
  EXPECT_EQ(in_state(JobState::kPending), Ids{id});
  ended(waits_for);
  EXPECT_EQ(in_state(JobState::kStarting), Ids{id});
}

// The daemon was killed after the commit and before the answer: the runner cannot know, and asks
// again.
TEST_F(EngineTest, ARunnerThatAsksAgainHasItsJobAlready) {
  const core::Submit first = job("50G");
  const JobId id = *turn({first}).front().result;
  crash_and_restart();
  const std::vector<Answer> answers = turn({first});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(*answers.front().result, id);
  EXPECT_EQ(engine_->state().jobs().size(), 1u);
  ended(id);
  // Its next request is another job.
  EXPECT_NE(*turn({first}).front().result, id);
}

TEST_F(EngineTest, WhatWasNotCommittedNeverWas) {
  store_.fail_commit(1, Error::io("the disk is gone"));
  const Result<std::vector<Answer>> answers = engine_->turn({{1, job("8G")}});
  ASSERT_FALSE(answers.ok());
  EXPECT_TRUE(launcher_.watched().empty());
  crash_and_restart();
  EXPECT_TRUE(engine_->state().jobs().empty());
  EXPECT_EQ(submit("8G").number, 1u);
}

TEST_F(EngineTest, NothingIsAnsweredOrActedOnBeforeTheCommit) {
  // Every call that changes the world checks the store (see the fixture); an answer is what turn()
  // returns, after it.
  const JobId id = run("80G");
  const JobId next = submit("80G");
  const std::size_t committed = store_.committed().size();
  (void)launcher_.take_calls();
  store_.set_full(0);
  EXPECT_TRUE(turn({end_of(id)}).empty());
  EXPECT_EQ(launcher_.take_calls(),
            (std::vector<std::string>{"reserve 2", "reserve 1", "forget 2"}))
      << "a reservation comes first, and is taken back";
  EXPECT_FALSE(engine_->settled());
  EXPECT_EQ(store_.committed().size(), committed);
  store_.set_room();
  clock_.advance(seam::Milliseconds(1'000));
  const std::vector<Answer> answers = tick();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(*answers[0].result, id);
  EXPECT_TRUE(engine_->settled());
  tick();
  EXPECT_EQ(state_of(next), JobState::kStarting);
}

TEST_F(EngineTest, OneTurnIsOneCommit) {
  const std::size_t before = store_.commits();
  const std::vector<Answer> answers = turn({job("8G"), job("8G"), job("90G"), core::Look{}});
  EXPECT_EQ(answers.size(), 4u);
  EXPECT_EQ(store_.commits(), before + 1);
  tick();
  EXPECT_EQ(store_.commits(), before + 1) << "nothing happened, nothing is synced";
}

TEST_F(EngineTest, CountsTurnsThatSomebodyWaitsForAndWhatEnds) {
  const auto all = [](const Histogram& histogram) {
    return std::accumulate(histogram.counts.begin(), histogram.counts.end(), std::uint64_t{0});
  };
  const std::uint64_t turns = engine_->health().turns;
  const std::uint64_t commits = all(engine_->health().commits);
  const JobId id = *turn({job("8G")}).front().result;
  EXPECT_EQ(all(engine_->health().decisions), 1u);
  EXPECT_EQ(all(engine_->health().commits), commits + 1);
  ASSERT_TRUE(engine_->turn({{0, core::Look{}}}).ok());
  EXPECT_EQ(engine_->health().turns, turns + 2);
  EXPECT_EQ(all(engine_->health().decisions), 1u) << "no turn waited for a reading of the cards";
  turn({core::Cancel{id, alice()}});
  ended(id);
  std::uint64_t ends = 0;
  for (const auto& [outcome, count] : engine_->health().ended) ends += count;
  EXPECT_EQ(ends, 1u);
  EXPECT_EQ(engine_->health().ended.at(core::Outcome::kCancelled), 1u);
}

TEST_F(EngineTest, EachAnswerCarriesItsTicket) {
  const std::vector<Answer> answers = turn({job("8G"), job("90G"), core::Cancel{{7}, alice()}});
  ASSERT_EQ(answers.size(), 3u);
  std::map<std::uint64_t, Result<JobId>> by_ticket;
  for (const Answer& answer : answers) by_ticket.emplace(answer.ticket, answer.result);
  EXPECT_EQ(by_ticket.at(1)->number, 1u);
  EXPECT_EQ(by_ticket.at(2).error().code, ErrorCode::kInfeasible);
  EXPECT_EQ(by_ticket.at(3).error().code, ErrorCode::kNotFound);
}

TEST_F(EngineTest, EventsAreNumberedWithoutGapsOverCrashes) {
  run("8G");
  crash_and_restart();
  ended(JobId{1});
  for (std::size_t i = 0; i < store_.committed().size(); ++i)
    EXPECT_EQ(store_.committed()[i].seq, i + 1);
  EXPECT_EQ(store_.committed().back().type, "job.ended");
  EXPECT_EQ(store_.committed().back().job, "1");
}

// ---- the disk is full --------------------------------------------------------------------------

TEST_F(EngineTest, OnAFullDiskEndsAreRecordedWithTheBallast) {
  const JobId id = run("80G");
  store_.set_full(10);
  const std::vector<Answer> answers = turn({end_of(id)});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_TRUE(engine_->disk_full());
  crash_and_restart();
  EXPECT_EQ(state_of(id), JobState::kEnded);
}

TEST_F(EngineTest, OnAFullDiskNewJobsAreRefusedAndWaitingOnesStay) {
  const JobId id = run("80G");
  const JobId next = submit("80G");
  store_.set_full(10);
  ended(id);
  ASSERT_TRUE(engine_->disk_full());
  const std::vector<Answer> answers = turn({job("1G")});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].result.error().code, ErrorCode::kExhausted);
  EXPECT_EQ(in_state(JobState::kStarting), Ids{});
  EXPECT_EQ(state_of(next), JobState::kPending);
}

TEST_F(EngineTest, OnAFullDiskASubmitLeavesTheBallastAlone) {
  const JobId id = run("40G");
  const std::size_t committed = store_.committed().size();
  store_.set_full(10);
  std::vector<Answer> answers = turn({job("1G")});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].result.error().code, ErrorCode::kExhausted);
  EXPECT_TRUE(store_.has_ballast());
  EXPECT_EQ(store_.committed().size(), committed);
  EXPECT_EQ(engine_->state().jobs().size(), 1u) << "as if there had been no request";
  EXPECT_TRUE(engine_->settled());
  // In one turn with inputs that the ballast is for.
  answers = turn({job("1G"), core::Cancel{id, alice()}, job("2G")});
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_FALSE(store_.has_ballast());
  for (const Answer& answer : answers)
    EXPECT_EQ(answer.result.ok(), answer.result.ok() && *answer.result == id);
  EXPECT_EQ(state_of(id), JobState::kStopping);
  crash_and_restart();
  EXPECT_EQ(state_of(id), JobState::kStopping);
  EXPECT_EQ(engine_->state().jobs().size(), 1u);
}

TEST_F(EngineTest, OnAFullDiskOnlyWhatEndsJobsIsTaken) {
  const JobId runs = run("40G");
  const JobId waits = submit("80G");
  store_.set_full(10);
  turn({core::Cancel{runs, alice()}});
  ASSERT_TRUE(engine_->disk_full());
  for (const core::Input& input :
       {core::Input(core::Hold{waits, alice()}), core::Input(core::SetPriority{waits, alice(), -1}),
        core::Input(core::ParkJob{runs, alice()})})
    EXPECT_EQ(turn({input}).front().result.error().code, ErrorCode::kExhausted);
  EXPECT_TRUE(turn({core::Cancel{waits, alice()}}).front().result.ok());
  EXPECT_EQ(state_of(waits), JobState::kEnded);
}

TEST_F(EngineTest, WhatHasNoRoomIsRefusedUntried) {
  const JobId id = run("40G");
  const std::size_t commits = store_.commits();
  store_.set_short(true);
  EXPECT_EQ(turn({job("1G")}).front().result.error().code, ErrorCode::kExhausted);
  EXPECT_EQ(store_.commits(), commits);
  EXPECT_TRUE(engine_->disk_full()) << "and it is said";
  ended(id);
  EXPECT_EQ(state_of(id), JobState::kEnded);
  EXPECT_TRUE(store_.has_ballast());
  store_.set_short(false);
  EXPECT_NE(submit("1G").number, 0u);
  EXPECT_FALSE(engine_->disk_full());
}

TEST_F(EngineTest, WithoutRoomNothingIsGrantedInVain) {
  const JobId first = run("40G");
  const JobId next = submit("80G");
  store_.set_short(true);
  ended(first);
  EXPECT_EQ(state_of(next), JobState::kPending);
  EXPECT_TRUE(engine_->disk_full()) << "and it is said";
  EXPECT_TRUE(store_.has_ballast());
  store_.set_short(false);
  tick();
  EXPECT_EQ(state_of(next), JobState::kStarting);
  EXPECT_FALSE(engine_->disk_full());
}

// A withdrawal loads the state: on a disk that stays full it happens once, not with every turn.
TEST_F(EngineTest, ADiskThatStaysFullIsNotTriedAgain) {
  const JobId id = run("20G");
  store_.set_full(10);
  EXPECT_FALSE(turn({job("1G")}).front().result.ok());
  store_.set_short(true);
  ASSERT_TRUE(store_.has_ballast());
  for (int i = 0; i < 5; ++i) {
    clock_.advance(seam::Milliseconds(60'000));
    tick();
    EXPECT_TRUE(engine_->disk_full());
  }
  const std::size_t loads = store_.loads();
  turn({core::Cancel{id, alice()}});
  EXPECT_EQ(store_.loads(), loads) << "into the room of the ballast, and nothing was withdrawn";
  EXPECT_EQ(state_of(id), JobState::kStopping);
}

// What a turn did to the job is withdrawn, and its runner still waits for its turn.
TEST_F(EngineTest, AWaitingRunIsStillWatchedAfterAWithdrawal) {
  run("80G");
  const JobId next = submit("80G");
  ASSERT_TRUE(launcher_.watched().contains(next));
  store_.set_full(10);
  EXPECT_FALSE(turn({core::Hold{next, alice()}}).front().result.ok());
  EXPECT_EQ(state_of(next), JobState::kPending);
  EXPECT_TRUE(launcher_.watched().contains(next));
}

TEST_F(EngineTest, OnAFullDiskNobodyIsGrantedWhatTheBallastIsFor) {
  const JobId first = run("40G");
  const JobId second = run("40G");
  const JobId next = submit("80G");
  store_.set_full(10);
  ended(first);
  ASSERT_TRUE(engine_->disk_full());
  ended(second);
  EXPECT_EQ(state_of(next), JobState::kPending);
  store_.set_room();
  tick();
  EXPECT_FALSE(engine_->disk_full());
  EXPECT_EQ(state_of(next), JobState::kStarting) << "all comes back when there is room";
  EXPECT_NE(submit("1G").number, 0u);
}

TEST_F(EngineTest, WithoutBallastAllIsQueuedUntilThereIsRoom) {
  const JobId id = run("80G");
  const JobId next = submit("80G");
  store_.set_full(0);
  EXPECT_TRUE(turn({end_of(id)}).empty());
  EXPECT_FALSE(engine_->settled());
  EXPECT_TRUE(tick().empty());
  store_.set_room();
  EXPECT_EQ(tick().size(), 1u);
  EXPECT_TRUE(engine_->settled());
  tick();
  EXPECT_FALSE(engine_->wait_of(next)) << "it does not wait any more";
  crash_and_restart();
  EXPECT_EQ(state_of(id), JobState::kEnded);
  EXPECT_EQ(state_of(next), JobState::kStarting);
}

TEST_F(EngineTest, ACrashWhileTheDiskIsFullLosesNothingThatWasAnswered) {
  const JobId id = run("80G");
  store_.set_full(0);
  EXPECT_TRUE(turn({end_of(id)}).empty());
  crash_and_restart();
  EXPECT_EQ(state_of(id), JobState::kRunning) << "the runner was not answered and asks again";
  store_.set_room();
  ended(id);
  EXPECT_EQ(state_of(id), JobState::kEnded);
}

TEST_F(EngineTest, OtherStoreErrorsAreFatal) {
  for (const Error& error : {Error::io("input/output error"), Error::corrupt("not a database")}) {
    store_.fail_commit(1, error);
    const Result<std::vector<Answer>> answers = engine_->turn({{1, job("1G")}});
    ASSERT_FALSE(answers.ok());
    EXPECT_EQ(answers.error(), error);
    crash_and_restart();
  }
}

TEST_F(EngineTest, AFailedCommitThatReachedTheDiskIsFoundThere) {
  store_.fail_commit(1, Error::io("input/output error"), FaultyStore::Left::kAll);
  EXPECT_FALSE(engine_->turn({{1, job("1G")}}).ok());
  crash_and_restart();
  EXPECT_EQ(state_of(JobId{1}), JobState::kStarting);
  EXPECT_EQ(reserved(), Ids{JobId{1}});
  EXPECT_EQ(launcher_.watched().count(JobId{1}), 1u) << "its runner gave up, which we shall hear";
}

// ---- restart -----------------------------------------------------------------------------------

TEST_F(EngineTest, SnapshotAndReplayIsReplayAlone) {
  options_.snapshot_every = 7;
  crash_and_restart();
  for (int i = 0; i < 10; ++i) {
    const JobId id = run("30G");
    if (i % 3 == 0) submit("60G");
    if (i % 4 == 0) turn({core::Cancel{id, alice()}});
    machine_.cards[0].lost = i % 5 == 4;
    engine_->see(machine_);
    turn({core::Look{}});
    machine_.cards[0].lost = false;
    engine_->see(machine_);
    ended(id);
    for (const JobId each : in_state(JobState::kStarting)) ended(each);
  }
  ASSERT_TRUE(store_.snapshot().has_value());
  ASSERT_LT(store_.snapshot()->seq, store_.committed().back().seq);
  core::State replayed;
  for (const seam::StoredEvent& event : store_.committed())
    replayed.apply({event.seq, {event.at_ms}, *wire::decode_event(event.type, event.data)});
  EXPECT_EQ(replayed, engine_->state());
  crash_and_restart();
  EXPECT_EQ(replayed, engine_->state());
}

TEST_F(EngineTest, AThousandEventsAreReplayedWithoutASnapshot) {
  options_.snapshot_every = 1'000'000;
  crash_and_restart();
  for (int i = 0; i < 700; ++i) ended(submit("0"));
  ASSERT_GT(store_.committed().size(), 2000u) << "several batches";
  const core::State before = engine_->state();
  crash_and_restart();
  EXPECT_EQ(engine_->state(), before);
}

TEST_F(EngineTest, SaveMakesTheNextStartQuick) {
  run("8G");
  ASSERT_TRUE(engine_->save().ok());
  ASSERT_TRUE(store_.snapshot().has_value());
  EXPECT_EQ(store_.snapshot()->seq, store_.committed().back().seq);
  const core::State before = engine_->state();
  crash_and_restart();
  EXPECT_EQ(engine_->state(), before);
}

TEST_F(EngineTest, OtherRulesHoldFromTheNextTurnOn) {
  options_.snapshot_every = 1'000'000;
  crash_and_restart();
  for (int i = 0; i < 150; ++i) ended(submit("0"));
  ASSERT_EQ(engine_->state().jobs().size(), 150u);
  options_.rules.ended_kept = 5;
  options_.policy = core::Policy::kSpread;
  engine_->set_rules(options_.policy, options_.rules);
  EXPECT_EQ(engine_->policy(), core::Policy::kSpread);
  ended(submit("0"));
  EXPECT_EQ(engine_->state().jobs().size(), 5u);
  EXPECT_TRUE(store_.snapshot().has_value()) << "what was recorded under the old rules";
  const core::State before = engine_->state();
  crash_and_restart();
  EXPECT_EQ(engine_->state(), before);
}

TEST_F(EngineTest, AMissingEventIsCorruptNotSkipped) {
  struct Gappy final : seam::Store {
    Result<std::optional<seam::Snapshot>> load_snapshot() override { return {std::nullopt}; }
    Result<std::vector<seam::StoredEvent>> load_events(std::uint64_t, std::size_t) override {
      return std::vector<seam::StoredEvent>{{2, 0, "card.lost", "", R"({"card":"GPU-0"})"}};
    }
    void append(seam::StoredEvent) override {}
    void put_snapshot(seam::Snapshot) override {}
    void put_blob(std::string, std::string) override {}
    Result<std::string> load_blob(const std::string&) override { return Error::not_found("none"); }
    void keep_blobs(std::vector<std::string>) override {}
    void withdraw() override {}
    Result<void> commit() override { return {}; }
  } store;
  Engine engine(clock_, store, launcher_, options_);
  EXPECT_EQ(engine.recover().error().code, ErrorCode::kCorrupt);
}

TEST_F(EngineTest, ASnapshotOfAnotherMomentThanItSaysIsCorrupt) {
  run("8G");
  store_.put_snapshot({2, wire::encode(engine_->state().parts())});
  ASSERT_TRUE(store_.commit().ok());
  Engine engine(clock_, store_, launcher_, options_);
  EXPECT_EQ(engine.recover().error().code, ErrorCode::kCorrupt);
}

TEST_F(EngineTest, OthersHearThatAJobHasLessOnceItIsOnDisk) {
  const JobId id = run("8G..70G");
  launcher_.others_agree = [&](JobId job, const std::vector<core::GrantedCard>& cards) {
    const Bytes before = launcher_.reserved().at(job)[0].bytes;
    EXPECT_TRUE(cards[0].bytes >= before ||
                (store_.queued() == 0 && engine_->state().find(job)->grant == cards));
    return true;
  };
  turn({core::Grow{id, kAlice, {Bytes::from_gib(40)}}});
  EXPECT_GE(launcher_.reserved().at(id)[0].bytes, Bytes::from_gib(40));
  turn({core::Grow{id, kAlice, {Bytes::from_gib(10)}}});
  EXPECT_EQ(launcher_.reserved().at(id)[0].bytes, Bytes::from_gib(10));
}

TEST_F(EngineTest, RecoverWatchesRunnersAndKeepsPromises) {
  const JobId runs = run("60G");
  const JobId waits = submit("60G");
  const core::ProcessRef runner = *engine_->state().find(runs)->runner;
  launcher_.others_agree = [](JobId, const auto&) { return false; };
  crash_and_restart();
  EXPECT_EQ(launcher_.watched().size(), 2u);
  EXPECT_EQ(launcher_.watched().at(runs), runner);
  EXPECT_EQ(launcher_.watched().count(waits), 1u);
  EXPECT_EQ(state_of(runs), JobState::kRunning) << "whatever others took meanwhile";
  EXPECT_FALSE(engine_->state().find(runs)->grant.empty());
}

TEST_F(EngineTest, RecoverGoesOnEndingWhatWasBeingEnded) {
  const JobId id = run("8G");
  turn({core::RunnerGone{id}});
  EXPECT_EQ(launcher_.stops().at(id), 1);
  crash_and_restart();
  EXPECT_EQ(launcher_.stops().at(id), 1) << "by the new daemon, too";
  turn({core::JobGone{id}});
  EXPECT_EQ(state_of(id), JobState::kEnded);
  EXPECT_TRUE(launcher_.stops().empty());
}

// ---- ending ------------------------------------------------------------------------------------

TEST_F(EngineTest, ACancelledJobIsEndedByItsRunner) {
  const JobId id = run("8G");
  turn({core::Cancel{id, alice()}});
  EXPECT_EQ(state_of(id), JobState::kStopping);
  EXPECT_TRUE(launcher_.stops().empty());
  ended(id);
  EXPECT_EQ(state_of(id), JobState::kEnded);
}

TEST_F(EngineTest, ACancelledJobWhoseRunnerDiesIsEndedByUs) {
  const JobId id = run("8G");
  turn({core::Cancel{id, alice()}});
  turn({core::RunnerGone{id}});
  EXPECT_EQ(launcher_.stops().at(id), 1);
  turn({core::JobGone{id}});
  EXPECT_EQ(engine_->state().find(id)->outcome, core::Outcome::kCancelled);
  EXPECT_TRUE(reserved().empty());
}

TEST_F(EngineTest, ACancelledJobWithoutARunnerIsEndedByUs) {
  core::Submit orphan = job("8G");
  orphan.runner.reset();
  turn({orphan});
  turn({core::Cancel{JobId{1}, alice()}});
  EXPECT_EQ(launcher_.stops().at(JobId{1}), 1);
}

TEST_F(EngineTest, WhatHasEndedIsForgottenByTheLauncher) {
  const JobId id = run("8G");
  ended(id);
  EXPECT_TRUE(launcher_.reserved().empty());
  EXPECT_TRUE(launcher_.watched().empty());
}

// ---- other daemons -----------------------------------------------------------------------------

TEST_F(EngineTest, AJobStaysPendingWhenAnotherDaemonWasFirst) {
  bool agree = false;
  launcher_.others_agree = [&agree](JobId, const auto&) { return agree; };
  const JobId id = submit("8G");
  EXPECT_EQ(state_of(id), JobState::kPending);
  ASSERT_TRUE(engine_->wait_of(id));
  EXPECT_FALSE(wire::wait_text(*engine_->wait_of(id)).empty());
  agree = true;
  tick();
  EXPECT_EQ(state_of(id), JobState::kStarting) << "the other daemon may have given it back unseen";
}

TEST_F(EngineTest, WhoDoesNotWaitIsToldForWhatItWouldWait) {
  run("80G");
  const std::vector<Answer> answers = turn({job("8G", false)});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].result.error().message, core::no_room_now().message);
  EXPECT_EQ(answers[0].result.error().evidence.rfind("waits for 8 GiB on one card; card 0: ", 0),
            0u)
      << answers[0].result.error().evidence;
}

TEST_F(EngineTest, WhoDoesNotWaitIsToldWhenAnotherDaemonWasFirst) {
  launcher_.others_agree = [](JobId, const auto&) { return false; };
  const std::vector<Answer> answers = turn({job("8G", false)});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].result.error().code, ErrorCode::kExhausted);
  EXPECT_TRUE(in_state(JobState::kPending).empty());
  EXPECT_TRUE(launcher_.watched().empty());
}

TEST_F(EngineTest, OfTwoWhoDoNotWaitInOneTurnOneStarts) {
  const std::vector<Answer> answers = turn({job("50G", false), job("50G", false)});
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(std::count_if(answers.begin(), answers.end(),
                          [](const Answer& answer) { return answer.result.ok(); }),
            1);
  EXPECT_EQ(in_state(JobState::kStarting), Ids{JobId{1}});
}

// ---- the machine -------------------------------------------------------------------------------

TEST_F(EngineTest, WhatOthersHoldIsNotGranted) {
  machine_.cards[0].foreign = {{"process 7 of bob", Bytes::from_gib(40)}};
  engine_->see(machine_);
  const JobId id = submit("60G");
  EXPECT_EQ(state_of(id), JobState::kPending);
  machine_.cards[0].foreign.clear();
  engine_->see(machine_);
  tick();
  EXPECT_EQ(state_of(id), JobState::kStarting);
}

TEST_F(EngineTest, ANeighbourThatBreathesWakesNobody) {
  machine_.cards[0].foreign = {{"process 7 of bob", Bytes::from_gib(40)}};
  engine_->see(machine_);
  submit("60G");
  const std::uint64_t before = engine_->version();
  machine_.cards[0].foreign[0].bytes = Bytes::from_gib(40) + Bytes::from_mib(8);
  engine_->see(machine_);
  tick();
  EXPECT_EQ(engine_->version(), before);
  machine_.cards[0].foreign[0].bytes = Bytes::from_gib(41);
  engine_->see(machine_);
  tick();
  EXPECT_NE(engine_->version(), before);
}

TEST_F(EngineTest, BytesThatMakeRoomAreEnoughHoweverFew) {
  machine_.cards[0].foreign = {{"process 7 of bob", Bytes::from_gib(20) + Bytes::from_mib(2)}};
  engine_->see(machine_);
  const JobId id = submit("60G");
  EXPECT_EQ(state_of(id), JobState::kPending);
  machine_.cards[0].foreign[0].bytes = Bytes::from_gib(20);
  engine_->see(machine_);
  tick();
  EXPECT_EQ(state_of(id), JobState::kStarting);
}

TEST_F(EngineTest, CardsLostAndBackAreRecorded) {
  machine_.cards[0].lost = true;
  engine_->see(machine_);
  turn({core::Look{}});
  machine_.cards[0].lost = false;
  engine_->see(machine_);
  turn({core::Look{}});
  ASSERT_EQ(store_.committed().size(), 2u);
  EXPECT_EQ(store_.committed()[0].type, "card.lost");
  EXPECT_EQ(store_.committed()[1].type, "card.back");
}

}  // namespace
}  // namespace mete::engine
