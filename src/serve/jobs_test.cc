// SPDX-License-Identifier: Apache-2.0
// What users do with jobs, and what other users see of it.
#include "serve/jobs.h"

#include "serve/test/service_world.h"
#include "wire/explain.h"

namespace mete::serve {
namespace {

using core::JobId;
using core::JobState;

class JobsTest : public ServiceTest {
 protected:
  static std::string submit_body(core::JobSpec spec) {
    spec.detached.emplace();
    return wire::encode(
        wire::SubmitRequest{std::move(spec), {"PATH=/bin", "KEY=secret"}, "", true});
  }
  // Three jobs that wait: nothing starts them.
  JobId held_array() {
    core::JobSpec array = spec("8G");
    array.array = *core::parse_array("0-2");
    array.held = true;
    const ClientPtr client = ask(this_user(), "POST", "/v1/jobs", submit_body(array));
    EXPECT_EQ(client->status, 201) << client->body;
    const Result<wire::SubmitReply> reply = wire::decode_submit_reply(client->body);
    EXPECT_TRUE(reply.ok() && reply->elements == 3) << client->body;
    return reply.ok() ? reply->id : JobId();
  }
  std::vector<JobId> listed(const net::Peer& peer, const std::string& query = "") {
    std::vector<JobId> ids;
    const ClientPtr client = get(peer, "/v1/jobs" + query);
    const Result<std::vector<wire::JobView>> views = wire::decode_ps(client->body);
    EXPECT_TRUE(views.ok()) << client->body;
    if (views)
      for (const wire::JobView& view : *views) ids.push_back(view.job.id);
    return ids;
  }
  std::vector<JobId> changed(const ClientPtr& client) {
    const Result<wire::ChangedDocument> document = wire::decode_changed(client->body);
    EXPECT_TRUE(document.ok()) << client->status << " " << client->body;
    return document ? document->changed : std::vector<JobId>();
  }
  std::size_t jobs_in(const ClientPtr& client) {
    const Result<wire::WaitDocument> document = wire::decode_wait(client->body);
    EXPECT_TRUE(document.ok()) << client->status << " " << client->body;
    return document ? document->jobs.size() : 0;
  }
  wire::ShowDocument shown(const net::Peer& peer, JobId id) {
    const ClientPtr client = get(peer, path_of(id, "/show"));
    Result<wire::ShowDocument> document = wire::decode_show(client->body);
    EXPECT_TRUE(document.ok()) << client->status << " " << client->body;
    return document ? *std::move(document) : wire::ShowDocument();
  }
};

// ---- new jobs ----

TEST_F(JobsTest, ARunIsAnsweredWithAllThatItsRunnerNeeds) {
  const wire::RunReply reply = job_in(ask(alice(), "POST", "/v1/jobs", run_body("8G")));
  EXPECT_EQ(reply.view.job.state, JobState::kStarting);
  EXPECT_EQ(reply.view.job.spec->uid, kAliceUid) << "as the socket says";
  ASSERT_EQ(reply.cards.size(), 1u);
  EXPECT_EQ(reply.cards[0].name, "NVIDIA H200");
  EXPECT_EQ(reply.driver, "580");
  EXPECT_FALSE(reply.tag.empty());
}

TEST_F(JobsTest, WhatCanNeverFitIsRefused) {
  const ClientPtr client = ask(alice(), "POST", "/v1/jobs", run_body("99G"));
  EXPECT_EQ(client->status, 422) << client->body;
  EXPECT_TRUE(listed(alice(), "?all=1").empty());
}

TEST_F(JobsTest, WordsOfAClientThatAreWrongAreInvalid) {
  EXPECT_EQ(ask(alice(), "POST", "/v1/jobs", "{")->status, 400);
  EXPECT_EQ(ask(alice(), "POST", "/v1/try", "[]")->status, 400);
  const JobId id = run(alice(), "8G");
  EXPECT_EQ(ask(alice(), "POST", path_of(id, "/priority"), "{}")->status, 400);
}

TEST_F(JobsTest, AProcessThatTheDaemonCannotSeeGetsNoJob) {
  const ClientPtr client = ask(alice(0), "POST", "/v1/jobs", run_body("8G"));
  EXPECT_EQ(client->status, 501);
}

TEST_F(JobsTest, ASubmitIsOnDiskBeforeItIsAnswered) {
  const std::size_t before = store_.commits();
  const JobId id = held_array();
  EXPECT_GT(store_.commits(), before);
  EXPECT_EQ(store_.queued(), 0u);
  EXPECT_EQ(engine_.state().find_all(id).size(), 3u);
}

TEST_F(JobsTest, ASubmitOfAProcessThatHasGoneIsRefused) {
  net::Peer gone = this_user();
  gone.pid = 0x7ffffffe;
  EXPECT_EQ(ask(gone, "POST", "/v1/jobs", submit_body(spec("8G")))->status, 409);
}

TEST_F(JobsTest, ATrialChangesNothing) {
  const ClientPtr fits = ask(alice(), "POST", "/v1/try", run_body("8G"));
  const Result<wire::DryRunDocument> trial = wire::decode_dry_run(fits->body);
  ASSERT_TRUE(trial.ok()) << fits->body;
  EXPECT_TRUE(trial->starts);
  EXPECT_EQ(trial->grant.at(0).bytes, gib(8));
  EXPECT_TRUE(listed(alice(), "?all=1").empty());
  EXPECT_TRUE(store_.committed().empty());
  (void)run(bob(), "80G");
  const Result<wire::DryRunDocument> waits =
      wire::decode_dry_run(ask(alice(), "POST", "/v1/try", run_body("8G"))->body);
  ASSERT_TRUE(waits.ok());
  EXPECT_FALSE(waits->starts);
  EXPECT_EQ(waits->why.reason, core::Reason::kResources);
}

TEST_F(JobsTest, AFullDiskRefusesNewJobsAndTellsNothingThatMayBeUndone) {
  const JobId id = running(alice(), "8G");
  store_.set_full(0);
  EXPECT_EQ(ask(alice(), "POST", "/v1/jobs", run_body("8G"))->status, 503);
  const ClientPtr cancel = ask(alice(), "DELETE", path_of(id));
  EXPECT_FALSE(cancel->answered) << "it is not on disk";
  EXPECT_EQ(get(alice(), "/v1/jobs")->status, 503);
  EXPECT_EQ(get(alice(), path_of(id, "/show"))->status, 503);
  EXPECT_EQ(get(alice(), path_of(id, "/explain"))->status, 503);
  EXPECT_EQ(get(alice(), "/v1/snapshot")->status, 503);
  const ClientPtr wait = get(alice(), path_of(id, "/wait"));
  store_.set_room();
  clock_.advance(seam::Milliseconds(60'000));
  service_.tell(core::Look{});
  settle();
  EXPECT_EQ(cancel->status, 200);
  EXPECT_FALSE(wait->answered);
  EXPECT_EQ(get(alice(), "/v1/jobs")->status, 200);
}

// ---- lists and documents ----

TEST_F(JobsTest, AListHasTheJobsThatItsReaderMaySee) {
  const JobId hers = running(alice(), "8G");
  const JobId his = running(bob(), "8G");
  EXPECT_EQ(listed(alice()), std::vector{hers});
  EXPECT_EQ(listed(bob()), std::vector{his});
  EXPECT_EQ(listed(admin()), (std::vector{hers, his}));
  EXPECT_EQ(listed(admin(), "?user=" + std::to_string(kBobUid)), std::vector{his});
  EXPECT_EQ(listed(bob(), "?id=" + to_string(hers)), std::vector<JobId>());
  EXPECT_EQ(listed(admin(), "?mine=1&others=1"), std::vector<JobId>());
  EXPECT_EQ(get(bob(), "/v1/jobs?id=x")->status, 400);
  EXPECT_EQ(ended(alice(), hers)->status, 200);
  EXPECT_TRUE(listed(alice()).empty());
  EXPECT_EQ(listed(alice(), "?all=1"), std::vector{hers});
}

TEST_F(JobsTest, AListComesAsLinesToAClientThatAcceptsThem) {
  (void)running(alice(), "8G");
  const ClientPtr lines =
      ask(alice(), "GET", "/v1/jobs", "", {{"accept", "text/tab-separated-values"}});
  EXPECT_EQ(lines->type, "text/tab-separated-values");
  EXPECT_NE(lines->body.find("train"), std::string::npos);
}

TEST_F(JobsTest, ShowHasTheProcessesOfAJobEachOnce) {
  const JobId id = running(alice(), "8G");
  reading_.used[id][kCard] = gib(5);
  reading_.processes[id] = {{900, 1, 501, 0, "python", gib(2), 40},
                            {900, 1, 501, 1, "python", gib(1), 40},
                            {901, 2, 900, 0, "python", gib(2), {}},
                            {901, 2, 900, 1, "python", {}, {}}};
  see();
  const wire::ShowDocument document = shown(alice(), id);
  EXPECT_EQ(document.processes,
            (std::vector<wire::ShowDocument::Process>{{900, gib(3)}, {901, std::nullopt}}));
  EXPECT_EQ(document.view.used, (std::vector<std::optional<Bytes>>{gib(5)}));
  EXPECT_EQ(get(bob(), path_of(id, "/show"))->status, 403);
  EXPECT_EQ(get(admin(), path_of(id, "/show"))->status, 200);
}

TEST_F(JobsTest, ShowNamesTheEnvironmentOfASubmitAndNeverItsValues) {
  const JobId id = held_array();
  const wire::ShowDocument document = shown(this_user(), id);
  EXPECT_EQ(document.view.job.id, id) << "the array, not its first job";
  EXPECT_EQ(document.elements, (std::map<std::string, std::uint64_t>{{"pending", 3}}));
  EXPECT_EQ(document.environment, (std::vector<std::string>{"KEY", "PATH"}));
  EXPECT_EQ(get(this_user(), path_of(id, "/show"))->body.find("secret"), std::string::npos);
}

TEST_F(JobsTest, ShowHasAllOfALongCommand) {
  core::JobSpec wordy = spec("8G");
  wordy.command = {"train", std::string(10'000, 'x')};
  const ClientPtr client =
      ask(alice(), "POST", "/v1/jobs", wire::encode(wire::RunRequest{wordy, 7, true}));
  EXPECT_EQ(shown(alice(), job_in(client).view.job.id).view.job.spec->command, wordy.command);
}

TEST_F(JobsTest, ExplainTellsWhoHoldsTheCardAndWhenItIsExpectedFree) {
  const JobId first = running(bob(), "70G");
  const JobId second = run(alice(), "20G");
  const ClientPtr client = get(alice(), path_of(second, "/explain"));
  const Result<wire::ExplainDocument> why = wire::decode_explain(client->body);
  ASSERT_TRUE(why.ok()) << client->body;
  EXPECT_EQ(why->id, second);
  EXPECT_EQ(why->reason, core::Reason::kResources);
  ASSERT_EQ(why->cards.size(), 1u);
  EXPECT_EQ(why->cards[0].name, "NVIDIA H200");
  ASSERT_EQ(why->cards[0].holders.size(), 1u);
  EXPECT_EQ(why->cards[0].holders[0].id, first);
}

TEST_F(JobsTest, AForecastThatWasToldIsRecorded) {
  core::JobSpec timed = spec("70G");
  timed.time_s = 600;
  const ClientPtr first =
      ask(bob(), "POST", "/v1/jobs", wire::encode(wire::RunRequest{timed, 7, true}));
  EXPECT_EQ(started(bob(), job_in(first).view.job.id)->status, 200);
  const JobId second = run(alice(), "20G");
  ASSERT_FALSE(engine_.state().find(second)->forecast);
  EXPECT_TRUE(shown(alice(), second).view.forecast);
  EXPECT_TRUE(engine_.state().find(second)->forecast);
}

// ---- waits ----

TEST_F(JobsTest, AWaitForAnArrayEndsWithItsLastJob) {
  const JobId id = held_array();
  const ClientPtr all = get(this_user(), path_of(id, "/wait"));
  const ClientPtr any = get(this_user(), path_of(id, "/wait?any=1"));
  EXPECT_FALSE(all->answered);
  EXPECT_FALSE(service_.idle());
  const JobId one = engine_.state().find_all(id)[1]->id;
  EXPECT_EQ(changed(ask(this_user(), "DELETE", path_of(one))), std::vector{one});
  ASSERT_TRUE(any->answered);
  EXPECT_EQ(jobs_in(any), 1u) << "the job that has ended";
  EXPECT_TRUE(any->held) << "the answer may be large";
  EXPECT_FALSE(all->answered);
  EXPECT_EQ(changed(ask(this_user(), "DELETE", path_of(id))).size(), 2u);
  ASSERT_TRUE(all->answered);
  EXPECT_EQ(jobs_in(all), 3u);
  EXPECT_EQ(jobs_in(get(this_user(), path_of(id, "/wait"))), 3u) << "at once, from now on";
  EXPECT_TRUE(service_.idle());
}

TEST_F(JobsTest, AClientThatHangsUpNoLongerWaits) {
  const JobId id = held_array();
  const ClientPtr wait = get(this_user(), path_of(id, "/wait"));
  wait->hang_up();
  EXPECT_EQ(changed(ask(this_user(), "DELETE", path_of(id))).size(), 3u);
  EXPECT_FALSE(wait->answered);
  EXPECT_TRUE(service_.idle());
}

TEST_F(JobsTest, OtherUsersCannotWaitForAJob) {
  EXPECT_EQ(get(bob(), path_of(running(alice(), "8G"), "/wait"))->status, 403);
  EXPECT_EQ(get(alice(), path_of({99}, "/wait"))->status, 404);
}

// ---- changes ----

TEST_F(JobsTest, AJobIsCancelledByItsUserAndByAdministratorsAlone) {
  const JobId first = run(alice(), "8G"), second = running(alice(), "8G");
  const ClientPtr refused = ask(bob(), "DELETE", path_of(first));
  EXPECT_EQ(refused->status, 403);
  EXPECT_EQ(refused->error().message, "job 1 is " + std::to_string(kAliceUid) + "'s");
  EXPECT_EQ(refused->error().evidence, "you are " + std::to_string(kBobUid));
  EXPECT_EQ(refused->error().hint, "ask " + std::to_string(kAliceUid) +
                                       " or an administrator; mete ps --mine lists your jobs");
  EXPECT_EQ(changed(ask(alice(999), "DELETE", path_of(first))), std::vector{first});
  EXPECT_EQ(changed(ask(admin(), "DELETE", path_of(second))), std::vector{second});
  EXPECT_EQ(engine_.state().find(second)->state, JobState::kStopping);
}

TEST_F(JobsTest, AJobIsHeldReleasedAndMovedInTheQueue) {
  (void)running(bob(), "80G");
  const JobId id = run(alice(), "8G");
  EXPECT_EQ(changed(ask(alice(), "POST", path_of(id, "/hold"))), std::vector{id});
  EXPECT_TRUE(engine_.state().find(id)->held);
  EXPECT_EQ(changed(ask(alice(), "POST", path_of(id, "/release"))), std::vector{id});
  EXPECT_FALSE(engine_.state().find(id)->held);
  const std::string up = wire::encode_priority(5), down = wire::encode_priority(-5);
  EXPECT_EQ(ask(alice(), "POST", path_of(id, "/priority"), up)->status, 403);
  EXPECT_EQ(changed(ask(alice(), "POST", path_of(id, "/priority"), down)), std::vector{id});
  EXPECT_EQ(changed(ask(admin(), "POST", path_of(id, "/priority"), up)), std::vector{id});
  EXPECT_EQ(ask(bob(), "POST", path_of(id, "/hold"))->status, 403);
}

}  // namespace
}  // namespace mete::serve
