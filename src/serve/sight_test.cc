// SPDX-License-Identifier: Apache-2.0
// Snapshots and metrics: what each user is shown, and when a text is made again.
#include "serve/sight.h"

#include "serve/test/service_world.h"

namespace mete::serve {
namespace {

using core::JobId;

class SightTest : public ServiceTest {
 protected:
  wire::Snapshot parsed(const std::string& text) {
    Result<wire::Snapshot> snapshot = wire::decode_snapshot(text);
    EXPECT_TRUE(snapshot.ok()) << text;
    return snapshot ? *std::move(snapshot) : wire::Snapshot();
  }
  wire::Snapshot snapshot(const net::Peer& peer, const std::string& query = "") {
    return parsed(get(peer, "/v1/snapshot" + query)->body);
  }
  std::string text(const net::Peer& peer) { return get(peer, "/v1/snapshot")->body; }
  std::string metrics() { return get(bob(), "/metrics")->body; }
  // The document of an event of a stream.
  wire::Snapshot event(const std::string& chunk) {
    const std::string head = "event: snapshot\ndata: ";
    EXPECT_TRUE(chunk.starts_with(head)) << chunk;
    return parsed(chunk.substr(head.size()));
  }
  static std::vector<JobId> ids(const wire::Snapshot& snapshot) {
    std::vector<JobId> ids;
    for (const wire::Snapshot::Job& job : snapshot.jobs) ids.push_back(job.view.job.id);
    return ids;
  }
  // The timers of the loop are real: waits until one of them has done it, ten seconds at most.
  bool until(const std::function<bool()>& done) {
    int rounds = 0;
    const net::Timer look = loop_.every(net::Milliseconds(5), [&] {
      if (done() || ++rounds == 2'000) loop_.stop();
    });
    loop_.run();
    return done();
  }
};

bool has(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

// ---- who sees what ----

TEST_F(SightTest, AUserSeesTheirOwnJobsAndTheMemoryOfAll) {
  const JobId hers = running(alice(), "30G"), his = running(bob(), "20G");
  const wire::Snapshot shown = snapshot(alice());
  EXPECT_EQ(ids(shown), std::vector{hers});
  ASSERT_EQ(shown.cards.size(), 1u);
  const wire::CardView& card = shown.cards[0];
  EXPECT_EQ(card.granted, gib(50));
  EXPECT_EQ(card.grantable, gib(30));
  ASSERT_EQ(card.jobs.size(), 2u);
  EXPECT_EQ(card.jobs[0].name, "train");
  EXPECT_EQ(card.jobs[1].id, to_string(his));
  EXPECT_EQ(card.jobs[1].user, std::to_string(kBobUid));
  EXPECT_EQ(card.jobs[1].name, "") << "the name of a job is its user's";
}

TEST_F(SightTest, AnAdministratorSeesAll) {
  const JobId hers = running(alice(), "30G"), his = running(bob(), "20G");
  const wire::Snapshot shown = snapshot(admin());
  EXPECT_EQ(ids(shown), (std::vector{hers, his}));
  EXPECT_EQ(shown.cards.at(0).jobs.at(1).name, "train");
  EXPECT_EQ(ids(snapshot({kDaemonUid, 0, 1})), (std::vector{hers, his}));
  EXPECT_EQ(ids(snapshot({0, 0, 1})), (std::vector{hers, his}));
}

TEST_F(SightTest, PlacesInTheQueueCountTheJobsOfAllUsers) {
  (void)running(alice(), "80G");
  const JobId first = run(bob(), "8G"), second = run(alice(), "8G");
  const wire::Snapshot hers = snapshot(alice()), all = snapshot(admin());
  EXPECT_EQ(hers.queue.depth, (std::map<std::string, std::uint64_t>{{"resources", 2}}));
  ASSERT_EQ(all.queue.order.size(), 2u);
  ASSERT_EQ(hers.queue.order.size(), 1u);
  EXPECT_EQ(hers.queue.order[0].id, second);
  const auto hers_in_all = std::find_if(all.queue.order.begin(), all.queue.order.end(),
                                        [&](const auto& entry) { return entry.id == second; });
  EXPECT_EQ(hers.queue.order[0].place, hers_in_all->place);
  EXPECT_EQ(ids(snapshot(bob())), std::vector{first});
}

TEST_F(SightTest, OfALongQueueTheFirstJobsAreShown) {
  (void)running(alice(), "80G");
  for (std::size_t i = 0; i < wire::kSnapshotPending + 3; ++i) (void)run(alice(), "8G");
  const wire::Snapshot shown = snapshot(alice());
  EXPECT_EQ(shown.queue.order.size(), wire::kSnapshotPending);
  EXPECT_EQ(shown.queue.left_off, 3u);
  EXPECT_EQ(shown.jobs.size(), wire::kSnapshotPending + 1);
}

TEST_F(SightTest, AJobIsShownWithItsProcessesAndItsPeak) {
  const JobId id = running(alice(), "30G");
  reading_.used[id][kCard] = gib(20);
  reading_.peaks[id][kCard] = gib(25);
  reading_.processes[id] = {{900, 1, 501, 0, "python", gib(15), 40},
                            {901, 2, 900, 0, "python", gib(5), 70}};
  see();
  const wire::Snapshot shown = snapshot(alice());
  ASSERT_EQ(shown.jobs.size(), 1u);
  const wire::Snapshot::Job& job = shown.jobs[0];
  ASSERT_EQ(job.processes.size(), 2u);
  EXPECT_EQ(job.processes[1], (wire::Snapshot::Process{901, 2, 900, 0, "python", gib(5), 70}));
  EXPECT_EQ(job.utilisation_pct, 100u) << "of both, and never more than all";
  EXPECT_EQ(job.peaks, (std::vector<std::optional<Bytes>>{gib(25)}));
  EXPECT_EQ(job.view.used, (std::vector<std::optional<Bytes>>{gib(20)}));
  EXPECT_EQ(job.runner, (core::ProcessRef{501, 7}));
}

TEST_F(SightTest, WhatACardSaysIsShownAndWhatItDoesNotSayIsAbsent) {
  CardFigures& figures = reading_.cards[kCard];
  figures.used = gib(3);
  figures.power_mw = 612'500;
  figures.links = {{1, 18}};
  figures.strangers = {{412, "carol", gib(3), "python", 7}, {{}, "dave"}};
  reading_.pool.cards[0].foreign = {{"process 412 of carol", gib(3)}};
  see();
  clock_.advance(seam::Milliseconds(200));
  const wire::CardView card = snapshot(bob()).cards.at(0);
  EXPECT_EQ(card.total, gib(81));
  EXPECT_EQ(card.capacity, gib(80));
  EXPECT_EQ(card.foreign, gib(3));
  EXPECT_EQ(card.power_w, 612.5);
  EXPECT_EQ(card.temperature_c, std::nullopt);
  EXPECT_EQ(card.links.at(0).count, 18u);
  ASSERT_EQ(card.foreign_list.size(), 2u);
  EXPECT_EQ(card.foreign_list[0].pid, 412);
  EXPECT_EQ(card.foreign_list[1].pid, std::nullopt) << "a claim of another daemon";
  EXPECT_EQ(card.reading_age_s, 0.2);
  reading_.cards[kCard] = {};
  reading_.pool.cards[0].lost = true;
  reading_.pool.cards[0].card.total = Bytes();
  see();
  const wire::CardView lost = snapshot(bob()).cards.at(0);
  EXPECT_EQ(lost.state, "lost");
  EXPECT_EQ(lost.total, std::nullopt);
  EXPECT_EQ(lost.capacity, std::nullopt) << "this reading does not have it";
}

TEST_F(SightTest, MemoryBeyondAGrantIsShownAndNotGranted) {
  const JobId id = running(alice(), "30G");
  reading_.used[id][kCard] = gib(50);
  see();
  const wire::CardView card = snapshot(bob()).cards.at(0);
  EXPECT_EQ(card.over, gib(20));
  EXPECT_EQ(card.jobs.at(0).over, gib(20));
  EXPECT_EQ(card.grantable, gib(30));
}

// ---- when a text is made ----

TEST_F(SightTest, ATextIsReusedUntilSomethingChanges) {
  const std::string first = text(alice());
  clock_.advance(seam::Milliseconds(100));  // a text that was made again would say so
  EXPECT_EQ(text(alice()), first);
  see();
  const std::string second = text(alice());
  EXPECT_NE(second, first) << "there is a new reading";
  clock_.advance(seam::Milliseconds(100));
  (void)run(bob(), "8G");
  const std::string third = text(alice());
  EXPECT_NE(third, second) << "there is a new job";
  clock_.advance(seam::Milliseconds(251));
  EXPECT_NE(text(alice()), third) << "its ages are too old";
}

TEST_F(SightTest, ATextIsSharedByThoseWithEqualRightsAlone) {
  (void)running(alice(), "8G");
  const std::string administrators = text(admin());
  clock_.advance(seam::Milliseconds(100));
  EXPECT_EQ(text({0, 0, 1}), administrators);
  EXPECT_NE(text(alice()), administrators) << "made later, for her";
  EXPECT_EQ(ids(snapshot(bob())), std::vector<JobId>());
}

// ---- streams and history ----

TEST_F(SightTest, HistoryIsLeftOutOnRequest) {
  EXPECT_TRUE(snapshot(alice()).history);
  EXPECT_FALSE(snapshot(alice(), "?history=0").history);
}

TEST_F(SightTest, HistoryHasTheSeriesOfJobsThatItsReaderMaySee) {
  const JobId id = running(alice(), "8G");
  reading_.used[id][kCard] = gib(4);
  reading_.cards[kCard].used = gib(4);
  see();
  clock_.advance(seam::Milliseconds(6'000));  // a step of five seconds is over
  see();
  const wire::Snapshot hers = snapshot(alice()), his = snapshot(bob());
  ASSERT_TRUE(hers.history && his.history);
  EXPECT_EQ(hers.history->jobs.at(id).used_mib.at(0).values.back(), 4096u);
  EXPECT_TRUE(his.history->jobs.empty());
  EXPECT_EQ(his.history->cards.at(kCard).used_mib.at(0).values.back(), 4096u);
}

TEST_F(SightTest, AStreamHasHistoryWhenAStepOfItHasEnded) {
  const ClientPtr client = stream(alice(), "/v1/snapshot?every=0.25");
  const ClientPtr without = stream(alice(), "/v1/snapshot?every=0.25&history=0");
  EXPECT_EQ(client->type, "text/event-stream");
  ASSERT_EQ(client->chunks.size(), 1u) << "the first comes at once";
  EXPECT_TRUE(event(client->chunks[0]).history);
  ASSERT_TRUE(until([&] { return client->chunks.size() >= 2; }));
  EXPECT_FALSE(event(client->chunks[1]).history) << "the client has this version";
  const std::size_t before = client->chunks.size();
  clock_.advance(seam::Milliseconds(6'000));
  see();
  ASSERT_TRUE(until([&] { return client->chunks.size() > before; }));
  EXPECT_TRUE(event(client->chunks[before]).history);
  for (const std::string& chunk : without->chunks) EXPECT_FALSE(event(chunk).history);
}

TEST_F(SightTest, ASlowClientIsPassedOverAndAStuckOneDisconnected) {
  const ClientPtr slow = stream(alice(), "/v1/snapshot?every=0.25");
  const ClientPtr quick = stream(alice(), "/v1/snapshot?every=0.25");
  slow->reads = false;
  ASSERT_TRUE(until([&] { return quick->chunks.size() >= 3; }));
  EXPECT_EQ(slow->chunks.size(), 1u);
  EXPECT_TRUE(has(metrics(), "mete_daemon_viewers 2"));
  clock_.advance(seam::Milliseconds(61'000));
  ASSERT_TRUE(until([&] { return slow->closed; }));
  EXPECT_FALSE(quick->closed);
  quick->hang_up();
  clock_.advance(seam::Milliseconds(2'000));
  EXPECT_TRUE(has(metrics(), "mete_daemon_viewers 0"));
}

TEST_F(SightTest, AStreamIsNeitherTooFastNorTooSlow) {
  for (const char* every : {"0.1", "x", "", "1e9", "nan", "-1", "1s"})
    EXPECT_EQ(get(alice(), std::string("/v1/snapshot?every=") + every)->status, 400) << every;
  EXPECT_EQ(get(alice(), "/v1/snapshot?every=0.25")->status, 200);
  EXPECT_EQ(get(alice(), "/v1/snapshot?every=3600")->status, 200);
}

// ---- metrics ----

TEST_F(SightTest, OnlySomeJobsHaveSeriesOfTheirOwn) {
  for (int i = 0; i < 4; ++i) (void)running(alice(), "10G");
  (void)run(alice(), "60G");
  const std::string user = std::to_string(kAliceUid);
  const std::string text = metrics();
  const std::string cap = "mete_job_memory_cap_bytes{job_id=";
  EXPECT_TRUE(has(text, cap + "\"2\",user=\"" + user + "\"} 10737418240"));
  EXPECT_EQ(text.find("job_id=\"3\""), std::string::npos);
  EXPECT_TRUE(has(text, cap + R"("other",user="other"} 21474836480)"));
  EXPECT_TRUE(has(text, R"(mete_jobs{state="running"} 4)"));
  EXPECT_TRUE(has(text, R"(mete_jobs{state="pending"} 1)"));
  EXPECT_TRUE(has(text, R"(mete_queue_jobs{reason="resources"} 1)"));
  EXPECT_EQ(text.find("train"), std::string::npos) << "names of jobs are their users'";
}

TEST_F(SightTest, MetricsAreMadeOnceASecondOrForANewReading) {
  const std::string first = metrics();
  clock_.advance(seam::Milliseconds(900));
  (void)running(alice(), "8G");
  EXPECT_EQ(metrics(), first) << "a busy queue does not make them more often";
  clock_.advance(seam::Milliseconds(101));
  const std::string second = metrics();
  EXPECT_TRUE(has(second, R"(mete_jobs{state="running"} 1)"));
  (void)running(alice(), "8G");
  see();
  EXPECT_TRUE(has(metrics(), R"(mete_jobs{state="running"} 2)"));
}

TEST_F(SightTest, AnOldReadingSaysThatTheCardsCannotBeRead) {
  EXPECT_TRUE(has(metrics(), "mete_daemon_cards_readable 1"));
  clock_.advance(seam::Milliseconds(5'001));
  EXPECT_TRUE(has(metrics(), "mete_daemon_cards_readable 0"));
}

}  // namespace
}  // namespace mete::serve
