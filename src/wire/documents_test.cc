// SPDX-License-Identifier: Apache-2.0
// Documents as users and their scripts get them: each file of tests/data/documents is written by
// this version byte for byte, and tests/checks/documents.py finds it valid by the schema that its
// name begins with.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "core/job/others.h"
#include "wire/event.h"
#include "wire/explain.h"
#include "wire/notification.h"
#include "wire/queue.h"
#include "wire/show.h"
#include "wire/snapshot.h"
#include "wire/submit.h"
#include "wire/sweep.h"
#include "wire/test/full.h"
#include "wire/wait_text.h"

namespace mete::wire {
namespace {

using core::JobId;
using core::JobState;

constexpr WallTime kNow{1'794'733'200'000};
constexpr const char* kCard = "GPU-5e4d8069-ca64-5466-a499-634a7163d8aa";

WallTime after(std::int64_t seconds) { return {kNow.ms + seconds * 1000}; }

core::JobSpec train() {
  core::JobSpec spec;
  spec.name = "train";
  spec.uid = 1000;
  spec.user = "alice";
  spec.request.gpu = *core::parse_gpu("0.4");
  spec.command = {"python", "train.py", "caf\xe9"};
  spec.folder = "/home/alice";
  spec.array = *core::parse_array("0-99%4");
  spec.after = {{JobId{7}, core::When::kOk}, {JobId{8, 1}, core::When::kAny}};
  spec.time_s = 3600;
  spec.request.procs = 2;
  spec.request.gpu_type = "H200";
  spec.request.where = *core::Query::parse("attribute:gpu.free >= 16G");
  spec.request.devices = {"0"};
  spec.request.cpus = 4;
  spec.request.ram = Bytes::from_gib(16);
  spec.request.or_cpu = true;
  spec.retries = 2;
  spec.retry_gpu_pct = 150;
  spec.requeue = true;
  spec.begin = kNow;
  spec.deadline = after(7200);
  spec.labels = {{"sweep", "7"}};
  spec.detached = full_detached();
  return spec;
}

// For one card, on which a job and a process hold too much.
core::Wait waits() {
  core::CardWait card;
  card.why = core::InTheWay::kTooFull;
  card.needed = Bytes::from_gib(8);
  card.free = Bytes::from_gib(3);
  card.holders = {{{9}, "bob", "", Bytes::from_gib(134), false, false, false, after(90)}};
  card.outside = {{"process 412 of dave (python)", Bytes::from_gib(2), {}, "dave", 412}};
  core::Wait wait;
  wait.holders = {JobId{9}};
  wait.room.needs = core::CardNeed{1, *core::parse_gpu("8G"), Bytes::from_gib(8), {}, 0};
  wait.room.cards = {card};
  return wait;
}

JobView pending() {
  JobView view;
  view.job.id = {12, 3};
  view.job.spec = train();
  view.job.submitted = kNow;
  view.job.priority = -5;
  view.job.held = true;
  view.job.not_before = after(40);
  view.job.unmet = {{JobId{8, 1}, core::When::kAny}};
  view.wait = waits();
  view.place = 2;
  view.forecast = core::Forecast{kNow, after(60), after(300)};
  return view;
}

JobView running() {
  JobView view = pending();
  view.wait.reset();
  view.forecast.reset();
  view.job.unmet.clear();
  view.job.held = false;
  view.job.not_before.reset();
  view.job.state = JobState::kRunning;
  view.job.started = after(5);
  view.job.grant = {{0, kCard, Bytes::from_gib(8), false}};
  view.used = {Bytes::from_gib(3)};
  view.idle_since = after(10);
  return view;
}

// As another user sees it.
JobView row() {
  JobView view = running();
  core::SharedSpec last;
  view.job = core::row_of(view.job, core::Others::kRows, last);
  view.row = true;
  return view;
}

// A job that made room for another, and one that could not.
JobView parked() {
  JobView view = running();
  view.idle_since.reset();
  view.job.state = JobState::kParked;
  view.job.grant[0].least = Bytes::from_gib(4);
  view.job.grant[0].most = Bytes::from_gib(20);
  view.job.growth = core::Growth::kTight;
  view.job.park = core::Park{
      core::ParkCause::kPreempted, JobId{14, 2},       "root",  true,     true, after(12),
      {Bytes::from_mib(580)},      Bytes::from_gib(7), Bytes(), "no room"};
  return view;
}
JobView unparkable() {
  JobView view = running();
  view.job.unparkable = core::ParkRefusal{after(12), "it has managed memory", true};
  return view;
}

JobView ended() {
  JobView view = running();
  view.idle_since.reset();
  view.job.state = JobState::kEnded;
  view.job.attempt = 2;
  view.job.ended = after(20);
  view.job.outcome = core::Outcome::kGpuOom;
  view.job.exit.emplace();
  view.job.exit->code = 1;
  view.job.exit->peaks = {Bytes::from_gib(8)};
  view.job.exit->ran_ms = 15'000;
  view.job.exit->note = "asked for 9 GiB of 8 GiB";
  view.job.gpu = *core::parse_gpu("60%");
  core::Attempt first{1, after(2), after(3), core::Outcome::kSignal, core::Exit{}};
  first.exit->signal = 9;
  first.exit->peaks = {Bytes::from_gib(5)};
  view.job.attempts = {first};
  return view;
}

// A `mete run` without a request.
JobView run() {
  JobView view{plain_job()};
  view.job.state = JobState::kStopping;
  view.job.outcome = core::Outcome::kCancelled;
  view.job.started = kNow;
  view.job.exit.emplace();
  view.job.exit->signal = 15;
  view.job.grant = {{1, kCard, Bytes::from_gib(140), true}};
  return view;
}

ShowDocument show(JobView view) {
  ShowDocument document;
  document.at = after(30);
  document.view = std::move(view);
  return document;
}

ShowDocument full_show() {
  ShowDocument document = show(ended());
  document.log = "/home/alice/.local/state/mete/logs/12_3.log";
  document.err = "/dev/null";
  document.environment = {"HOME", "PATH"};
  document.elements = {{"pending", 90}, {"running", 4}, {"ended", 6}};
  document.processes = {{412, Bytes::from_gib(3)}, {413, std::nullopt}};
  document.advice = {"12G", "its cap refused it memory at 8 GiB"};
  document.notes = {"docker run: the container is outside of the cap"};
  return document;
}

ExplainDocument explain() {
  ExplainDocument document;
  document.at = after(30);
  document.id = {12, 3};
  document.waiting_s = 30;
  document.reason = core::Reason::kResources;
  document.place = 2;
  document.in_line = 9;
  document.forecast = core::Forecast{kNow, after(60), after(300)};
  ExplainDocument::Card card;
  card.uuid = kCard;
  card.name = "NVIDIA H200";
  card.needs = Bytes::from_gib(56);
  card.free = Bytes::from_gib(40);
  card.holders = {{{9}, "bob", Bytes::from_gib(80), after(90), "limit", after(1)},
                  {{10, 1}, "eve", Bytes::from_gib(20), {}, "", {}}};
  card.reserved = {{"carol", after(900), Bytes::from_gib(20)}};
  card.text = "40 GiB free of the 56 GiB needed";
  card.outside = {{"job 9 of bob", Bytes::from_gib(2), JobId{9}},
                  {"process 412 of dave (python)", Bytes::from_gib(1), {}}};
  document.cards = {card};
  document.changes = {{"gpu", "ask for 28 % instead", "--gpu 28%", {}},
                      {"job-ends", "bob's job 9 ends", "", JobId{9}}};
  card.why = "room";
  document.wait = waits();
  document.text = explained_text(document);
  return document;
}

ExplainDocument explain_running() {
  ExplainDocument document;
  document.at = after(30);
  document.id = {12};
  document.state = JobState::kRunning;
  document.text = "it runs";
  return document;
}

ExplainDocument explain_other() {
  ExplainDocument document = explain_running();
  document.user = "alice";
  document.request = *core::parse_gpu("0.4");
  document.grant = {{0, kCard, Bytes::from_gib(56)}};
  return document;
}

DryRunDocument dry_run() {
  DryRunDocument document;
  document.at = kNow;
  document.starts = true;
  document.grant = {{0, kCard, Bytes::from_gib(56)}};
  return document;
}

DryRunDocument dry_run_that_waits() {
  DryRunDocument document;
  document.at = kNow;
  document.parked = {JobId{9}, JobId{10, 1}};
  document.why = explain();
  return document;
}

QuotaDocument quota() {
  QuotaDocument document{kNow, full_quota(), {}};
  document.users = {{"alice", {}, full_quota(), {1, Bytes::from_gib(8), 1}, 3, Bytes::from_mib(4)},
                    {"bob", full_quota(), full_quota(), {}, 0, {}}};
  return document;
}

StatsDocument stats() {
  StatsDocument document;
  document.at = kNow;
  document.states = {{"pending", 90}, {"ended", 6}};
  document.outcomes = {{"ok", 5}, {"gpu-oom", 1}};
  document.users = {{"alice", 90, 4, 6, 8192}};
  document.waits = {10, 5, 60, 61};
  document.forecasts = {100, 80, 1250};
  return document;
}

EventDocument event(const core::Happened& what, std::uint32_t attempt) {
  const std::string data = encode(what, attempt);
  return *document_of({81, kNow, core::type_of(what), job_of(what), data});
}

ReservationsDocument reservations() {
  core::Reservation one = full_reservation();
  one.cards[0].uuid = kCard;
  return {kNow, {one}};
}

Snapshot snapshot() {
  Snapshot all;
  all.at = after(30);
  all.seq = 81;
  all.trouble = "the driver does not answer";
  all.driver = "580.159.04";
  all.daemon = {"0.2.0",
                412,
                "user",
                "/run/user/1000/mete/meted.sock",
                "/home/alice/.local/state/mete",
                77,
                3,
                4,
                "best-fit",
                "",
                true,
                60};
  CardView card;
  card.uuid = kCard;
  card.name = "NVIDIA H200";
  card.type = "H200";
  card.state = "drained";
  card.unusable = "it is split into MIG slices";
  card.total = Bytes::from_gib(141);
  card.capacity = Bytes::from_gib(140);
  card.granted = Bytes::from_gib(8);
  card.used = Bytes::from_gib(6);
  card.foreign = Bytes::from_gib(1);
  card.over = Bytes::from_gib(2);
  card.grantable = Bytes::from_gib(131);
  card.utilisation_pct = 96;
  card.temperature_c = 61;
  card.power_w = 612.5;
  card.power_limit_w = 700;
  card.reading_age_s = 0.25;
  card.numa = 0;
  card.links = {{1, 18}};
  card.jobs = {{"12_3", "alice", Bytes::from_gib(8), true, Bytes::from_gib(3)}};
  card.jobs[0].over = Bytes::from_gib(2);
  card.foreign_list = {{412, "bob", Bytes::from_gib(1), "python", 7}, {{}, "carol", {}}};
  all.cards = {card};
  all.jobs = {{pending(), {}, {}, {}},
              {running(),
               {{512, 98765, 500, 0, "python", Bytes::from_gib(3), 97}, {513, 0, 0, 0, "", {}, {}}},
               {Bytes::from_gib(4)},
               97,
               core::ProcessRef{500, 98760}},
              {parked(), {}, {std::nullopt}, {}}};
  all.queue = {{{all.jobs[0].view.job.id, 2}}, 7, {{"resources", 9}}};
  const Past past{{{5, after(30), {{}, 0, 97}}, {60, after(0), {12}}},
                  {{5, after(30), {{}, 2048, 3072}}, {60, after(0), {3072}}}};
  all.history = {{{kCard, past}}, {{all.jobs[1].view.job.id, past}}};
  return all;
}
Snapshot empty_snapshot() {
  Snapshot all;
  all.daemon = {"0.2.0",         412, "system", "/run/mete/meted.sock",
                "/var/lib/mete", 0,   0,        0,
                "spread",        "",  false,    {}};
  return all;
}

core::Escape escape() {
  return {412, 98765, kCard, 0, Bytes::from_gib(3), Bytes::from_mib(518), "python"};
}

JobView escaped() {
  JobView view = run();
  view.job.escapes = {escape()};
  view.remark = {"escape: " + to_string(escape()), core::Remark::Idle{after(1), after(601), true}};
  return view;
}

ShowDocument show_notified() {
  ShowDocument document = show(escaped());
  document.notify = {"mail", "webhook:https://hooks.example.org/…"};
  return document;
}

Notification notification() {
  return {"81-0", kNow,    core::NotifyOn::kOom,
          "12_3", "train", "alice",
          "gpu1", 2,       core::Outcome::kGpuOom,
          1,      {},      "job 12_3 (train) of alice has ended: gpu-oom, code 1"};
}

SweepDocument sweep() {
  using core::sweep::guess;
  SweepDocument document;
  document.at = after(60);
  document.name = "lr-scan";
  document.user = "alice";
  document.state = core::sweep::SweepState::kStopped;
  document.why = "trial 2 reached the target val_loss < 0.1";
  document.started = kNow;
  document.ended = after(59);
  document.seed = 7;
  document.sampler = "random";
  document.wanted = 40;
  document.metric = "val_loss";
  document.maximize = true;
  document.target = "val_loss < 0.1";
  document.command = {"python", "train.py", "--lr", "{lr}", "caf\xe9"};
  document.as_flags = true;
  document.space = {
      {"lr", {}, 1e-5, 0.1, {}, true, false, ""},
      {"depth", {}, 2, 8, 2, false, true, "opt == 'adam'"},
      {"opt", {guess("adam"), guess("sgd"), guess("1e-3")}, {}, {}, {}, false, false, ""}};
  SweepDocument::Trial ended;
  ended.n = 2;
  ended.params = {{"lr", guess("0.001")}, {"depth", guess("4")}, {"opt", guess("adam")}};
  ended.state = core::sweep::TrialState::kStopped;
  ended.job = JobId{12};
  ended.metrics = {{"val_loss", 0.09}, {"acc", std::nan("")}};
  ended.step = 9;
  ended.peak = Bytes::from_gib(7);
  ended.granted = Bytes::from_gib(8);
  ended.why = "weak at step 9: place 5 of 8, the best 2 go on";
  ended.started = after(1);
  ended.ended = after(58);
  ended.cards = {0};
  SweepDocument::Trial pending;
  pending.n = 3;
  pending.params = {{"lr", guess("0.01")}, {"opt", guess("sgd")}, {"fast", guess("true")}};
  document.trials = {ended, pending};
  document.best = SweepDocument::Best{2, "val_loss", 0.09};
  document.importance = {{"lr", 61.5, 4.25, -0.5}, {"opt", 12, 3, {}}};
  document.end_forecast = after(120);
  document.results = "/home/alice/.local/state/mete/sweeps/lr-scan/results.csv";
  document.curves = "/home/alice/.local/state/mete/sweeps/lr-scan/curves";
  return document;
}
SweepDocument new_sweep() {
  SweepDocument document;
  document.at = document.started = kNow;
  document.name = "grid";
  document.user = "alice";
  document.sampler = "grid";
  document.command = {"python", "train.py"};
  document.space = {{"lr", {core::sweep::guess("0.1")}, {}, {}, {}, false, false, ""}};
  return document;
}

SweepsDocument sweeps() {
  SweepRow over{"lr-scan",
                "alice",
                core::sweep::SweepState::kDone,
                "all 40 trials are over",
                "tpe",
                kNow,
                after(59),
                40,
                0,
                0,
                36,
                1,
                3,
                {},
                {}};
  over.best = SweepDocument::Best{2, "val_loss", 0.09};
  SweepRow running;
  running.name = "grid";
  running.user = "alice";
  running.sampler = "grid";
  running.started = kNow;
  running.running = 4;
  running.end_forecast = after(120);
  return {after(60), {over, running}};
}

core::Happened sweep_result() {
  return core::SweepResult{
      1, {2, core::sweep::TrialState::kOk, {{"val_loss", 0.09}}, 9, Bytes::from_gib(7), {}, ""}};
}

// File (its name begins with that of its schema) and text.
const std::map<std::string, std::string>& documents() {
  static const std::map<std::string, std::string> all = {
      {"ps-none.json", encode_ps({}, kNow)},
      {"ps-others.json", encode_ps({row(), running()}, kNow)},
      {"ps-all.json", encode_ps({pending(), running(), ended(), run()}, kNow)},
      {"ps-parked.json", encode_ps({parked(), unparkable()}, kNow)},
      {"park-two.json", encode(ParkDocument{kNow, {parked(), unparkable()}})},
      {"wait-parked.json", encode(WaitDocument{kNow, {parked(), unparkable()}})},
      {"show-parked.json", encode(show(parked()))},
      {"show-unparkable.json", encode(show(unparkable()))},
      {"ps-escape.json", encode_ps({escaped()}, kNow)},
      {"park-escape.json", encode(ParkDocument{kNow, {escaped()}})},
      {"wait-escape.json", encode(WaitDocument{kNow, {escaped()}})},
      {"show-escape.json", encode(show_notified())},
      {"notification-end.json", encode(notification())},
      {"event-escape.json", encode(event(core::EscapeSeen{{12}, escape()}, 1))},
      {"submit-one.json", encode(SubmitReply{{12}, 0}, kNow)},
      {"submit-array.json", encode(SubmitReply{{12}, 100}, kNow)},
      {"show-run.json", encode(show(run()))},
      {"show-pending.json", encode(show(pending()))},
      {"show-ended.json", encode(full_show())},
      {"explain-pending.json", encode(explain())},
      {"explain-running.json", encode(explain_running())},
      {"explain-other.json", encode(explain_other())},
      {"dry-run-starts.json", encode(dry_run())},
      {"dry-run-waits.json", encode(dry_run_that_waits())},
      {"jobs-changed.json", encode(ChangedDocument{kNow, {JobId{12}, JobId{13, 0}}})},
      {"wait-two.json", encode(WaitDocument{kNow, {ended(), run()}})},
      {"quota-two.json", encode(quota())},
      {"reservations-one.json", encode(reservations())},
      {"reservations-none.json", encode(ReservationsDocument{kNow, {}})},
      {"snapshot-full.json", encode(snapshot())},
      {"snapshot-none.json", encode(empty_snapshot())},
      {"stats-some.json", encode(stats())},
      {"stats-none.json", encode(StatsDocument{})},
      {"event-submitted.json", encode(event(core::JobSubmitted{{12}, train(), {}}, 0))},
      {"event-card.json", encode(event(core::CardLost{kCard}, 0))},
      {"event-sweep.json", encode(event(sweep_result(), 0))},
      {"sweep-some.json", encode(sweep())},
      {"sweep-none.json", encode(new_sweep())},
      {"sweeps-two.json", encode(sweeps())},
      {"sweeps-none.json", encode(SweepsDocument{kNow, {}})},
      {"events-two.json", encode(EventsDocument{kNow,
                                                {event(core::JobHeld{{12, 3}}, 1),
                                                 event(core::CardDrained{kCard, "root"}, 0)},
                                                82})},
  };
  return all;
}

std::filesystem::path folder() {
  const char* root = std::getenv("METE_SOURCE_DIR");
  return std::filesystem::path(root == nullptr ? "." : root) / "tests/data/documents";
}

TEST(Documents, AreWrittenAsPinned) {
  for (const auto& [name, document] : documents()) {
    std::ifstream file(folder() / name);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    EXPECT_EQ(document + "\n", text) << name;
  }
}

TEST(Documents, EveryPinnedFileIsLookedAt) {
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    const std::string name = entry.path().filename().string();
    const bool of_cli = name.starts_with("advise-") || name.starts_with("place-") ||
                        name.starts_with("sweep-plan-") || name.starts_with("sweep-best-");
    EXPECT_TRUE(of_cli || documents().contains(name)) << entry.path();
  }
}

}  // namespace
}  // namespace mete::wire
