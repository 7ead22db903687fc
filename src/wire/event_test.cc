// SPDX-License-Identifier: Apache-2.0
// The log outlives the program that wrote it. Every file of tests/data/events is a line that some
// version has written; this one must read all of them, and write what it says it writes. A change
// of the format adds a file and leaves the old one.
#include "wire/event.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <set>

#include "wire/test/full.h"

namespace mete::wire {
namespace {

using core::Happened;
using core::JobId;

core::JobSpec old_spec() {
  core::JobSpec spec;
  spec.name = "train";
  spec.uid = 1000;
  spec.user = "alice";
  spec.request.gpu = *core::parse_gpu("2x8G");
  spec.request.devices = {"3", "GPU-01234567"};
  spec.request.gpu_type = "H200";
  spec.request.procs = 4;
  spec.request.or_cpu = true;
  spec.request.cpus = 8;
  spec.request.ram = Bytes::from_gib(16);
  spec.command = {"python", "train.py", "--name", "caf\xc3\xa9 \"x\"\n"};
  spec.folder = "/home/alice";
  spec.time_s = 3600;
  return spec;
}

core::JobSpec plain_spec() {
  core::JobSpec spec;
  spec.name = "true";
  spec.command = {"true"};
  spec.folder = "/";
  return spec;
}

core::JobSpec where_spec() {
  core::JobSpec spec = plain_spec();
  spec.request.gpu = *core::parse_gpu("8G");
  spec.request.where =
      *core::Query::parse("attribute:gpu.type == 'H200' and runningTasksCount < 3");
  return spec;
}

// All fields that existed before --where.
core::JobSpec full_before_where() {
  core::JobSpec spec = full_detached_spec();
  spec.request.where.reset();
  spec.idle_s.reset();
  return spec;
}

core::Exit exit_of(std::optional<int> code, std::optional<int> signal) {
  core::Exit exit;
  exit.code = code;
  exit.signal = signal;
  return exit;
}

core::Exit old_exit() {
  core::Exit exit = exit_of(1, std::nullopt);
  exit.not_started = exit.timed_out = exit.gpu_oom = true;
  exit.peaks = {Bytes::from_gib(8), Bytes::from_bytes(UINT64_MAX)};
  return exit;
}

core::JobSpec long_spec() {
  core::JobSpec spec;
  spec.name = "sum";
  spec.command = {"sum", "7777…"};
  spec.command_content = std::string(64, 'c');
  spec.command_bytes = 90'000;
  spec.folder = "/";
  spec.detached = core::Detached{};
  spec.detached->environment = std::string(64, 'a');
  spec.detached->environment_bytes = 2'048;
  spec.detached->script = std::string(64, 'b');
  spec.detached->script_bytes = 300;
  spec.detached->umask = 18;
  return spec;
}

core::JobSpec script_spec() {
  core::JobSpec spec = plain_spec();
  spec.detached.emplace();
  spec.detached->environment = std::string(64, 'a');
  spec.detached->script = std::string(64, 'b');
  spec.detached->umask = 022;
  return spec;
}

// As it was before parking existed.
core::JobSpec array_spec() {
  core::JobSpec spec = full_before_where();
  spec.preemptible.reset();
  spec.no_preempt = spec.shed = false;
  spec.notify = {};
  return spec;
}

core::JobSpec park_spec() {
  core::JobSpec spec = full_before_where();
  spec.notify = {};
  return spec;
}

core::JobSpec key_spec() {
  core::JobSpec spec = plain_spec();
  spec.key = "5f0c1d2e3b4a59687786a5b4c3d2e1f0";
  return spec;
}

core::JobSpec idle_spec() {
  core::JobSpec spec = plain_spec();
  spec.idle_s = 600;
  return spec;
}

// ---- sweeps ------------------------------------------------------------------------------------

core::JobSpec trial_spec() {
  core::JobSpec spec = plain_spec();
  spec.trial = full_trial_spec().trial;
  return spec;
}

template <class Change>
std::shared_ptr<const core::sweep::Plan> plan_with(const Change& change) {
  core::sweep::Plan plan;
  plan.name = "grid";
  plan.space = *core::sweep::Space::make(
      {{"lr", std::vector{core::sweep::guess("0.1"), core::sweep::guess("1e-3")}}});
  plan.sampling.method = core::sweep::Method::kGrid;
  plan.job = plain_spec();
  change(plan);
  return std::make_shared<const core::sweep::Plan>(std::move(plan));
}

std::shared_ptr<const core::sweep::Plan> plain_plan() {
  return plan_with([](core::sweep::Plan&) {});
}

core::sweep::Point drawn_point() {
  return {core::sweep::guess("1e-3"), std::nullopt, core::sweep::of_text(kOddBytes)};
}

core::sweep::Judged full_result() {
  return {3,
          core::sweep::TrialState::kPending,
          full_exit().metrics,
          9,
          Bytes::from_gib(7),
          Bytes::from_gib(8),
          kOddText};
}

// File (its name begins with the type) and meaning.
const std::map<std::string, Happened>& golden() {
  using namespace core::sweep;  // NOLINT: the steps of sweeps
  static const std::map<std::string, Happened> all = {
      {"job.submitted-full.json", core::JobSubmitted{{12}, old_spec(), core::ProcessRef{412, 99}}},
      {"job.submitted-plain.json", core::JobSubmitted{{1}, plain_spec(), {}}},
      {"job.granted-cards.json",
       core::JobGranted{{12},
                        {{3, "GPU-01234567-89ab-cdef-fedc-ba9876543210", Bytes::from_gib(8), false},
                         {0, "GPU-0", Bytes::from_gib(140), true}}}},
      {"job.granted-none.json", core::JobGranted{{1}, {}}},
      {"job.started-one.json", core::JobStarted{{12}, {413, UINT64_MAX}, 0}},
      {"job.started-ago.json", core::JobStarted{{12}, {413, 98765}, 1500}},
      {"job.stopping-cancelled.json", core::JobStopping{{12}, core::Outcome::kCancelled}},
      {"job.stopping-lost.json", core::JobStopping{{12}, core::Outcome::kLost}},
      {"job.ended-ok.json", core::JobEnded{{12}, core::Outcome::kOk, exit_of(0, std::nullopt)}},
      {"job.ended-signal.json",
       core::JobEnded{{12}, core::Outcome::kSignal, exit_of(std::nullopt, 9)}},
      {"job.ended-full.json", core::JobEnded{{12}, core::Outcome::kLaunchFailed, old_exit()}},
      {"job.ended-cancelled.json", core::JobEnded{{12}, core::Outcome::kCancelled, {}}},
      {"job.submitted-array.json", core::JobSubmitted{{13}, array_spec(), {}}},
      {"job.submitted-park.json", core::JobSubmitted{{15}, park_spec(), {}}},
      {"job.submitted-notify.json", core::JobSubmitted{{16}, full_before_where(), {}}},
      {"job.submitted-where.json", core::JobSubmitted{{17}, where_spec(), {}}},
      {"job.submitted-key.json", core::JobSubmitted{{18}, key_spec(), {}}},
      {"job.submitted-idle.json", core::JobSubmitted{{19}, idle_spec(), {}}},
      {"job.stopping-note.json",
       core::JobStopping{{12}, core::Outcome::kEscaped, false, "ended because of that"}},
      {"escape.seen-one.json",
       core::EscapeSeen{
           {12}, {412, 98765, "GPU-0", 0, Bytes::from_gib(3), Bytes::from_mib(518), "python"}}},
      {"job.idle-seen.json", core::JobIdle{{12}, {{1'800'000'000'123}, core::IdleStep::kSeen}}},
      {"job.idle-notified.json",
       core::JobIdle{{13, 3}, {{1'800'000'000'123}, core::IdleStep::kNotified}}},
      {"job.active-one.json", core::JobActive{{12}}},
      {"job.parked-asked.json",
       core::JobParked{{12}, core::JobState::kParking, core::ParkCause::kAsked, {}, "alice", true}},
      {"job.parked-preempted.json", core::JobParked{{13, 3},
                                                    core::JobState::kParking,
                                                    core::ParkCause::kPreempted,
                                                    core::JobId{14},
                                                    "",
                                                    false}},
      {"job.parked-done.json", core::JobParked{{12},
                                               core::JobState::kParked,
                                               core::ParkCause::kAsked,
                                               {},
                                               "",
                                               false,
                                               {Bytes::from_mib(518), Bytes()},
                                               Bytes::from_gib(55),
                                               "the card had no room"}},
      {"job.parked-spilled.json", core::JobParked{{12},
                                                  core::JobState::kParked,
                                                  core::ParkCause::kAsked,
                                                  {},
                                                  "",
                                                  false,
                                                  {Bytes::from_mib(518)},
                                                  Bytes::from_gib(55),
                                                  "",
                                                  false,
                                                  Bytes::from_gib(15)}},
      {"job.unparked-wanted.json", core::JobUnparked{{12}, core::JobState::kParked}},
      {"job.unparked-back.json", core::JobUnparked{{12}, core::JobState::kUnparking}},
      {"job.unparked-refused.json",
       core::JobUnparked{{12}, core::JobState::kRunning, "it has managed memory", true}},
      {"job.grown-more.json", core::JobGrown{{12}, {Bytes::from_gib(9), Bytes::from_gib(8)}}},
      {"job.grown-asked.json", core::JobGrown{{12}, {}, true}},
      {"job.submitted-script.json", core::JobSubmitted{{14}, script_spec(), {}}},
      {"job.submitted-long.json", core::JobSubmitted{{15}, long_spec(), {}}},
      {"job.granted-element.json", core::JobGranted{{13, 0}, {}}},
      {"job.started-keeper.json",
       core::JobStarted{{13, 3}, {413, 98765}, 0, core::ProcessRef{412, 98760}}},
      {"job.stopping-requeue.json", core::JobStopping{{12}, core::Outcome::kCancelled, true}},
      {"job.ended-more.json", core::JobEnded{{12}, core::Outcome::kRamOom, exit_without_metrics()}},
      {"job.requeued-plain.json", core::JobRequeued{{12}, core::Outcome::kLost, {}, {}, {}}},
      {"job.requeued-full.json", core::JobRequeued{{13, 3},
                                                   core::Outcome::kGpuOom,
                                                   exit_of(1, std::nullopt),
                                                   *core::parse_gpu("12G"),
                                                   WallTime{1'800'000'000'123}}},
      {"job.ungranted-one.json", core::JobUngranted{{13, 3}}},
      {"job.ungranted-later.json",
       core::JobUngranted{{13, 3}, "mete-keeper is missing", WallTime{1'800'000'000'123}}},
      {"job.held-one.json", core::JobHeld{{12}}},
      {"job.released-one.json", core::JobReleased{{12}}},
      {"job.priority-one.json", core::JobPriority{{12}, -5}},
      {"job.forecast-one.json",
       core::JobForecast{{12}, {{1'800'000'000'123}, {1'800'000'060'000}, {1'800'000'120'000}}}},
      {"card.drained-one.json", core::CardDrained{"GPU-0", "root"}},
      {"card.undrained-one.json", core::CardUndrained{"GPU-0"}},
      {"card.reserved-one.json", core::Reserved{full_reservation()}},
      {"card.unreserved-one.json", core::Unreserved{3}},
      {"quota.set-full.json", core::QuotaSet{"alice", full_quota()}},
      {"quota.set-none.json", core::QuotaSet{"", {}}},
      {"machine.booted-one.json", core::Booted{"0c1f5b9e-7a3d-4c55-9f0e-2f6d1a8b7c33"}},
      {"store.repaired-one.json", core::Repaired{7, 41}},
      {"card.lost-one.json", core::CardLost{"GPU-0"}},
      {"card.back-one.json", core::CardBack{"GPU-0"}},
      {"job.submitted-trial.json", core::JobSubmitted{{20}, trial_spec(), {}}},
      {"job.ended-metrics.json", core::JobEnded{{20}, core::Outcome::kOk, full_exit()}},
      {"sweep.started-plain.json", core::SweepStarted{1, plain_plan()}},
      {"sweep.started-full.json",
       core::SweepStarted{UINT64_MAX, std::make_shared<const Plan>(full_sweep_plan())}},
      {"sweep.changed-paused.json", core::SweepChanged{1, SweepState::kPaused}},
      {"sweep.changed-extended.json",
       core::SweepChanged{1, SweepState::kRunning,
                          plan_with([](Plan& plan) { plan.sampling.trials = 40; })}},
      {"sweep.removed-one.json", core::SweepRemoved{1}},
      {"sweep.trial-drawn.json",
       core::SweepTrial{1, {3, drawn_point(), UINT64_MAX, Bytes::from_gib(8), {20}}}},
      {"sweep.trial-again.json", core::SweepTrial{1, {3, {}, 0, {}, {21}}}},
      {"sweep.reported-two.json",
       core::SweepReported{1, {3, {{UINT64_MAX, full_exit().metrics}, {{}, {{"acc", 0.5}}}}}}},
      {"sweep.result-ok.json", core::SweepResult{1, {3, TrialState::kOk}}},
      {"sweep.result-again.json", core::SweepResult{1, full_result()}},
      {"sweep.best-one.json", core::SweepBest{1, {{3, -1e-300}}}},
      {"sweep.skipped-one.json", core::SweepSkipped{1, {UINT64_MAX}}},
      {"sweep.reduced-none.json", core::SweepReduced{1, {20, {}}}},
      {"sweep.reduced-value.json",
       core::SweepReduced{1, {20, Dropped{2, of_text(kOddBytes), -0.75}}}},
      {"sweep.ending-stopped.json", core::SweepEnding{1, {3, Ending::kStopped, kOddText}}},
      {"sweep.ending-finished.json", core::SweepEnding{1, {3, Ending::kFinished}}},
      {"sweep.ending-again.json", core::SweepEnding{1, {3, Ending::kAgain}}},
      {"sweep.ended-one.json", core::SweepEnded{1, {kOddText}}},
  };
  return all;
}

std::filesystem::path folder() {
  const char* root = std::getenv("METE_SOURCE_DIR");
  return std::filesystem::path(root == nullptr ? "." : root) / "tests/data/events";
}

std::string type_in(const std::string& file) { return file.substr(0, file.find('-')); }

TEST(Events, AreReadAndWrittenAsPinned) {
  for (const auto& [name, what] : golden()) {
    std::ifstream file(folder() / name);
    ASSERT_TRUE(file) << folder() / name << " is missing; it would say: " << encode(what);
    std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    ASSERT_FALSE(text.empty());
    text.pop_back();  // the newline
    const Result<Happened> read = decode_event(type_in(name), text);
    ASSERT_TRUE(read.ok()) << name << ": " << read.error().message;
    EXPECT_EQ(*read, what) << name;
    EXPECT_EQ(encode(what), text) << name;
    EXPECT_EQ(core::type_of(what), type_in(name));
  }
}

TEST(Events, EveryPinnedFileIsLookedAt) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    EXPECT_TRUE(golden().contains(entry.path().filename().string())) << entry.path();
    ++files;
  }
  EXPECT_EQ(files, golden().size());
}

