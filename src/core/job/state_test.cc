// SPDX-License-Identifier: Apache-2.0
// The life of a `mete run` job in State: submitting, the queue, starting and ending, lost runners
// and cards. Inputs are decided and applied at once (state_world.h). Events that cannot happen must
// end the process, so those tests are death tests.
#include "core/job/state.h"

#include "core/test/state_world.h"

namespace mete::core {
namespace {

// The jobs of these tests are `mete run`s: each has a runner, and ends when it goes.
JobSpec run_of(const std::string& gpu, const std::string& user = "alice") {
  JobSpec spec = spec_of(gpu, user);
  spec.detached.reset();
  return spec;
}

class StateTest : public StateWorld {
 protected:
  Result<JobId> try_submit(const std::string& gpu, const std::string& user = "alice",
                           bool wait = true) {
    return StateWorld::try_submit(run_of(gpu, user), wait);
  }
  JobId submit(const std::string& gpu, const std::string& user = "alice") {
    return StateWorld::submit(run_of(gpu, user));
  }
  JobId run(const std::string& gpu, const std::string& user = "alice") {
    return StateWorld::run(run_of(gpu, user));
  }
};

// ---- submitting --------------------------------------------------------------------------------

TEST_F(StateTest, WhatCanNeverFitIsRefusedAtOnce) {
  const Result<JobId> id = try_submit("81G");
  ASSERT_FALSE(id.ok());
  EXPECT_EQ(id.error().code, ErrorCode::kInfeasible);
  EXPECT_TRUE(state_.jobs().empty());
  EXPECT_EQ(state_.last_seq(), 0u);
}

TEST_F(StateTest, MoreThanTheMachineHasIsRefusedAtOnce) {
  Rules rules;
  rules.machine_cpus = 2;
  rules.machine_ram = Bytes::from_mib(16'000);
  state_ = State(rules);
  for (const bool detached : {false, true}) {
    JobSpec spec = detached ? spec_of("0") : run_of("0");
    spec.request.cpus = 500;
    Result<JobId> id = StateWorld::try_submit(spec);
    ASSERT_FALSE(id.ok());
    EXPECT_EQ(id.error().code, ErrorCode::kInfeasible);
    EXPECT_EQ(id.error().message, "--cpus 500 can never fit here");
    EXPECT_EQ(id.error().evidence, "this machine has 2 CPUs");
    EXPECT_EQ(id.error().hint, "--cpus 2 would fit");
    spec.request.cpus = 2;
    spec.request.ram = Bytes::from_gib(16);
    id = StateWorld::try_submit(spec);
    ASSERT_FALSE(id.ok());
    EXPECT_EQ(id.error().code, ErrorCode::kInfeasible);
    EXPECT_EQ(id.error().message, "--ram 16G can never fit here");
    EXPECT_EQ(id.error().evidence, "this machine has 15.62 GiB of memory");
    EXPECT_EQ(id.error().hint, "--ram 15.6G would fit");
    spec.request.ram = Bytes::from_mib(16'000);
    EXPECT_TRUE(StateWorld::try_submit(spec).ok());
  }
}

TEST_F(StateTest, NumbersBeginAtOneAndGoUp) {
  EXPECT_EQ(submit("1G").number, 1u);
  EXPECT_EQ(submit("1G").number, 2u);
}

// Any of the lost events may have been a submit, and other files may name such a job.
TEST_F(StateTest, NumbersThatARepairMayHaveLostAreNotGivenOutAgain) {
  EXPECT_EQ(submit("1G").number, 1u);
  apply(Repaired{5, 0});
  EXPECT_EQ(submit("1G").number, 7u);
  apply(Repaired{1, 40});
  EXPECT_EQ(submit("1G").number, 41u);
  EXPECT_EQ(State::from_parts(state_.parts()), state_);
}

TEST_F(StateTest, ThereIsAMostOfUnfinishedJobs) {
  Submit submit;
  submit.spec.request.gpu = no_gpu();
  for (std::size_t i = 0; i < kMaxUnfinished; ++i)
    apply(JobSubmitted{JobId{i + 1}, submit.spec, {}});
  const Result<void> one_more = take(submit);
  ASSERT_FALSE(one_more.ok());
  EXPECT_EQ(one_more.error().code, ErrorCode::kExhausted);
  EXPECT_TRUE(cancel(JobId{1}, "root").ok());
  EXPECT_TRUE(take(submit).ok()) << "one has ended";
}

TEST_F(StateTest, OneUserCannotHaveAllTheRoomAndAllUsersNotTheLastOfIt) {
  const auto many = [this](const std::string& user, std::size_t count) {
    JobSpec spec = spec_of("0", user);
    for (std::size_t left = count; left > 0;) {
      const std::size_t now = std::min(left, kMaxElements);
      spec.array = *parse_array("0-" + std::to_string(now - 1));
      const Result<JobId> done = StateWorld::try_submit(spec);
      if (!done) return done.error().message;
      left -= now;
    }
    return std::string();
  };
  EXPECT_EQ(many("alice", kMaxUnfinishedOfUser), "");
  EXPECT_EQ(many("alice", 1), "alice has 100000 unfinished jobs");
  EXPECT_EQ(many("bob", kMaxUnfinishedOfUser - kUnfinishedForAdmins), "");
  EXPECT_EQ(many("carol", 1), "there are 190000 unfinished jobs");
  EXPECT_EQ(many("root", kUnfinishedForAdmins), "");
  EXPECT_EQ(many("root", 1), "there are 200000 unfinished jobs");
}

TEST_F(StateTest, WhatIsInEveryListIsShort) {
  JobSpec spec = spec_of("0");
  spec.name = std::string(kMaxNameBytes, 'x');
  spec.labels = {{"sweep", std::string(kMaxLabelBytes - 5, 'x')}};
  EXPECT_TRUE(StateWorld::try_submit(spec).ok());
  JobSpec long_name = spec;
  long_name.name += 'x';
  EXPECT_EQ(StateWorld::try_submit(long_name).error().code, ErrorCode::kInvalid);
  spec.labels["more"] = "";
  EXPECT_EQ(StateWorld::try_submit(spec).error().code, ErrorCode::kInvalid);
}

// ---- the queue ---------------------------------------------------------------------------------

TEST_F(StateTest, FirstComeFirstServed) {
  const JobId runs = run("60G");
  const JobId first = submit("50G");
  const JobId second = submit("50G");
  EXPECT_EQ(grant(), Ids{});
  ended(runs);
  EXPECT_EQ(grant(), Ids{first});
  ended(first);
  EXPECT_EQ(grant(), Ids{second});
}

TEST_F(StateTest, ASmallJobPassesOnlyOnWhatIsNotHeldForTheFirst) {
  machine_ = pool_of({80, 40});
  run("60G");
  const JobId large = submit("70G");   // card 0, once it is free
  const JobId small = submit("10G");   // fits on card 0 now, and would keep `large` waiting
  const JobId second = submit("40G");  // needs all of card 1, where no room is held for it
  EXPECT_EQ(grant(), Ids{small});
  EXPECT_EQ(job(small).grant.front().index, 1u);
  EXPECT_EQ(job(large).state, JobState::kPending);
  EXPECT_EQ(job(second).state, JobState::kPending);
  const JobId late = submit("20G");
  EXPECT_EQ(grant(), Ids{late});
  EXPECT_EQ(job(late).grant.front().index, 1u);
  EXPECT_EQ(try_submit("20G", "alice", false).error().code, ErrorCode::kExhausted);
}

TEST_F(StateTest, ALaterJobIsToldWhomItIsBehind) {
  run("60G", "bob");
  const JobId large = submit("70G", "bob");
  const JobId small = submit("10G", "bob");
  EXPECT_EQ(grant(), Ids{});
  EXPECT_NE(why(large).find("70 GiB on one card"), std::string::npos) << why(large);
  EXPECT_NE(why(small).find("behind job 2 of bob, which waits for 70 GiB"), std::string::npos)
      << why(small);
}

TEST_F(StateTest, NothingIsHeldForACardThatIsLostAndTheNextInLineHasThatRight) {
  machine_ = pool_of({80, 40});
  run("60G");
  run("30G");  // card 1
  machine_.cards[1].lost = true;
  Submit for_lost;
  for_lost.spec.request.devices = {"1"};
  ASSERT_TRUE(take(for_lost).ok());
  submit("70G");                      // card 0, once it is free
  const JobId small = submit("10G");  // would fill it bit by bit
  EXPECT_EQ(grant(), Ids{}) << "20 GiB are free on card 0, and they are held";
  EXPECT_NE(why(small).find("behind job 4"), std::string::npos) << why(small);
}

TEST_F(StateTest, AJobWithoutACardWaitsForNobody) {
  run("1");
  submit("10G");
  const JobId cpu = submit("0");
  EXPECT_EQ(grant(), Ids{cpu});
  EXPECT_TRUE(job(cpu).grant.empty());
}

TEST_F(StateTest, AllWhoFitStartInOneWalk) {
  const JobId a = submit("20G");
  const JobId b = submit("20G");
  submit("60G");
  const JobId small = submit("20G");
  EXPECT_EQ(grant(), (Ids{a, b})) << small.number << " would take what the third waits for";
}

TEST_F(StateTest, AWholeCardIsForOneAlone) {
  run("1G");
  submit("1");
  EXPECT_EQ(grant(), Ids{});
  ended(JobId{1});
  EXPECT_EQ(grant(), Ids{JobId{2}});
  EXPECT_TRUE(job(JobId{2}).grant.front().whole);
  submit("1G");
  EXPECT_EQ(grant(), Ids{});
}

TEST_F(StateTest, WaitsAreExplainedForEveryPendingJob) {
  run("60G");
  submit("1");
  submit("60G");
  submit("10G");
  grant();
  std::size_t waiting = 0;
  for (const auto& [id, each] : state_.jobs()) {
    if (each.state != JobState::kPending) continue;
    ++waiting;
    EXPECT_FALSE(why(id).empty());
  }
  EXPECT_EQ(waiting, 3u);
}

TEST_F(StateTest, OneWhoseCardsHaveGoneIsToldSo) {
  const JobId id = submit("70G");
  machine_ = pool_of({40});
  EXPECT_EQ(grant(), Ids{});
  EXPECT_FALSE(why(id).empty());
  machine_ = pool_of({80});
  EXPECT_EQ(grant(), Ids{id}) << "it was not thrown out";
}

// ---- --no-wait ---------------------------------------------------------------------------------

TEST_F(StateTest, WhoDoesNotWaitIsRefusedWithTheReason) {
  run("60G");
  const Result<JobId> id = try_submit("40G", "alice", false);
  ASSERT_FALSE(id.ok());
  EXPECT_EQ(id.error().code, ErrorCode::kExhausted);
  Submit submit;
  submit.spec = spec_of("40G");
  submit.wait = false;
  const std::optional<Wait> wait = state_.would_wait(submit, moment());
  ASSERT_TRUE(wait.has_value());
  EXPECT_EQ(wait->holders, Ids{JobId{1}});
  submit.spec = spec_of("20G");
  EXPECT_EQ(state_.would_wait(submit, moment()), std::nullopt);
}

TEST_F(StateTest, WhoDoesNotWaitStartsWhereThereIsRoom) {
  run("60G");
  ASSERT_TRUE(try_submit("20G", "alice", false).ok());
  EXPECT_EQ(grant(), Ids{JobId{2}});
}

TEST_F(StateTest, WhoDoesNotWaitDoesNotOvertakeThoseAboutToStart) {
  submit("30G");
  submit("30G");
  EXPECT_EQ(try_submit("30G", "alice", false).error().code, ErrorCode::kExhausted);
  EXPECT_TRUE(try_submit("20G", "alice", false).ok());
  EXPECT_EQ(grant().size(), 3u);
}

// ---- jobs of other users -----------------------------------------------------------------------

TEST_F(StateTest, AnotherUsersJobDoesNotExist) {
  const JobId id = run("10G");
  for (const Input& input :
       {Input(Started{id, uid_of("bob"), {1, 1}}), Input(Ended{id, uid_of("bob"), {}}),
        Input(Cancel{id, caller("bob")})}) {
    const Result<void> done = take(input);
    ASSERT_FALSE(done.ok());
    const Result<void> none = cancel(JobId{99}, "bob");
    EXPECT_EQ(done.error().code, none.error().code);
    EXPECT_EQ(done.error().message, "there is no job 1");
  }
  EXPECT_EQ(job(id).state, JobState::kRunning);
}

TEST_F(StateTest, RootMayEndAnybodysJob) {
  const JobId id = run("10G");
  EXPECT_TRUE(cancel(id, "root").ok());
  EXPECT_EQ(job(id).state, JobState::kStopping);
}

// ---- started, ended, cancel: repeating is harmless ---------------------------------------------

TEST_F(StateTest, StartedAgainChangesNothing) {
  const JobId id = run("10G");
  const Job before = job(id);
  started(id);
  EXPECT_EQ(happened_, 0u);
  EXPECT_EQ(job(id), before);
  EXPECT_EQ(take(Started{id, uid_of("alice"), {4, 4}}).error().code, ErrorCode::kBusy)
      << "another program is not the same news";
}

TEST_F(StateTest, APendingJobCannotHaveStartedOrEnded) {
  run("80G");
  const JobId id = submit("80G");
  EXPECT_EQ(take(Started{id, uid_of("alice"), {4, 4}}).error().code, ErrorCode::kBusy);
  EXPECT_EQ(take(Ended{id, uid_of("alice"), {}}).error().code, ErrorCode::kBusy);
  EXPECT_EQ(job(id).state, JobState::kPending);
}

TEST_F(StateTest, EndedAgainChangesNothing) {
  const JobId id = run("10G");
  ended(id);
  const Job before = job(id);
  EXPECT_EQ(before.outcome, Outcome::kOk);
  EXPECT_TRUE(take(Ended{id, uid_of("alice"), exit_with(3)}).ok());
  EXPECT_EQ(happened_, 0u);
  EXPECT_EQ(job(id), before);
}

TEST_F(StateTest, TheGrantIsHeldUntilTheEnd) {
  const JobId id = run("80G");
  const JobId next = submit("80G");
  EXPECT_TRUE(cancel(id).ok());
  EXPECT_EQ(grant(), Ids{}) << "its processes are still there";
  EXPECT_TRUE(take(Ended{id, uid_of("alice"), exit_with(0)}).ok());
  EXPECT_EQ(job(id).outcome, Outcome::kCancelled) << "whatever its program made of it";
  EXPECT_EQ(grant(), Ids{next});
}

TEST_F(StateTest, CancelAgainChangesNothing) {
  const JobId id = run("10G");
  EXPECT_TRUE(cancel(id).ok());
  EXPECT_TRUE(cancel(id).ok());
  EXPECT_EQ(happened_, 0u);
  EXPECT_EQ(job(id).state, JobState::kStopping);
}

TEST_F(StateTest, CancelOfAnEndedJobSaysThatItHasEnded) {
  const JobId id = run("10G");
  ended(id);
  const Result<void> done = cancel(id);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(done.error().message, "job 1 has ended");
  EXPECT_NE(done.error().evidence.find("outcome ok"), std::string::npos) << done.error().evidence;
}

TEST_F(StateTest, APendingJobEndsByCancelAtOnce) {
  run("80G");
  const JobId id = submit("80G");
  EXPECT_TRUE(cancel(id).ok());
  EXPECT_EQ(job(id).state, JobState::kEnded);
  EXPECT_EQ(job(id).outcome, Outcome::kCancelled);
  ended(JobId{1});
  EXPECT_EQ(grant(), Ids{});
}

// ---- the runner is gone ------------------------------------------------------------------------

TEST_F(StateTest, APendingJobWithoutItsRunnerEnds) {
  run("80G");
  const JobId id = submit("80G");
  EXPECT_TRUE(take(RunnerGone{id}).ok());
  EXPECT_EQ(job(id).state, JobState::kEnded);
  EXPECT_EQ(job(id).outcome, Outcome::kCancelled);
}

TEST_F(StateTest, AStartingJobWithoutItsRunnerIsLostOnceItsProcessesAreGone) {
  const JobId id = submit("80G");
  grant();
  EXPECT_TRUE(take(RunnerGone{id}).ok());
  EXPECT_EQ(job(id).state, JobState::kStopping);
  submit("80G");
  EXPECT_EQ(grant(), Ids{});
  EXPECT_TRUE(take(JobGone{id}).ok());
  EXPECT_EQ(job(id).outcome, Outcome::kLost);
  EXPECT_EQ(grant(), Ids{JobId{2}});
}

TEST_F(StateTest, ARunningJobWithoutItsRunnerIsStopped) {
  const JobId id = run("80G");
  EXPECT_TRUE(take(RunnerGone{id}).ok());
  EXPECT_EQ(job(id).state, JobState::kStopping);
  EXPECT_EQ(job(id).outcome, Outcome::kLost);
  EXPECT_TRUE(take(RunnerGone{id}).ok());
  EXPECT_EQ(happened_, 0u);
}

TEST_F(StateTest, ACancelledJobStaysCancelledWhenItsRunnerGoes) {
  const JobId id = run("80G");
  EXPECT_TRUE(cancel(id).ok());
  EXPECT_TRUE(take(RunnerGone{id}).ok());
  EXPECT_EQ(job(id).state, JobState::kStopping);
  EXPECT_TRUE(take(JobGone{id}).ok());
  EXPECT_EQ(job(id).outcome, Outcome::kCancelled);
}

TEST_F(StateTest, NewsOfJobsThatAreOverOrUnknownChangeNothing) {
  const JobId id = run("10G");
  EXPECT_TRUE(take(JobGone{id}).ok());
  EXPECT_EQ(job(id).state, JobState::kRunning) << "nobody was stopping it";
  ended(id);
  for (const Input& input :
       {Input(RunnerGone{id}), Input(JobGone{id}), Input(RunnerGone{{99}}), Input(JobGone{{99}})}) {
    EXPECT_TRUE(take(input).ok());
    EXPECT_EQ(happened_, 0u);
  }
}

// ---- cards -------------------------------------------------------------------------------------

TEST_F(StateTest, ACardIsLostOnceAndBackOnce) {
  machine_.cards[0].lost = true;
  EXPECT_TRUE(take(Look{}).ok());
  EXPECT_EQ(happened_, 1u);
  EXPECT_EQ(state_.lost_cards(), std::set<std::string>{"GPU-0"});
  EXPECT_TRUE(take(Look{}).ok());
  EXPECT_EQ(happened_, 0u);
  const JobId id = submit("10G");
  EXPECT_EQ(grant(), Ids{}) << "lost cards are waited for";
  machine_.cards[0].lost = false;
  EXPECT_TRUE(take(Look{}).ok());
  EXPECT_EQ(happened_, 1u);
  EXPECT_TRUE(state_.lost_cards().empty());
  EXPECT_EQ(grant(), Ids{id});
}

// ---- outcomes ----------------------------------------------------------------------------------

TEST(Outcomes, AreNamedByWhatTheParentSaw) {
  const auto outcome = [](auto change) {
    Exit exit;
    change(exit);
    return outcome_of(exit);
  };
  EXPECT_EQ(outcome([](Exit& e) { e.code = 0; }), Outcome::kOk);
  EXPECT_EQ(outcome([](Exit& e) { e.code = 3; }), Outcome::kFailed);
  EXPECT_EQ(outcome([](Exit& e) { e.signal = 9; }), Outcome::kSignal);
  EXPECT_EQ(outcome([](Exit& e) { e.code = 1, e.gpu_oom = true; }), Outcome::kGpuOom);
  EXPECT_EQ(outcome([](Exit& e) { e.signal = 9, e.ram_oom = true; }), Outcome::kRamOom);
  EXPECT_EQ(outcome([](Exit& e) { e.code = 0, e.ram_oom = true; }), Outcome::kOk);
  EXPECT_EQ(outcome([](Exit& e) { e.code = 0, e.gpu_oom = true; }), Outcome::kOk)
      << "it coped with the refusal";
  EXPECT_EQ(outcome([](Exit& e) { e.signal = 15, e.timed_out = true; }), Outcome::kTimeout);
  EXPECT_EQ(outcome([](Exit& e) { e.code = 127, e.not_started = true; }), Outcome::kLaunchFailed);
}

// ---- memory ------------------------------------------------------------------------------------

TEST_F(StateTest, SoManyEndedJobsAreKeptTheOldestGoFirst) {
  Rules rules;
  rules.ended_kept = 1000;
  state_ = State(rules);
  JobSpec spec;
  spec.request.gpu = no_gpu();
  const std::uint64_t count = 3 * rules.ended_kept;
  const JobId long_one{1};
  apply(JobSubmitted{long_one, spec, {}});
  for (std::uint64_t i = 2; i <= count; ++i) {
    apply(JobSubmitted{JobId{i}, spec, {}});
    apply(JobEnded{JobId{i}, Outcome::kOk, {}});
    ASSERT_LE(state_.jobs().size(), rules.ended_kept + rules.ended_kept / 10 + 1);
  }
  EXPECT_NE(state_.find(long_one), nullptr) << "what has not ended is never forgotten";
  EXPECT_EQ(state_.find(JobId{2}), nullptr);
  for (std::uint64_t i = count - rules.ended_kept + 1; i <= count; ++i)
    ASSERT_NE(state_.find(JobId{i}), nullptr) << i;
  apply(JobEnded{long_one, Outcome::kOk, {}});
  EXPECT_EQ(submit("0").number, count + 1) << "a forgotten job's number is not used again";
}

TEST_F(StateTest, PartsAreAllThereIs) {
  run("10G");
  ended(JobId{1});
  run("20G");
  submit("80G");
  machine_.cards.push_back(pool_of({80, 40}).cards[1]);
  machine_.cards[1].lost = true;
  EXPECT_TRUE(take(Look{}).ok());
  EXPECT_TRUE(cancel(JobId{2}).ok());
  EXPECT_EQ(State::from_parts(state_.parts()), state_);
}

// ---- impossible events -------------------------------------------------------------------------

using StateDeathTest = StateTest;

TEST_F(StateDeathTest, AGapInTheNumbersIsImpossible) {
  EXPECT_DEATH(state_.apply({2, {}, CardLost{"GPU-0"}}), "impossible");
}

TEST_F(StateDeathTest, AJobHasOneGrant) {
  const JobId id = run("10G");
  EXPECT_DEATH(apply(JobGranted{id, {}}), "impossible");
}

TEST_F(StateDeathTest, NothingHappensAfterTheEnd) {
  const JobId id = run("10G");
  ended(id);
  EXPECT_DEATH(apply(JobEnded{id, Outcome::kOk, {}}), "impossible");
}

}  // namespace
}  // namespace mete::core
