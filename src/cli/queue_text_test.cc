// SPDX-License-Identifier: Apache-2.0
// What the queue's verbs say to people, from documents.
#include <gtest/gtest.h>
#include <time.h>

#include <cstdlib>

#include "base/moment.h"
#include "cli/event_text.h"
#include "cli/explain_text.h"
#include "cli/job_change.h"
#include "cli/queue_tables.h"
#include "cli/show_text.h"
#include "cli/stats_text.h"
#include "core/request/gpu.h"
#include "wire/job_text.h"

namespace mete::cli {
namespace {

// 2026-11-15 12:00:00 UTC, which is what the tests' clocks show.
constexpr std::int64_t kNoon = 1'794'744'000'000;

WallTime at(std::int64_t minutes) { return {kNoon + minutes * 60'000}; }

class QueueText : public testing::Test {
 protected:
  void SetUp() override {
    setenv("TZ", "UTC", 1);
    tzset();
  }

  static core::Job job(core::JobState state) {
    core::JobSpec spec;
    spec.name = "train";
    spec.user = "alice";
    spec.request.gpu = *core::parse_gpu("8G");
    spec.command = {"python", "train.py"};
    spec.folder = "/home/alice";
    spec.detached.emplace();
    core::Job job;
    job.id = {12};
    job.spec = spec;
    job.state = state;
    job.submitted = at(-60);
    return job;
  }

  static core::Job ended(core::Outcome outcome, std::optional<int> code,
                         std::optional<int> signal) {
    core::Job job = QueueText::job(core::JobState::kEnded);
    job.outcome = outcome;
    job.ended = at(-5);
    if (code || signal) {
      job.exit.emplace();
      job.exit->code = code;
      job.exit->signal = signal;
    }
    return job;
  }
};

TEST_F(QueueText, MomentsSayAsMuchAsIsNeeded) {
  EXPECT_EQ(moment(at(125), at(0)), "14:05");
  EXPECT_EQ(moment(at(24 * 60), at(0)), "Nov 16 12:00");
  EXPECT_EQ(moment(at(60 * 24 * 60), at(0)), "2027-01-14 12:00");
  EXPECT_EQ(moment_to_the_second({kNoon + 9'000}, at(0)), "12:00:09");
}

TEST_F(QueueText, MomentsAreInTheZoneOfTheirReader) {
  setenv("TZ", "Europe/Berlin", 1);
  tzset();
  EXPECT_EQ(moment(at(0), at(0)), "13:00");
  wire::ExplainDocument document;
  document.at = at(0);
  document.id = {6};
  document.reason = core::Reason::kBegin;
  core::Wait wait;
  wait.reason = core::Reason::kBegin;
  wait.until = at(360);
  document.wait = wait;
  EXPECT_NE(explain_text(document).find("\n  waits for its time, 19:00"), std::string::npos);
  SetUp();
}

TEST_F(QueueText, SinceIsInThePast) {
  EXPECT_EQ(*parse_since("10m", at(0)), at(-10));
  EXPECT_EQ(*parse_since("11:30", at(0)), at(-30));
  EXPECT_EQ(*parse_since("14:05", at(0)), at(125 - 24 * 60));
  EXPECT_EQ(*parse_since("2026-11-14", at(0)), at(-36 * 60));
  const Result<WallTime> bad = parse_since("yesterdayish", at(0));
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.error().hint.find("10m (ago)"), std::string::npos) << bad.error().hint;
  EXPECT_EQ(bad.error().hint.find("tomorrow"), std::string::npos) << bad.error().hint;
}

TEST_F(QueueText, AWaitEndsWithTheCodeOfTheJob) {
  using core::Outcome;
  EXPECT_EQ(wire::exit_code_of_job(ended(Outcome::kOk, 0, {})), 0);
  EXPECT_EQ(wire::exit_code_of_job(ended(Outcome::kFailed, 3, {})), 3);
  EXPECT_EQ(wire::exit_code_of_job(ended(Outcome::kGpuOom, 1, {})), 1);
  EXPECT_EQ(wire::exit_code_of_job(ended(Outcome::kSignal, {}, 9)), 137);
  EXPECT_EQ(wire::exit_code_of_job(ended(Outcome::kTimeout, {}, 15)), 124);
  EXPECT_EQ(wire::exit_code_of_job(ended(Outcome::kDeadline, {}, {})), 124);
  EXPECT_EQ(wire::exit_code_of_job(ended(Outcome::kCancelled, {}, {})), 143);
  EXPECT_EQ(wire::exit_code_of_job(ended(Outcome::kCancelled, 0, {})), 143);
  EXPECT_EQ(wire::exit_code_of_job(ended(Outcome::kCancelled, {}, 9)), 137);
  EXPECT_EQ(wire::exit_code_of_job(ended(Outcome::kLost, {}, {})), 125);
  EXPECT_EQ(wire::exit_code_of_job(ended(Outcome::kDependency, {}, {})), 125);
  EXPECT_EQ(wire::exit_code_of_job(ended(Outcome::kLaunchFailed, 127, {})), 127);
  EXPECT_EQ(wire::exit_code_of_job(ended(Outcome::kEscaped, 0, {})), 125);
}

TEST_F(QueueText, OneSentenceForEachState) {
  wire::JobView view;
  view.job = job(core::JobState::kPending);
  EXPECT_EQ(wire::sentence(view, at(0)), "job 12 waits");
  core::Wait wait;
  wait.room.needs = core::CardNeed{1, *core::parse_gpu("8G"), Bytes::from_gib(8), {}, 0};
  view.wait = wait;
  EXPECT_EQ(wire::sentence(view, at(0)), "job 12 waits: resources: 8 GiB on one card");
  view.job.state = core::JobState::kRunning;
  view.job.started = at(-30);
  EXPECT_EQ(wire::sentence(view, at(0)), "job 12 runs since 11:30");
  view.job = ended(core::Outcome::kFailed, 3, {});
  EXPECT_EQ(wire::sentence(view, at(0)), "job 12 has ended: failed 3 at 11:55");
}

TEST_F(QueueText, ChangesAreCounted) {
  EXPECT_EQ(changed_text({12}, {{12}}, "cancelled"), "job 12 is cancelled");
  EXPECT_EQ(changed_text({12}, {{12, 1}, {12, 2}}, "held"), "2 jobs of 12 are held");
  EXPECT_EQ(changed_text({12}, {{12, 1}}, "held"), "1 job of 12 is held");
  EXPECT_EQ(changed_text({12, 3}, {}, "held"), "job 12_3: nothing to change");
}

TEST_F(QueueText, ShowOfAJobThatMetItsCap) {
  wire::ShowDocument document;
  document.at = at(0);
  core::Job shown = ended(core::Outcome::kGpuOom, 1, {});
  core::JobSpec spec = *shown.spec;
  spec.time_s = 7200;
  spec.after = {{{7}, core::When::kOk}};
  spec.retries = 2;
  shown.spec = spec;
  shown.attempt = 2;
  shown.started = at(-20);
  shown.grant = {{0, "GPU-0", Bytes::from_gib(8), false}};
  shown.exit->peaks = {Bytes::from_gib(8)};
  shown.exit->ran_ms = 900'000;
  shown.attempts = {{1, at(-40), at(-30), core::Outcome::kGpuOom, shown.exit}};
  document.view.job = shown;
  document.log = "/logs/12.log";
  document.environment = {"HOME", "PATH"};
  document.notes = {"it asked for more than 8 GiB\n"};
  document.advice = wire::ShowDocument::Advice{"12G", "it stopped at its cap"};
  EXPECT_EQ(show_text(document),
            "job 12 (train) of alice: ended gpu-oom 1, attempt 2\n"
            "  times       submitted 11:00:00, started 11:40:00, ended 11:55:00, ran 15 min\n"
            "  gpu         8G → 8 GiB\n"
            "              card 0: 8 GiB, peak 8 GiB\n"
            "  command     python train.py\n"
            "  folder      /home/alice\n"
            "  after       7:ok\n"
            "  limits      time 2 h\n"
            "  runs again  up to 2 times after a failure\n"
            "  log         /logs/12.log\n"
            "  variables   2; -o json has their names\n"
            "  attempt 1   gpu-oom 1, 11:20:00 to 11:30:00, peak 8 GiB\n"
            "  note        it asked for more than 8 GiB\\x0a\n"
            "  next time   --gpu 12G: it stopped at its cap");
}

TEST_F(QueueText, ShowOfAnArrayCountsItsJobs) {
  wire::ShowDocument document;
  document.at = at(0);
  document.view.job = job(core::JobState::kPending);
  document.elements = {{"ended", 3}, {"pending", 97}};
  EXPECT_NE(show_text(document).find("\n  elements    3 ended, 97 pending\n"), std::string::npos);
}

TEST_F(QueueText, ExplainNamesPlaceTimeHoldersAndTheWayOut) {
  wire::ExplainDocument document;
  document.at = at(0);
  document.id = {31};
  document.waiting_s = 720;
  document.reason = core::Reason::kResources;
  document.place = 3;
  document.in_line = 7;
  document.forecast = core::Forecast{at(0), at(125), at(150)};
  document.cards.resize(3);
  document.cards[0].needs = Bytes::from_gib(32);
  document.cards[0].free = Bytes::from_gib(20);
  document.cards[0].holders = {{{12}, "alice", Bytes::from_gib(100), at(125), "limit", {}},
                               {{14}, "bob", Bytes::from_gib(9), at(200), "estimate", at(-180)}};
  document.cards[1].index = 1;
  document.cards[1].reserved = {{"carol", at(360), Bytes::from_gib(139)}};
  document.cards[2].index = 2;
  document.cards[2].state = "drained";
  core::Wait wait;
  wait.room.needs = core::CardNeed{1, *core::parse_gpu("32G"), Bytes::from_gib(32), {}, 0};
  wait.room.cards.emplace_back().why = core::InTheWay::kTooFull;
  document.wait = wait;
  document.changes = {{"gpu", "a smaller share", "--gpu 20G", {}},
                      {"job-ends", "bob's job 14 ended", "", core::JobId{14}}};
  EXPECT_EQ(
      explain_text(document),
      "job 31: waiting 12 min · resources · 3rd of 7 in the queue · starts about 14:05, 80% sure "
      "by 14:30\n"
      "  waits for 32 GiB on one card\n"
      "  card 0  needs 32 GiB, 20 GiB free; held by alice's job 12 with 100 GiB (ends by "
      "14:05), bob's job 14 with 9 GiB (ends about 15:20, idle for 3 h)\n"
      "  card 1  139 GiB reserved for carol until 18:00\n"
      "  card 2  drained\n"
      "  would start now  with --gpu 20G (a smaller share)\n"
      "               or  if bob's job 14 ended");
}

TEST_F(QueueText, ExplainNamesWhatIsHeldOutsideGrantsAndNothingOnCardsThatAreNotAskedFor) {
  wire::ExplainDocument document;
  document.at = at(0);
  document.id = {31};
  document.cards.resize(2);
  document.cards[0].needs = Bytes::from_gib(32);
  document.cards[0].free = Bytes::from_gib(20);
  document.cards[0].outside = {{"job 12 of alice", Bytes::from_gib(48), core::JobId{12}},
                               {"process 412 of bob (python)", Bytes::from_gib(3), {}}};
  document.cards[1].index = 1;
  document.cards[1].holders = {{{14}, "bob", Bytes::from_gib(9), {}, "", {}}};
  document.cards[1].text = "not one of those named by --devices";
  const std::string text = explain_text(document);
  EXPECT_NE(
      text.find("  card 0  needs 32 GiB, 20 GiB free; job 12 of alice holds 48 GiB beyond its "
                "grant; process 412 of bob (python) holds 3 GiB\n"),
      std::string::npos)
      << text;
  EXPECT_TRUE(text.ends_with("\n  card 1  not one of those named by --devices")) << text;
}

TEST_F(QueueText, AHeldJobSaysWhatLetsItStart) {
  wire::ExplainDocument document;
  document.at = at(0);
  document.id = {6};
  document.reason = core::Reason::kHeld;
  core::Wait wait;
  wait.reason = core::Reason::kHeld;
  wait.release = core::JobId{6};
  document.wait = wait;
  EXPECT_NE(explain_text(document).find("\n  mete release 6 lets it start"), std::string::npos);
  wire::JobView view;
  view.job = job(core::JobState::kPending);
  view.wait = document.wait;
  EXPECT_EQ(wire::reason_text(view, at(0)), "held: mete release 6 lets it start");
}

TEST_F(QueueText, ExplainOfAJobThatDoesNotWait) {
  wire::ExplainDocument document;
  document.id = {12};
  document.at = at(0);
  document.state = core::JobState::kRunning;
  document.text = "it runs since 11:30";
  EXPECT_EQ(explain_text(document), "job 12 is running: it runs since 11:30")
      << "an older daemon has no more than this";
  document.started = at(-45);
  EXPECT_EQ(explain_text(document), "job 12 is running: it has started at 11:15");
}

TEST_F(QueueText, ExplainOfAnotherUsersJobNamesUserAndShare) {
  wire::ExplainDocument document;
  document.id = {12};
  document.at = at(0);
  document.state = core::JobState::kRunning;
  document.started = at(-45);
  document.user = "alice";
  document.request = *core::parse_gpu("0.4");
  document.grant = {{0, "GPU-0", Bytes::from_gib(32)}};
  EXPECT_EQ(explain_text(document),
            "job 12 of alice (0.4 → 32 GiB, card 0) is running: it has started at 11:15");
  document.state = core::JobState::kPending;
  document.grant.clear();
  EXPECT_TRUE(explain_text(document).starts_with("job 12 of alice (--gpu 0.4"))
      << explain_text(document);
}

TEST_F(QueueText, PlacesAreCountedAsPeopleDo) {
  wire::ExplainDocument document;
  document.id = {1};
  for (const auto& [place, text] : std::map<std::uint64_t, std::string>{
           {1, "1st"}, {2, "2nd"}, {11, "11th"}, {13, "13th"}, {22, "22nd"}, {103, "103rd"}}) {
    document.place = place;
    EXPECT_NE(explain_text(document).find(" " + text + " in the queue"), std::string::npos)
        << place;
  }
}

std::string line_of(const core::Happened& what) {
  const std::string data = wire::encode(what, 1);
  const std::string job = wire::job_of(what);
  const Result<wire::EventDocument> event =
      wire::document_of({81, at(0), core::type_of(what), job, data});
  return event ? event_text(*event, at(0)) : event.error().message;
}

TEST_F(QueueText, EventsAreOneLineEach) {
  core::JobEnded end{{12, 3}, core::Outcome::kFailed, {}};
  end.exit.emplace();
  end.exit->code = 3;
  end.exit->note = "it ran beside its cap";
  EXPECT_EQ(line_of(end),
            "    81  12:00:00  job.ended      12_3    failed 3: it ran beside its cap");
  EXPECT_EQ(line_of(core::JobSubmitted{{12}, job(core::JobState::kPending).spec, {}}),
            "    81  12:00:00  job.submitted  12      alice (train) asks for 8G");
  EXPECT_EQ(line_of(core::JobGranted{{12}, {{0, "GPU-0", Bytes::from_gib(8), false}}}),
            "    81  12:00:00  job.granted    12      8 GiB on card 0");
  EXPECT_EQ(line_of(core::JobHeld{{12}}), "    81  12:00:00  job.held       12");
  EXPECT_EQ(line_of(core::CardDrained{"GPU-0", "root"}),
            "    81  12:00:00  card.drained           GPU-0 by root");
}

TEST_F(QueueText, ANewerDaemonsEventHasALineToo) {
  const wire::EventDocument event{81, at(0), "job.parked-on-the-moon", "12_3", 1, "{}"};
  EXPECT_EQ(event_text(event, at(0)), "    81  12:00:00  job.parked-on-the-moon  12_3");
}

TEST_F(QueueText, StatsInAFewLines) {
  wire::StatsDocument document;
  document.states = {{"ended", 100}, {"pending", 3}};
  document.outcomes = {{"failed", 2}, {"ok", 98}};
  document.waits = {100, 60, 3600, 7200};
  document.forecasts = {20, 16, 1250};
  document.users = {{"alice", 3, 0, 100, 1024 * 3600 * 3}};
  EXPECT_EQ(stats_text(document),
            "jobs       100 ended, 3 pending\n"
            "outcomes   2 failed, 98 ok\n"
            "waits      half of 100 jobs within 1 min, 90% within 1 h, the longest 2 h\n"
            "forecasts  16 of 20 jobs started by the time they were told (80%; it is meant to be "
            "80%), margins are widened 1.25 times\n"
            "\n"
            "USER   PENDING  RUNNING  ENDED  GIB-HOURS\n"
            "alice        3        0    100        3.0");
  EXPECT_EQ(eta_text({}), "no job has started yet that was told when it would");
}

TEST_F(QueueText, AParkedJobSaysWhereItsMemoryIs) {
  wire::JobView view;
  view.job.id = {12};
  view.job.state = core::JobState::kParked;
  view.job.grant = {{3, "GPU-3", Bytes::from_gib(8), false}};
  EXPECT_EQ(wire::park_text(view.job), "");
  view.job.park.emplace();
  view.job.park->cause = core::ParkCause::kPreempted;
  view.job.park->for_job = core::JobId{14};
  view.job.park->held = {Bytes::from_mib(580)};
  view.job.park->moved = Bytes::from_gib(7);
  EXPECT_EQ(wire::reason_text(view, at(0)),
            "7 GiB in host memory, 580 MiB still on card 3, for job 14");
  view.job.park->on_disk = Bytes::from_gib(2);
  EXPECT_EQ(wire::park_text(view.job),
            "5 GiB in host memory, 2 GiB on disk, 580 MiB still on card 3, for job 14");
  view.job.park->on_disk = view.job.park->moved;
  EXPECT_EQ(wire::park_text(view.job), "7 GiB on disk, 580 MiB still on card 3, for job 14");
  view.job.park->on_disk = Bytes();
  core::Wait wait;
  wait.room.returns = true;
  view.wait = wait;
  EXPECT_EQ(
      wire::reason_text(view, at(0)),
      "7 GiB in host memory, 580 MiB still on card 3, for job 14; waits for its turn to come back");
}

TEST_F(QueueText, QuotasShowWhatIsUsedOfThem) {
  wire::QuotaDocument document;
  document.everybody.running = 4;
  wire::QuotaDocument::User alice;
  alice.user = "alice";
  alice.own.cards = 2;
  alice.limits.cards = 2;
  alice.limits.running = 4;
  alice.held = {1, Bytes::from_gib(8), 1};
  alice.jobs = 7;
  alice.disk = Bytes::from_mib(3);
  document.users = {alice};
  EXPECT_EQ(quota_table(document, {}),
            "USER        CARDS  GPU MEMORY    RUNNING  JOBS   LOGS  FROM\n"
            "everybody       -           -  at most 4     -      -  default\n"
            "alice      1 of 2       8 GiB     1 of 4     7  3 MiB  own");
}

TEST_F(QueueText, ReservationsSayWhoseAndWhen) {
  wire::ReservationsDocument document;
  document.at = at(0);
  document.reservations = {
      {3,
       "carol",
       at(360),
       at(600),
       {{0, "GPU-0", Bytes::from_gib(139), true}, {1, "GPU-1", Bytes::from_gib(20), false}},
       "root"}};
  EXPECT_EQ(reservation_table(document, {}),
            "ID  USER   FROM   UNTIL  CARDS                BY\n"
            " 3  carol  18:00  22:00  0: whole, 1: 20 GiB  root");
}

}  // namespace
}  // namespace mete::cli