TEST(Events, EveryKindIsPinned) {
  std::set<std::size_t> kinds;
  for (const auto& [name, what] : golden()) kinds.insert(what.index());
  EXPECT_EQ(kinds.size(), std::variant_size_v<Happened>);
}

TEST(Events, SayWhichJobTheyAreAbout) {
  EXPECT_EQ(job_of(core::JobStopping{{12}, core::Outcome::kLost}), "12");
  EXPECT_EQ(job_of(core::JobHeld{{12, 3}}), "12_3");
  EXPECT_EQ(job_of(core::CardLost{"GPU-0"}), "");
  EXPECT_EQ(job_of(core::Unreserved{12}), "") << "that is no job's number";
  EXPECT_EQ(job_of(core::SweepTrial{1, {3, {}, 0, {}, {20}}}), "") << "about the sweep";
}

TEST(Events, SayWhichSweepTheyAreAbout) {
  for (const auto& [name, what] : golden()) {
    const bool of_sweep = core::type_of(what).starts_with("sweep.");
    EXPECT_EQ(sweep_of(encode(what)).has_value(), of_sweep) << name;
  }
  EXPECT_EQ(sweep_of(encode(core::SweepRemoved{UINT64_MAX})), UINT64_MAX);
  for (const char* text : {"", "[]", "{}", R"({"sweep":-1})", R"({"sweep":"1"})", "torn"})
    EXPECT_EQ(sweep_of(text), std::nullopt) << text;
}

