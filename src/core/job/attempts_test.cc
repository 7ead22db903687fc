// SPDX-License-Identifier: Apache-2.0
// Later attempts of a job: --retries, --retry-gpu, --requeue, mete requeue, and jobs that could not
// be launched. A fake daemon without disk and processes (state_world.h) decides and applies each
// input; tests report exits to it, move its clock, and check when and as what a job waits again.
#include "core/test/state_world.h"

namespace mete::core {
namespace {

class AttemptsTest : public StateWorld {
 protected:
  static JobSpec with_retries(std::uint32_t retries) {
    JobSpec spec = spec_of("10G");
    spec.retries = retries;
    return spec;
  }
  static JobSpec growing(const std::string& gpu, std::uint32_t pct) {
    JobSpec spec = spec_of(gpu);
    spec.retry_gpu_pct = pct;
    return spec;
  }
  // The next attempt, which must be able to start now.
  void start_again(JobId id) {
    ASSERT_EQ(state_of(id), JobState::kPending);
    ASSERT_EQ(grant(), Ids{id});
    started(id);
  }
  std::string asks_for(JobId id) { return to_string(*request_of(job(id)).gpu); }
  Result<void> requeue(JobId id, const std::string& user = "alice") {
    return take(Requeue{id, caller(user)});
  }
};

// ---- --retries ---------------------------------------------------------------------------------

TEST_F(AttemptsTest, AFailureIsTriedAgainAfterAPause) {
  const JobId id = run(with_retries(2));
  fails(id);
  EXPECT_EQ(state_of(id), JobState::kPending);
  EXPECT_EQ(job(id).attempt, 2u);
  EXPECT_EQ(job(id).failures, 1u);
  EXPECT_TRUE(job(id).grant.empty());
  EXPECT_EQ(job(id).outcome, std::nullopt);
  ASSERT_EQ(job(id).attempts.size(), 1u);
  EXPECT_EQ(job(id).attempts[0].outcome, Outcome::kFailed);
  EXPECT_EQ(job(id).attempts[0].exit->code, 1);
  EXPECT_EQ(grant(), Ids{}) << "what fails at once shall not fail a thousand times";
  EXPECT_EQ(wait_of(id).reason, Reason::kRetry);
  EXPECT_EQ(state_.next_change(now_), WallTime{now_.ms + 10'000});
  later(10);
  start_again(id);
  ended(id);
  EXPECT_EQ(job(id).outcome, Outcome::kOk);
  EXPECT_EQ(job(id).attempts.size(), 1u);
}

TEST_F(AttemptsTest, ThePauseDoublesUpToTenMinutes) {
  const JobId id = run(with_retries(20));
  std::vector<std::int64_t> pauses;
  for (int i = 0; i < 20; ++i) {
    fails(id);
    pauses.push_back((job(id).not_before->ms - now_.ms) / 1000);
    later(pauses.back());
    start_again(id);
  }
  EXPECT_EQ(std::vector<std::int64_t>(pauses.begin(), pauses.begin() + 8),
            (std::vector<std::int64_t>{10, 20, 40, 80, 160, 320, 600, 600}));
  EXPECT_EQ(pauses.back(), 600);
  EXPECT_EQ(job(id).attempts.size(), kAttemptsKept) << "the last ones are remembered";
  EXPECT_EQ(job(id).attempts.front().number, 5u);
  fails(id);
  EXPECT_EQ(state_of(id), JobState::kEnded) << "there were twenty";
}

TEST_F(AttemptsTest, SoManyRetriesAndNoMore) {
  const JobId id = run(with_retries(1));
  fails(id);
  later(10);
  start_again(id);
  Exit exit;
  exit.signal = 11;
  ended(id, exit);
  EXPECT_EQ(state_of(id), JobState::kEnded);
  EXPECT_EQ(job(id).outcome, Outcome::kSignal);
  EXPECT_EQ(job(id).attempt, 2u);
}

TEST_F(AttemptsTest, WhatAnotherAttemptWouldMeetAgainIsNotTried) {
  for (const auto& change : std::vector<void (*)(Exit&)>{
           [](Exit& e) { e.code = 0; },
           [](Exit& e) { e.signal = 15, e.timed_out = true; },
           [](Exit& e) { e.code = 127, e.not_started = true; },
       }) {
    const JobId id = run(with_retries(3));
    Exit exit;
    change(exit);
    ended(id, exit);
    EXPECT_EQ(state_of(id), JobState::kEnded) << to_string(*job(id).outcome);
  }
}

TEST_F(AttemptsTest, WhatIsCancelledIsNotTriedAgain) {
  const JobId id = run(with_retries(3));
  EXPECT_TRUE(cancel(id).ok());
  fails(id);
  EXPECT_EQ(job(id).outcome, Outcome::kCancelled);
  const JobId pauses = run(with_retries(3));
  fails(pauses);
  EXPECT_TRUE(cancel(pauses).ok());
  later(60);
  EXPECT_EQ(grant(), Ids{});
  EXPECT_EQ(job(pauses).outcome, Outcome::kCancelled);
}

TEST_F(AttemptsTest, ARunIsStartedAgainByNobody) {
  JobSpec spec = spec_of("10G");
  spec.detached.reset();
  for (const auto& change : std::vector<void (*)(JobSpec&)>{
           [](JobSpec& s) { s.retries = 1; },
           [](JobSpec& s) { s.retry_gpu_pct = 150; },
           [](JobSpec& s) { s.requeue = true; },
           [](JobSpec& s) { s.array = *parse_array("0-1"); },
       }) {
    JobSpec changed = spec;
    change(changed);
    EXPECT_EQ(try_submit(changed).error().code, ErrorCode::kInvalid);
  }
  // mete never writes such a log; reading one must not crash.
  spec.retries = 1;
  spec.requeue = true;
  apply(JobSubmitted{JobId{1}, spec, ProcessRef{5, 5}});
  grant();
  started(JobId{1});
  fails(JobId{1});
  EXPECT_EQ(state_of(JobId{1}), JobState::kEnded);
}

// ---- --retry-gpu -------------------------------------------------------------------------------

TEST_F(AttemptsTest, OutOfGpuMemoryIsTriedAgainWithMore) {
  const JobId id = run(growing("10G", 150));
  runs_out_of_gpu(id);
  EXPECT_EQ(asks_for(id), "15G");
  EXPECT_EQ(to_string(*job(id).spec->request.gpu), "10G") << "what was asked for stays known";
  start_again(id);
  EXPECT_EQ(job(id).grant.front().bytes, Bytes::from_gib(15));
  runs_out_of_gpu(id);
  EXPECT_EQ(asks_for(id), "23040M");
  start_again(id);
  runs_out_of_gpu(id);
  EXPECT_EQ(asks_for(id), "34560M");
  start_again(id);
  runs_out_of_gpu(id);
  EXPECT_EQ(state_of(id), JobState::kEnded) << "three times, unless --retries says how often";
  EXPECT_EQ(job(id).outcome, Outcome::kGpuOom);
}

TEST_F(AttemptsTest, FractionsGrowToTheWholeMemory) {
  JobSpec spec = growing("40%", 150);
  spec.retries = 9;
  const JobId id = run(spec);
  for (const char* next : {"60%", "90%", "100%"}) {
    runs_out_of_gpu(id);
    EXPECT_EQ(asks_for(id), next);
    start_again(id);
  }
  runs_out_of_gpu(id);
  EXPECT_EQ(asks_for(id), "100%") << "there is no more; --retries tries all the same";
  EXPECT_EQ(wait_of(id).reason, Reason::kRetry);
  EXPECT_EQ(job(id).failures, 4u);
}

TEST_F(AttemptsTest, SizesGrowToTheLargestCard) {
  machine_ = pool_of({80, 40});
  const JobId id = run(growing("60G", 200));
  runs_out_of_gpu(id);
  EXPECT_EQ(asks_for(id), "80G") << "120G can never be";
  start_again(id);
  runs_out_of_gpu(id);
  EXPECT_EQ(state_of(id), JobState::kEnded) << "it had all there is";
}

TEST_F(AttemptsTest, SizesGrowToTheLargestCardThatServes) {
  machine_ = pool_of({80, 40});
  JobSpec spec = growing("30G", 300);
  spec.request.devices = {"1"};
  const JobId id = run(spec);
  runs_out_of_gpu(id);
  EXPECT_EQ(asks_for(id), "40G");
  EXPECT_EQ(grant(), Ids{id});
}

TEST_F(AttemptsTest, EvenTheSmallestGrows) {
  JobSpec spec = growing("2M", 101);
  const JobId id = run(spec);
  runs_out_of_gpu(id);
  EXPECT_EQ(asks_for(id), "4M");
  spec.request.gpu = GpuRequest{{CardCount::Kind::kOne, 0}, Fraction{1}};
  const JobId fraction = run(spec);
  runs_out_of_gpu(fraction);
  EXPECT_EQ(asks_for(fraction), "0.002");
}

TEST_F(AttemptsTest, AHugeFactorIsNoOverflow) {
  JobSpec spec = growing("99.9%", 10'000);
  spec.retry_gpu_pct = UINT32_MAX;
  const JobId id = run(spec);
  runs_out_of_gpu(id);
  EXPECT_EQ(asks_for(id), "100%");
  EXPECT_TRUE(cancel(id).ok());
  spec = growing("79G", 10'000);
  spec.retry_gpu_pct = UINT32_MAX;
  const JobId size = run(spec);
  runs_out_of_gpu(size);
  EXPECT_EQ(asks_for(size), "80G");
}

TEST_F(AttemptsTest, AWholeCardDoesNotGrow) {
  JobSpec spec = growing("1", 150);
  const JobId id = run(spec);
  runs_out_of_gpu(id);
  EXPECT_EQ(state_of(id), JobState::kEnded);
  spec.retries = 1;
  const JobId tried = run(spec);
  runs_out_of_gpu(tried);
  EXPECT_EQ(state_of(tried), JobState::kPending) << "as after any failure";
  EXPECT_EQ(asks_for(tried), "1");
}

TEST_F(AttemptsTest, OnlyOutOfGpuMemoryMakesItGrow) {
  JobSpec spec = growing("10G", 150);
  const JobId id = run(spec);
  fails(id);
  EXPECT_EQ(state_of(id), JobState::kEnded);
  spec.retries = 2;
  const JobId both = run(spec);
  runs_out_of_gpu(both);
  start_again(both);
  fails(both);
  EXPECT_EQ(asks_for(both), "15G") << "and what it has grown to stays";
  later(60);
  start_again(both);
  runs_out_of_gpu(both);
  EXPECT_EQ(state_of(both), JobState::kEnded) << "both kinds count";
}

TEST_F(AttemptsTest, WhatHasGrownIsInLineAsThat) {
  run("60G", "bob");
  const JobId id = run(growing("15G", 200));
  runs_out_of_gpu(id);
  EXPECT_EQ(asks_for(id), "30G");
  EXPECT_EQ(grant(), Ids{});
  EXPECT_NE(why(id).find("30 GiB on one card"), std::string::npos) << why(id);
}

// ---- lost --------------------------------------------------------------------------------------

TEST_F(AttemptsTest, WhatIsLostStartsAgainIfItMay) {
  JobSpec spec = spec_of("10G");
  spec.requeue = true;
  const JobId id = run(spec);
  ASSERT_TRUE(take(RunnerGone{id}).ok());
  EXPECT_EQ(state_of(id), JobState::kStopping);
  EXPECT_EQ(grant(), Ids{});
  ASSERT_TRUE(take(JobGone{id}).ok());
  EXPECT_EQ(job(id).attempts.front().outcome, Outcome::kLost);
  EXPECT_EQ(job(id).failures, 0u) << "not its own fault";
  start_again(id);
  EXPECT_EQ(job(id).attempt, 2u);
}

TEST_F(AttemptsTest, WhatIsLostIsOverOtherwise) {
  const JobId id = run(with_retries(5));
  ASSERT_TRUE(take(RunnerGone{id}).ok());
  ASSERT_TRUE(take(JobGone{id}).ok());
  EXPECT_EQ(state_of(id), JobState::kEnded);
  EXPECT_EQ(job(id).outcome, Outcome::kLost);
}

TEST_F(AttemptsTest, WhatIsLostAndThenCancelledDoesNotStartAgain) {
  JobSpec spec = spec_of("10G");
  spec.requeue = true;
  const JobId id = run(spec);
  ASSERT_TRUE(take(RunnerGone{id}).ok());
  EXPECT_TRUE(cancel(id).ok());
  ASSERT_TRUE(take(JobGone{id}).ok());
  EXPECT_EQ(state_of(id), JobState::kEnded);
  EXPECT_EQ(job(id).outcome, Outcome::kCancelled);
}

TEST_F(AttemptsTest, NewsOfAKeeperThatWasLetGoOfChangeNothing) {
  const JobId id = run(with_retries(1));
  fails(id);
  ASSERT_TRUE(take(RunnerGone{id}).ok());
  ASSERT_TRUE(take(JobGone{id}).ok());
  ASSERT_TRUE(take(NotLaunched{id, "late"}).ok());
  EXPECT_EQ(take(Ended{id, 0, exit_with(0)}).error().code, ErrorCode::kBusy);
  EXPECT_EQ(state_of(id), JobState::kPending);
  EXPECT_EQ(job(id).attempt, 2u);
}

// ---- not launched ------------------------------------------------------------------------------

TEST_F(AttemptsTest, WhatWasNeverBegunWaitsAgainInTheSameAttempt) {
  const JobId id = submit("80G");
  const JobId next = submit("80G");
  grant();
  ASSERT_TRUE(take(NotLaunched{id, ""}).ok());
  EXPECT_EQ(state_of(id), JobState::kPending);
  EXPECT_EQ(job(id).attempt, 1u);
  EXPECT_TRUE(job(id).grant.empty());
  EXPECT_TRUE(job(id).attempts.empty());
  EXPECT_EQ(grant(), Ids{id}) << "in its place in line";
  EXPECT_EQ(state_of(next), JobState::kPending);
}

TEST_F(AttemptsTest, WhatCannotBeLaunchedEndsWithTheReason) {
  JobSpec spec = with_retries(3);
  spec.requeue = true;
  const JobId id = submit(spec);
  grant();
  ASSERT_TRUE(take(NotLaunched{id, "no such user"}).ok());
  EXPECT_EQ(job(id).outcome, Outcome::kLaunchFailed);
  EXPECT_TRUE(job(id).exit->not_started);
  EXPECT_EQ(job(id).exit->note, "no such user");
}

TEST_F(AttemptsTest, WhatTheInstallationCannotLaunchWaitsAndIsTriedAgain) {
  const JobId id = submit("80G");
  const JobId other = submit("80G");
  for (const std::int64_t pause_s : {1, 2, 4, 8, 16, 30, 30}) {
    ASSERT_EQ(grant(), Ids{id});
    ASSERT_TRUE(take(NotLaunched{id, "mete-keeper is missing", true}).ok());
    EXPECT_EQ(state_of(id), JobState::kPending);
    EXPECT_EQ(job(id).attempt, 1u);
    EXPECT_EQ(wait_of(id).reason, Reason::kRetry);
    EXPECT_NE(why(id).find("mete-keeper is missing"), std::string::npos);
    EXPECT_EQ(job(id).not_before->ms - now_.ms, pause_s * 1000);
    EXPECT_EQ(grant(), Ids{other}) << "which is not kept waiting";
    ASSERT_TRUE(take(NotLaunched{other, ""}).ok());
    now_.ms += pause_s * 1000;
  }
  ASSERT_EQ(grant(), Ids{id});
  ASSERT_TRUE(take(Started{id, 0, ProcessRef{5, 6}}).ok());
  EXPECT_FALSE(job(id).put_off.has_value());
}

TEST_F(AttemptsTest, WhatItsKeeperCannotStartNowWaitsInTheSameAttempt) {
  const JobId id = submit(with_retries(3));
  grant();
  Exit exit;
  exit.not_started = exit.not_now = true;
  exit.note = "libmete.so is gone";
  ASSERT_TRUE(take(Ended{id, 0, exit}).ok());
  EXPECT_EQ(state_of(id), JobState::kPending);
  EXPECT_EQ(job(id).attempt, 1u);
  EXPECT_EQ(job(id).failures, 0u);
  EXPECT_NE(why(id).find("libmete.so is gone"), std::string::npos);
  EXPECT_TRUE(cancel(id).ok());
  EXPECT_EQ(job(id).outcome, Outcome::kCancelled);
}

TEST_F(AttemptsTest, ManyThatCannotBeLaunchedAreNotAllTriedEverySecond) {
  std::vector<JobId> jobs;
  for (int i = 0; i < 100; ++i) jobs.push_back(submit("100M"));
  ASSERT_EQ(grant().size(), jobs.size());
  for (const JobId id : jobs) ASSERT_TRUE(take(NotLaunched{id, "gone", true}).ok());
  EXPECT_GE(job(jobs.back()).not_before->ms - now_.ms, 9'000);
}

TEST_F(AttemptsTest, WhatIsCancelledBeforeItWasLaunchedIsCancelled) {
  const JobId id = submit("10G");
  grant();
  EXPECT_TRUE(cancel(id).ok());
  ASSERT_TRUE(take(NotLaunched{id, ""}).ok());
  EXPECT_EQ(job(id).outcome, Outcome::kCancelled);
}

TEST_F(AttemptsTest, WhatIsRequeuedBeforeItWasLaunchedWaitsAgain) {
  const JobId id = submit("10G");
  grant();
  ASSERT_TRUE(requeue(id).ok());
  ASSERT_TRUE(take(NotLaunched{id, ""}).ok());
  EXPECT_EQ(grant(), Ids{id});
}

TEST_F(AttemptsTest, ARunThatIsAskedForDoesNotCareWhatALauncherSays) {
  JobSpec spec = spec_of("10G");
  spec.detached.reset();
  const JobId id = submit(spec);
  grant();
  ASSERT_TRUE(take(NotLaunched{id, ""}).ok());
  EXPECT_EQ(state_of(id), JobState::kStarting);
}

// ---- mete requeue ------------------------------------------------------------------------------

TEST_F(AttemptsTest, ARunningJobIsEndedAndWaitsAgain) {
  const JobId id = run("10G");
  ASSERT_TRUE(requeue(id).ok());
  EXPECT_EQ(state_of(id), JobState::kStopping);
  fails(id);
  EXPECT_EQ(job(id).attempts.front().outcome, Outcome::kCancelled);
  EXPECT_EQ(job(id).failures, 0u);
  start_again(id);
  fails(id);
  EXPECT_EQ(state_of(id), JobState::kEnded) << "once more, not for ever";
}

TEST_F(AttemptsTest, ARequeuedJobThatIsCancelledEnds) {
  const JobId id = run("10G");
  ASSERT_TRUE(requeue(id).ok());
  EXPECT_TRUE(cancel(id).ok());
  ended(id);
  EXPECT_EQ(job(id).outcome, Outcome::kCancelled);
}

TEST_F(AttemptsTest, ACancelledJobThatIsRequeuedWaitsAgain) {
  const JobId id = run("10G");
  EXPECT_TRUE(cancel(id).ok());
  ASSERT_TRUE(requeue(id).ok());
  ASSERT_TRUE(requeue(id).ok());
  EXPECT_EQ(happened_, 0u) << "again changes nothing";
  ended(id);
  start_again(id);
}

TEST_F(AttemptsTest, AnEndedJobRunsOnceMore) {
  const JobId id = run(with_retries(1));
  fails(id);
  later(10);
  start_again(id);
  fails(id);
  ASSERT_EQ(state_of(id), JobState::kEnded);
  const std::size_t unfinished = state_.unfinished();
  ASSERT_TRUE(requeue(id).ok());
  EXPECT_EQ(state_.unfinished(), unfinished + 1);
  EXPECT_EQ(job(id).attempt, 3u);
  EXPECT_EQ(job(id).failures, 0u) << "with all its retries";
  start_again(id);
  ended(id);
  EXPECT_EQ(job(id).attempts.size(), 2u);
  EXPECT_EQ(job(id).outcome, Outcome::kOk);
}

TEST_F(AttemptsTest, OfAnArrayAllRunAgainThatCan) {
  JobSpec spec = spec_of("10G");
  spec.array = *parse_array("0-2");
  const JobId array = submit(spec);
  grant();
  started(JobId{1, 0});
  ended(JobId{1, 0});
  started(JobId{1, 1});
  ASSERT_TRUE(requeue(array).ok());
  EXPECT_EQ(state_of(JobId{1, 0}), JobState::kPending);
  EXPECT_EQ(state_of(JobId{1, 1}), JobState::kStopping);
  EXPECT_EQ(state_of(JobId{1, 2}), JobState::kStopping);
}

TEST_F(AttemptsTest, WhatWaitsIsNotRequeued) {
  run("80G");
  const JobId id = submit("80G");
  const Result<void> done = requeue(id);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().message, "job 2 waits already");
}

TEST_F(AttemptsTest, OnlyOnesOwnSubmittedJobsAreRequeued) {
  const JobId id = run("10G");
  EXPECT_EQ(requeue(id, "bob").error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(requeue(id, "root").ok());
  JobSpec spec = spec_of("1G");
  spec.detached.reset();
  const JobId theirs = run(spec);
  EXPECT_EQ(requeue(theirs).error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace mete::core
