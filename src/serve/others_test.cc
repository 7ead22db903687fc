// SPDX-License-Identifier: Apache-2.0
// What users are shown of other users' jobs, for each value of [sight] others.
#include "serve/routes.h"
#include "serve/test/service_world.h"
#include "wire/explain.h"
#include "wire/ps_lines.h"
#include "wire/snapshot.h"

namespace mete::serve {
namespace {

using core::JobId;
using core::JobState;
using core::Others;

class OtherUsersTest : public ServiceTest {
 protected:
  explicit OtherUsersTest(Others others = Others::kRows) : ServiceTest(true, others) {}

  std::vector<wire::JobView> listed(const net::Peer& peer, const std::string& query) {
    const ClientPtr client = get(peer, "/v1/jobs" + query);
    Result<std::vector<wire::JobView>> views = wire::decode_ps(client->body);
    EXPECT_TRUE(views.ok()) << client->body;
    return views ? *std::move(views) : std::vector<wire::JobView>();
  }
  static std::vector<JobId> ids(const std::vector<wire::JobView>& views) {
    std::vector<JobId> ids;
    for (const wire::JobView& view : views) ids.push_back(view.job.id);
    return ids;
  }
  wire::Snapshot snapshot(const net::Peer& peer, const std::string& query = "?others=1") {
    const ClientPtr client = get(peer, "/v1/snapshot" + query);
    Result<wire::Snapshot> read = wire::decode_snapshot(client->body);
    EXPECT_TRUE(read.ok()) << client->body;
    return read ? *std::move(read) : wire::Snapshot();
  }
  wire::ExplainDocument explained(const net::Peer& peer, JobId id) {
    const ClientPtr client = get(peer, path_of(id, "/explain"));
    Result<wire::ExplainDocument> read = wire::decode_explain(client->body);
    EXPECT_TRUE(read.ok()) << client->body;
    return read ? *std::move(read) : wire::ExplainDocument();
  }
  const std::string alices_name_ = std::to_string(kAliceUid);
};

// ---- rows ----

TEST_F(OtherUsersTest, AListHasRowsOnRequest) {
  const JobId hers = running(alice(), "30G"), his = running(bob(), "20G");
  reading_.used[hers][kCard] = gib(12);
  reading_.idle_since[hers] = WallTime{5'000};
  see();
  EXPECT_EQ(ids(listed(bob(), "")), std::vector{his}) << "as older clients ask";
  EXPECT_EQ(ids(listed(bob(), "?mine=1&others=1")), std::vector{his});
  EXPECT_EQ(ids(listed(bob(), "?others=1&user=" + alices_name_)), std::vector{hers});
  const std::vector<wire::JobView> views = listed(bob(), "?others=1");
  ASSERT_EQ(ids(views), (std::vector{hers, his}));
  const wire::JobView& row = views[0];
  EXPECT_TRUE(row.row);
  EXPECT_EQ(row.job.spec->user, alices_name_);
  EXPECT_EQ(row.job.spec->uid, kAliceUid);
  EXPECT_EQ(row.job.spec->request.gpu, core::parse_gpu("30G").value());
  EXPECT_EQ(row.job.state, JobState::kRunning);
  EXPECT_TRUE(row.job.started);
  ASSERT_EQ(row.job.grant.size(), 1u);
  EXPECT_EQ(row.job.grant[0].bytes, gib(30));
  EXPECT_EQ(row.used, (std::vector<std::optional<Bytes>>{gib(12)}));
  EXPECT_EQ(row.idle_since, WallTime{5'000});
  EXPECT_FALSE(views[1].row);
  EXPECT_EQ(views[1].job.spec->name, "train");
}

TEST_F(OtherUsersTest, WhatIsNotShownIsAbsent) {
  (void)running(alice(), "30G");
  const std::string body = get(bob(), "/v1/jobs?others=1")->body;
  for (const char* field : {"\"name\"", "\"command\"", "\"labels\"", "\"attempt\"", "null"})
    EXPECT_EQ(body.find(field), std::string::npos) << field << " in " << body;
  // A document that was read and written again is the same.
  EXPECT_EQ(wire::encode_ps(listed(bob(), "?others=1"), clock_.wall()), body);
}

TEST_F(OtherUsersTest, EndedJobsAreRowsIfTheyAreNamed) {
  const JobId hers = running(alice(), "30G");
  EXPECT_EQ(ended(alice(), hers)->status, 200);
  EXPECT_TRUE(listed(bob(), "?others=1&all=1").empty());
  const std::vector<wire::JobView> named = listed(bob(), "?others=1&all=1&id=" + to_string(hers));
  ASSERT_EQ(named.size(), 1u);
  EXPECT_EQ(named[0].job.state, JobState::kEnded);
  EXPECT_EQ(named[0].job.outcome, std::nullopt) << "how it ended is its user's";
  EXPECT_EQ(named[0].job.exit, std::nullopt);
}

TEST_F(OtherUsersTest, OfAWaitTheReasonIsToldAndThePlace) {
  (void)running(bob(), "80G");
  const JobId hers = run(alice(), "8G");
  const std::vector<wire::JobView> views = listed(bob(), "?others=1&user=" + alices_name_);
  ASSERT_EQ(ids(views), std::vector{hers});
  ASSERT_TRUE(views[0].wait);
  EXPECT_EQ(views[0].place, 1u);
  EXPECT_EQ(views[0].wait->reason, core::Reason::kResources);
  EXPECT_TRUE(views[0].wait->room.cards.empty());
  EXPECT_EQ(ask(alice(), "POST", path_of(hers, "/hold"))->status, 200);
  const std::vector<wire::JobView> held = listed(bob(), "?others=1&user=" + alices_name_);
  EXPECT_EQ(held.at(0).wait->words, "its user to release it");
}

TEST_F(OtherUsersTest, ASnapshotHasRowsOnRequest) {
  const JobId hers = running(alice(), "80G");
  reading_.processes[hers] = {{900, 1, 501, 0, "python", gib(15), 40}};
  reading_.used[hers][kCard] = gib(15);
  see();
  clock_.advance(seam::Milliseconds(6'000));
  see();
  const JobId waits = run(alice(), "8G");
  EXPECT_TRUE(snapshot(bob(), "").jobs.empty());
  const wire::Snapshot shown = snapshot(bob());
  ASSERT_EQ(shown.jobs.size(), 2u);
  EXPECT_TRUE(shown.jobs[0].view.row);
  EXPECT_TRUE(shown.jobs[0].processes.empty());
  EXPECT_TRUE(shown.jobs[0].peaks.empty());
  EXPECT_EQ(shown.jobs[0].utilisation_pct, std::nullopt);
  EXPECT_EQ(shown.jobs[0].runner, std::nullopt);
  EXPECT_EQ(shown.jobs[0].view.used, (std::vector<std::optional<Bytes>>{gib(15)}));
  ASSERT_EQ(shown.queue.order.size(), 1u);
  EXPECT_EQ(shown.queue.order[0].id, waits);
  EXPECT_EQ(shown.jobs[1].view.place, 1u);
  ASSERT_TRUE(shown.history);
  EXPECT_TRUE(shown.history->jobs.empty());
  const ClientPtr client = stream(bob(), "/v1/snapshot?others=1&every=1");
  ASSERT_EQ(client->chunks.size(), 1u);
  EXPECT_NE(client->chunks[0].find("\"user\":\"" + alices_name_), std::string::npos);
}

TEST_F(OtherUsersTest, OwnJobsHaveTheFirstRoomOfALongQueue) {
  (void)running(bob(), "80G");
  for (std::size_t i = 0; i < wire::kSnapshotPending + 3; ++i) (void)run(alice(), "8G");
  const JobId his = run(bob(), "8G");
  const wire::Snapshot shown = snapshot(bob());
  EXPECT_EQ(shown.queue.order.size(), wire::kSnapshotPending);
  EXPECT_EQ(shown.queue.left_off, 4u);
  EXPECT_TRUE(std::any_of(shown.queue.order.begin(), shown.queue.order.end(),
                          [&](const auto& entry) { return entry.id == his; }));
}

TEST_F(OtherUsersTest, ExplainTellsTheRow) {
  const JobId first = running(alice(), "70G"), second = run(alice(), "20G");
  const wire::ExplainDocument runs = explained(bob(), first);
  EXPECT_EQ(runs.user, alices_name_);
  EXPECT_EQ(runs.request, core::parse_gpu("70G").value());
  ASSERT_EQ(runs.grant.size(), 1u);
  EXPECT_EQ(runs.state, JobState::kRunning);
  const std::uint64_t before = engine_.state().last_seq();
  const wire::ExplainDocument waits = explained(bob(), second);
  EXPECT_EQ(waits.place, 1u);
  EXPECT_EQ(waits.in_line, 1u);
  EXPECT_EQ(waits.reason, core::Reason::kResources);
  EXPECT_EQ(waits.text, "waits for room on the cards");
  EXPECT_TRUE(waits.cards.empty() && waits.changes.empty());
  EXPECT_EQ(engine_.state().last_seq(), before) << "a question of another user records nothing";
  EXPECT_EQ(explained(alice(), second).user, "") << "her own";
}

TEST_F(OtherUsersTest, AJobCannotComeAfterAnotherUsersJob) {
  const JobId hers = running(alice(), "8G");
  core::JobSpec after = spec("8G");
  after.after = {{hers, core::When::kAny}};
  const std::string body = wire::encode(wire::RunRequest{after, 99, true});
  for (const char* path : {"/v1/jobs", "/v1/try"}) {
    const ClientPtr client = ask(bob(), "POST", path, body);
    EXPECT_EQ(client->status, 403) << path << client->body;
    EXPECT_EQ(client->error().message, "--after 1: job 1 is " + alices_name_ + "'s");
  }
}

TEST_F(OtherUsersTest, AnAdministratorSeesNoRows) {
  (void)running(alice(), "8G");
  const std::vector<wire::JobView> views = listed(admin(), "?others=1");
  ASSERT_EQ(views.size(), 1u);
  EXPECT_FALSE(views[0].row);
  EXPECT_FALSE(snapshot(admin()).jobs.at(0).view.row);
}

// ---- the other values ----

class AllTest : public OtherUsersTest {
 protected:
  AllTest() : OtherUsersTest(Others::kAll) {}
};

TEST_F(AllTest, AddsNameAndCommand) {
  const JobId hers = running(alice(), "30G");
  const std::string body = get(bob(), "/v1/jobs?others=1")->body;
  EXPECT_EQ(body.find("\"labels\""), std::string::npos);
  const std::vector<wire::JobView> views = listed(bob(), "?others=1");
  ASSERT_EQ(ids(views), std::vector{hers});
  EXPECT_TRUE(views[0].row);
  EXPECT_EQ(views[0].job.spec->name, "train");
  EXPECT_EQ(views[0].job.spec->command, std::vector<std::string>{"train"});
  EXPECT_EQ(snapshot(bob()).cards.at(0).jobs.at(0).name, "train");
  EXPECT_EQ(get(bob(), path_of(hers, "/show"))->status, 403);
}

class TotalsTest : public OtherUsersTest {
 protected:
  TotalsTest() : OtherUsersTest(Others::kTotals) {}
};

TEST_F(TotalsTest, ShowsNoRows) {
  const JobId hers = running(alice(), "30G");
  EXPECT_TRUE(listed(bob(), "?others=1&all=1").empty());
  EXPECT_TRUE(listed(bob(), "?others=1&all=1&id=" + to_string(hers)).empty());
  const wire::Snapshot shown = snapshot(bob());
  EXPECT_TRUE(shown.jobs.empty());
  EXPECT_EQ(shown.cards.at(0).jobs.at(0).user, alices_name_);
  EXPECT_EQ(shown.cards.at(0).jobs.at(0).name, "");
  core::JobSpec after = spec("8G");
  after.after = {{hers, core::When::kAny}};
  const ClientPtr client =
      ask(bob(), "POST", "/v1/jobs", wire::encode(wire::RunRequest{after, 99, true}));
  EXPECT_EQ(client->status, 404) << client->body;
}

// ---- an attacker ----

// Jobs of alice in each state, with this word in everything that is hers, and bob asks for all that
// can be asked for.
class SecretTest : public OtherUsersTest, public testing::WithParamInterface<Others> {
 protected:
  SecretTest() : OtherUsersTest(GetParam()) {}

  static core::JobSpec secretive(const std::string& gpu) {
    core::JobSpec spec = ServiceTest::spec(gpu);
    spec.name = "xyzzy-name";
    spec.command = {"/xyzzy/command", "--xyzzy"};
    spec.folder = "/xyzzy/folder";
    spec.labels = {{"xyzzy-label", "xyzzy-value"}};
    spec.notify.to = {*core::parse_notify("cmd:xyzzy")};
    return spec;
  }
  JobId secret_job(const std::string& gpu) {
    const ClientPtr client = ask(alice(), "POST", "/v1/jobs",
                                 wire::encode(wire::RunRequest{secretive(gpu), ++ticks_, true}));
    EXPECT_EQ(client->status, 201) << client->body;
    return job_in(client).view.job.id;
  }
  // All that bob is answered.
  std::string told(const std::string& method, const std::string& target, const std::string& body) {
    std::string all;
    for (const char* accept :
         {"application/json", "text/event-stream", "text/tab-separated-values"}) {
      const ClientPtr client = ask(bob(), method, target, body, {{"accept", accept}});
      all += client->body;
      for (const std::string& chunk : client->chunks) all += chunk;
      if (!client->answered || !client->chunks.empty()) client->hang_up();
    }
    return all;
  }

  std::uint64_t ticks_ = 1'000;
};
INSTANTIATE_TEST_SUITE_P(Each, SecretTest, testing::Values(Others::kTotals, Others::kRows),
                         [](const auto& one) { return std::string(to_string(one.param)); });

TEST_P(SecretTest, NoByteOfItReachesAnotherUser) {
  const JobId past = secret_job("8G");
  EXPECT_EQ(started(alice(), past)->status, 200);
  wire::EndReport end;
  end.exit.code = 3;
  end.exit.note = "xyzzy-note";
  EXPECT_EQ(ask(alice(), "POST", path_of(past, "/ended"), wire::encode(end))->status, 200);
  const JobId runs = secret_job("60G");
  EXPECT_EQ(started(alice(), runs)->status, 200);
  reading_.processes[runs] = {{900, 1, 501, 0, "xyzzy-process", gib(70), 40}};
  reading_.used[runs][kCard] = gib(70);
  see();
  clock_.advance(seam::Milliseconds(6'000));
  see();
  service_.tell(core::Escaped{runs, {900, 1, kCard, 0, gib(9), gib(1), "xyzzy-escape"}});
  settle();
  const JobId waits = secret_job("70G");
  const JobId held = secret_job("70G");
  EXPECT_EQ(ask(alice(), "POST", path_of(held, "/hold"))->status, 200);
  const JobId his = run(bob(), "40G");  // its explanation names her jobs
  core::JobSpec after = spec("8G");
  after.after = {{waits, core::When::kAny}};
  const std::string body = wire::encode(wire::RunRequest{after, 99, true});

  // The test can fail: alice is told.
  EXPECT_NE(get(alice(), "/v1/jobs?all=1")->body.find("xyzzy"), std::string::npos);
  const std::string events = get(alice(), "/v1/events?from=1")->body;
  for (const char* word : {"xyzzy/folder", "xyzzy-label", "xyzzy-note", "xyzzy-escape"})
    EXPECT_NE(events.find(word), std::string::npos) << word;

  std::size_t asked = 0;
  for (const Route& route : routes()) {
    const std::string path(route.path);
    const std::size_t open = path.find('{');
    std::vector<std::string> paths;
    for (const JobId id : {past, runs, waits, held, his}) {
      if (open == path.npos) {
        paths = {path};
        break;
      }
      if (id == his && route.method != "GET") continue;
      paths.push_back(path.substr(0, open) + to_string(id) + path.substr(path.find('}') + 1));
    }
    if (path == "/v1/daemon/stop") continue;
    for (const std::string& target : paths) {
      for (const std::string& query :
           {std::string(), std::string("?others=1"), std::string("?others=1&all=1&from=1"),
            "?others=1&all=1&id=" + to_string(runs), "?others=1&all=1&id=" + to_string(past),
            "?all=1&any=1&since=x&user=" + alices_name_}) {
        const std::string answer = told(std::string(route.method), target + query, body);
        EXPECT_EQ(answer.find("xyzzy"), std::string::npos) << target << query << "\n" << answer;
        ++asked;
      }
    }
  }
  EXPECT_GT(asked, 150u);
  EXPECT_EQ(engine_.state().find(runs)->state, JobState::kRunning) << "nor has he ended it";
}

}  // namespace
}  // namespace mete::serve