TEST(Events, UnknownFieldsAreIgnoredAndUnknownTypesAreNot) {
  EXPECT_EQ(*decode_event("card.lost", R"({"card":"GPU-0","why":["new"]})"),
            Happened(core::CardLost{"GPU-0"}));
  EXPECT_EQ(decode_event("job.abducted", R"({"id":"1"})").error().code, ErrorCode::kUnsupported);
}

TEST(Events, WrongKindsAreRefused) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"job.submitted",
       R"({"id":"0","spec":{"name":"a","command":[],"uid":1,"user":"u","request":{}}})"},
      {"job.submitted", R"({"id":"1","spec":{"name":"a","command":[],"request":{}}})"},
      {"job.submitted", R"({"id":"1"})"},
      {"job.granted", R"({"id":12,"grant":[]})"},
      {"job.granted", R"({"id":"12","grant":[{"card":"GPU-0","index":4294967296,"bytes":1}]})"},
      {"job.granted", R"({"id":"12","grant":[{"card":"GPU-0","index":0,"bytes":-1}]})"},
      {"job.started", R"({"id":"12"})"},
      {"job.started", R"({"id":"12","program":{"pid":0,"start_ticks":1}})"},
      {"job.started", R"({"id":"12","program":{"pid":1,"start_ticks":1},"ago_ms":1000000000001})"},
      {"job.stopping", R"({"id":"12","why":"boredom"})"},
      {"job.ended", R"({"id":"12"})"},
      {"job.ended", R"({"id":"12","outcome":"ok","exit":[]})"},
      {"job.submitted",
       R"({"id":"1","spec":{"name":"a","command":[],"uid":1,"user":"u","request":{},"detached":{}}})"},
      {"job.requeued", R"({"id":"12","outcome":"lost","gpu":"much"})"},
      {"job.requeued", R"({"id":"12","outcome":"lost","not_before":"later"})"},
      {"job.held", R"({})"},
      {"job.held", R"({"id":"12_x"})"},
      {"job.priority", R"({"id":"12"})"},
      {"job.forecast", R"({"id":"12","forecast":{}})"},
      {"card.drained", R"({"card":"GPU-0"})"},
      {"card.reserved", R"({"reservation":{"id":"0"}})"},
      {"card.unreserved", R"({"reservation":3})"},
      {"card.unreserved", R"({"reservation":"0"})"},
      {"quota.set", R"({"user":"alice"})"},
      {"quota.set", R"({"user":"alice","quota":{"cards":-1}})"},
      {"machine.booted", R"({})"},
      {"store.repaired", R"({})"},
      {"card.lost", R"({"card":0})"},
      {"card.back", R"([])"},
      {"sweep.started", R"({"sweep":1})"},
      {"sweep.started", R"({"sweep":1,"plan":{"name":"a","sampler":"grid","params":[]}})"},
      {"sweep.started", R"({"sweep":-1,"plan":{},"spec":{}})"},
      {"sweep.changed", R"({"sweep":1})"},
      {"sweep.changed", R"({"sweep":1,"state":"asleep"})"},
      {"sweep.changed", R"({"sweep":1,"state":"running","plan":{}})"},
      {"sweep.removed", R"({})"},
      {"sweep.trial", R"({"sweep":1,"n":3})"},
      {"sweep.trial", R"({"sweep":1,"n":3,"job":"20","drawn":[7]})"},
      {"sweep.trial", R"({"sweep":1,"n":3,"job":"20","drawn":[{"value":"1","kind":"int"}]})"},
      {"sweep.reported", R"({"sweep":1,"points":[]})"},
      {"sweep.reported", R"({"sweep":1,"n":3,"points":[{"metrics":[{"value":1}]}]})"},
      {"sweep.reported", R"({"sweep":1,"n":3,"points":[{"step":-1,"metrics":[]}]})"},
      {"sweep.result", R"({"sweep":1,"n":3})"},
      {"sweep.result", R"({"sweep":1,"n":3,"state":"won"})"},
      {"sweep.best", R"({"sweep":1,"n":3})"},
      {"sweep.skipped", R"({"sweep":1})"},
      {"sweep.reduced", R"({"sweep":1,"results":20,"dropped":{"parameter":2}})"},
      {"sweep.ending", R"({"sweep":1,"n":3,"ending":"soon"})"},
      {"sweep.ended", R"({"sweep":1})"},
      {"card.back", ""}};
  for (const auto& [type, text] : cases) EXPECT_FALSE(decode_event(type, text).ok()) << text;
}

