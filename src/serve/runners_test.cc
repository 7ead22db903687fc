// SPDX-License-Identifier: Apache-2.0
// Requests and reports of a job's runner, through the service and the engine of service_world.h:
// long polls, the life of a run, parking and growth. A report must come from the runner itself; old
// reports and reports of other processes or users change nothing.
#include "serve/runners.h"

#include "serve/test/service_world.h"

namespace mete::serve {
namespace {

using core::JobId;
using core::JobState;

class RunnersTest : public ServiceTest {
 protected:
  ClientPtr poll(const net::Peer& peer, JobId id, const std::string& tag) {
    return get(peer, path_of(id, "?tag=" + tag));
  }
  std::string tag_of(JobId id) { return job_in(get(alice(), path_of(id))).tag; }
  ClientPtr grow(const net::Peer& peer, JobId id, Bytes wanted, int order) {
    return ask(peer, "POST", path_of(id, "/grow?order=" + std::to_string(order)),
               wire::encode_wanted({wanted}));
  }
  Bytes granted(JobId id) { return engine_.state().find(id)->grant.at(0).bytes; }
};

TEST_F(RunnersTest, ARunGoesFromItsGrantToItsEnd) {
  const JobId id = run(alice(), "8G");
  EXPECT_EQ(state_in(started(alice(), id)), JobState::kRunning);
  EXPECT_EQ(state_in(ended(alice(), id)), JobState::kEnded);
  EXPECT_EQ(state_in(get(alice(), path_of(id))), JobState::kEnded);
}

TEST_F(RunnersTest, ALongPollIsAnsweredWhenTheJobChanges) {
  const JobId first = running(bob(), "80G");
  const JobId id = run(alice(), "8G");
  const std::string tag = tag_of(id);
  const ClientPtr waits = poll(alice(), id, tag);
  EXPECT_FALSE(waits->answered);
  EXPECT_EQ(state_in(poll(alice(), id, "old")), JobState::kPending) << "another tag: at once";
  (void)run(bob(), "8G");
  EXPECT_FALSE(waits->answered) << "what others do changes nothing for it";
  EXPECT_EQ(ended(bob(), first)->status, 200);
  ASSERT_TRUE(waits->answered);
  EXPECT_EQ(state_in(waits), JobState::kStarting);
  EXPECT_NE(job_in(waits).tag, tag);
  EXPECT_FALSE(waits->held) << "it is small";
}

TEST_F(RunnersTest, ARunnerIsToldThatItsJobIsCancelled) {
  const JobId id = running(alice(), "8G");
  const ClientPtr waits = poll(alice(), id, tag_of(id));
  EXPECT_FALSE(waits->answered);
  EXPECT_EQ(ask(admin(), "DELETE", path_of(id))->status, 200);
  ASSERT_TRUE(waits->answered);
  EXPECT_EQ(state_in(waits), JobState::kStopping);
}

TEST_F(RunnersTest, AnAnswerIsNotGivenToARunnerThatIsGone) {
  const JobId id = running(alice(), "8G");
  const ClientPtr waits = poll(alice(), id, tag_of(id));
  waits->hang_up();
  EXPECT_EQ(ask(alice(), "DELETE", path_of(id))->status, 200);
  EXPECT_FALSE(waits->answered);
}

TEST_F(RunnersTest, ARunnerFindsItsOwnJobOnly) {
  const JobId id = running(alice(501), "8G");
  const std::string tag = tag_of(id);
  EXPECT_EQ(poll(alice(502), id, tag)->status, 404) << "the job of another run";
  const ClientPtr looks = get(alice(502), path_of(id, "?since=" + tag));
  EXPECT_FALSE(looks->answered) << "any process of its user may wait for a change";
  EXPECT_EQ(get(bob(), path_of(id, "?since=" + tag))->status, 403);
  EXPECT_EQ(get(bob(), path_of(id))->status, 403);
  EXPECT_EQ(poll(bob(), id, tag)->status, 404) << "the number of his job is another user's now";
  EXPECT_EQ(ended(alice(501), id)->status, 200);
  EXPECT_EQ(state_in(looks), JobState::kEnded);
}

TEST_F(RunnersTest, ReportsOfOtherProcessesAreRefused) {
  const JobId id = run(alice(501), "8G");
  const ClientPtr refused = started(alice(502), id);
  EXPECT_EQ(refused->status, 403);
  EXPECT_EQ(refused->error().evidence, "process 502 asks, not process 501");
  EXPECT_EQ(started(bob(), id)->status, 404);
  EXPECT_EQ(ended(bob(), id)->status, 404);
  EXPECT_EQ(engine_.state().find(id)->state, JobState::kStarting);
}

TEST_F(RunnersTest, AReportThatWasOvertakenChangesNothing) {
  const JobId id = running(alice(), "8G..70G");
  EXPECT_EQ(grow(alice(), id, gib(20), 2)->status, 200);
  const Bytes now = granted(id);
  EXPECT_GE(now, gib(20));
  const ClientPtr late = grow(alice(), id, gib(60), 1);
  EXPECT_EQ(late->status, 200) << "answered with the job as it is";
  EXPECT_EQ(job_in(late).view.job.grant.at(0).bytes, now);
  EXPECT_EQ(granted(id), now);
  EXPECT_EQ(grow(alice(), id, gib(10), 3)->status, 200);
  EXPECT_EQ(granted(id), gib(10));
}

TEST_F(RunnersTest, TheOrderOfAJobThatHasEndedIsForgotten) {
  const JobId first = running(alice(), "8G..70G");
  EXPECT_EQ(grow(alice(), first, gib(20), 9)->status, 200);
  EXPECT_EQ(ended(alice(), first)->status, 200);
  const JobId second = running(alice(), "8G..70G");
  EXPECT_EQ(grow(alice(), second, gib(20), 1)->status, 200);
  EXPECT_GE(granted(second), gib(20));
}

TEST_F(RunnersTest, WordsThatAreWrongAreInvalid) {
  const JobId id = running(alice(), "8G");
  for (const char* what : {"/started", "/ended", "/parked", "/grow"})
    EXPECT_EQ(ask(alice(), "POST", path_of(id, what), "{")->status, 400) << what;
}

// Memory that a job reports as given back is not granted before the driver confirms it.
TEST_F(RunnersTest, MemoryThatAJobSaysToHaveParkedIsNotGrantedBeforeItIsSeenFree) {
  core::JobSpec parkable = spec("70G");
  parkable.preemptible = true;
  const JobId id =
      job_in(ask(alice(), "POST", "/v1/jobs", wire::encode(wire::RunRequest{parkable, 7, true})))
          .view.job.id;
  EXPECT_EQ(started(alice(), id)->status, 200);
  reading_.used[id][kCard] = gib(60);
  see();
  EXPECT_EQ(ask(alice(), "POST", path_of(id, "/park"))->status, 200);
  wire::ParkReport report;
  report.parked = true;
  report.held = {gib(1)};
  report.moved = gib(59);
  EXPECT_EQ(ask(alice(), "POST", path_of(id, "/parked"), wire::encode(report))->status, 200);
  const JobId other = run(bob(), "40G");
  EXPECT_EQ(engine_.state().find(other)->state, JobState::kPending) << "60 GiB are still in use";
  reading_.used[id][kCard] = gib(1);
  see();
  EXPECT_EQ(engine_.state().find(other)->state, JobState::kStarting);
}

TEST_F(RunnersTest, AReportOfAnotherUserTakesNoMemoryFromTheCards) {
  const JobId id = running(alice(), "70G");
  reading_.used[id][kCard] = gib(60);
  see();
  wire::ParkReport report;
  report.parked = true;
  report.held = {gib(1)};
  EXPECT_EQ(ask(bob(), "POST", path_of(id, "/parked"), wire::encode(report))->status, 404);
  const JobId other = run(bob(), "8G");
  EXPECT_EQ(engine_.state().find(other)->state, JobState::kStarting);
}

}  // namespace
}  // namespace mete::serve