TEST(Events, TheAttemptIsForReadersAndNotForReplay) {
  const Happened what = core::JobStopping{{12}, core::Outcome::kCancelled};
  const std::string text = encode(what, 3);
  EXPECT_EQ(text, R"({"id":"12","attempt":3,"why":"cancelled"})");
  EXPECT_EQ(*decode_event("job.stopping", text), what);
}

// ---- for readers -------------------------------------------------------------------------------

TEST(EventDocument, IsMadeFromTheLog) {
  const std::string data = encode(core::JobStopping{{12, 3}, core::Outcome::kCancelled}, 2);
  const Result<EventDocument> document = document_of({81, {0}, "job.stopping", "12_3", data});
  ASSERT_TRUE(document.ok()) << document.error().message;
  EXPECT_EQ(encode(*document),
            R"({"schema":"mete.event/1","seq":81,"at":"1970-01-01T00:00:00.000Z",)"
            R"("type":"job.stopping","job":"12_3","attempt":2,"data":{"why":"cancelled"}})");
  EXPECT_EQ(encode(*document_of({82, {0}, "card.lost", "", R"({"card":"GPU-0"})"})),
            R"({"schema":"mete.event/1","seq":82,"at":"1970-01-01T00:00:00.000Z",)"
            R"("type":"card.lost","data":{"card":"GPU-0"}})");
}

TEST(EventDocument, DoesNotTellWhatIsTheDaemons) {
  const std::string data = encode(core::JobSubmitted{{13}, full_detached_spec(), {}});
  const Result<EventDocument> document = document_of({1, {0}, "job.submitted", "13", data});
  ASSERT_TRUE(document.ok()) << document.error().message;
  for (const char* secret : {"aaaa", "bbbb", "groups", "4294967293", "umask", "0:1:-"})
    EXPECT_EQ(document->data.find(secret), std::string::npos) << secret;
  EXPECT_NE(document->data.find("\"tty\":true"), std::string::npos);
  EXPECT_NE(document->data.find("caf\xef\xbf\xbd "), std::string::npos) << "for people to read";
  EXPECT_EQ(document->data.find("hex"), std::string::npos);
}

TEST(EventDocument, OfASweepDoesNotTellWhatIsTheDaemonsEither) {
  const std::string data =
      encode(core::SweepStarted{1, std::make_shared<const core::sweep::Plan>(full_sweep_plan())});
  const Result<EventDocument> document = document_of({1, {0}, "sweep.started", "", data});
  ASSERT_TRUE(document.ok()) << document.error().message;
  for (const char* secret : {"aaaa", "bbbb", "groups", "4294967293", "umask", "secret?x=1"})
    EXPECT_EQ(document->data.find(secret), std::string::npos) << secret;
  EXPECT_NE(document->data.find("caf\xef\xbf\xbd "), std::string::npos) << "for people to read";
}

TEST(EventDocument, OfAnythingInTheLogIsValid) {
  for (const auto& [name, what] : golden()) {
    const std::string data = encode(what, 1);
    const Result<EventDocument> document =
        document_of({1, {0}, core::type_of(what), job_of(what), data});
    ASSERT_TRUE(document.ok()) << name;
    const Result<EventDocument> again = decode_event_document(encode(*document));
    ASSERT_TRUE(again.ok()) << name << ": " << again.error().message;
    EXPECT_EQ(*again, *document) << name;
  }
  EXPECT_FALSE(document_of({1, {0}, "card.lost", "", "[]"}).ok());
  EXPECT_FALSE(document_of({1, {0}, "card.lost", "", "torn"}).ok());
}

TEST(EventDocument, SaysEnoughToShowWhatItIsAbout) {
  for (const auto& [name, what] : golden()) {
    const Result<EventDocument> document =
        document_of({81, {0}, core::type_of(what), job_of(what), encode(what)});
    ASSERT_TRUE(document.ok()) << name;
    const Result<Happened> again = decode_event(*document);
    ASSERT_TRUE(again.ok()) << name << ": " << again.error().message;
    EXPECT_EQ(again->index(), what.index()) << name;
    EXPECT_EQ(job_of(*again), job_of(what)) << name;
  }
  EXPECT_FALSE(decode_event(EventDocument{1, {0}, "job.held", "12", {}, "[]"}).ok());
}

TEST(EventsDocument, ReadsBack) {
  EventsDocument document{{1'800'000'000'123}, {}, 83};
  document.events = {{81, {5}, "job.held", "12", 1, R"({"a":[1,"b"]})"},
                     {82, {6}, "x", "", {}, "{}"}};
  const std::string text = encode(document);
  const Result<EventsDocument> again = decode_events(text);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->at, document.at);
  EXPECT_EQ(again->events, document.events);
  EXPECT_EQ(again->next, 83u);
  for (const auto& [what, with] : std::vector<std::pair<std::string, std::string>>{
           {"\"seq\":81", "\"seq\":-1"},
           {"\"data\":{}", "\"data\":7"},
           {"\"next\":83", "\"next\":null"},
           {"\"type\":\"x\"", "\"type\":7"},
           {"\"attempt\":1", "\"attempt\":4294967296"}})
    EXPECT_FALSE(decode_events(replaced(text, what, with)).ok()) << with;
}

}  // namespace
}  // namespace mete::wire
