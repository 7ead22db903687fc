// SPDX-License-Identifier: Apache-2.0
// See full.h. Every member is set by hand to something else than its default, even where the
// combination makes no sense to the daemon. Texts have odd characters, numbers are near their
// limits, and lists have more than one element.
#include "wire/test/full.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>

namespace mete::wire {

using core::JobId;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

core::sweep::TrialOf full_trial() {
  using core::sweep::guess;
  core::sweep::TrialOf trial;
  trial.sweep = UINT64_MAX;
  trial.name = "lr-scan";
  trial.n = 100'000;
  trial.params = {{"lr", guess("1e-3")},
                  {"opt", core::sweep::of_text(kOddBytes)},
                  {"note", core::sweep::of_text(kOddText)},
                  {"batch-size", guess("+32")},
                  {"id", core::sweep::of_text("3")},
                  {"fast", core::sweep::of_bool(true)}};
  trial.metrics = {{"val_loss", "val_loss=([0-9.]+)"}, {kOddBytes, ""}};
  trial.rungs = {1, 3, 4'294'967'296, UINT64_MAX};
  return trial;
}

}  // namespace

core::JobSpec full_spec() {
  core::JobSpec spec;
  spec.name = kOddText;
  spec.uid = 4294967294;
  spec.user = "alice";
  spec.request.gpu = *core::parse_gpu("2x40%");
  spec.request.devices = {"3", "GPU-0"};
  spec.request.gpu_type = "H200";
  spec.request.where = *core::Query::parse("attribute:gpu.free >= 16G and runningTasksCount < 3");
  spec.request.procs = 4;
  spec.request.or_cpu = true;
  spec.request.cpus = 8;
  spec.request.ram = kMost;
  spec.command = {"python", "", kOddText, kOddBytes};
  spec.folder = std::string("/home/alice/") + kOddBytes;
  spec.time_s = 3600;
  spec.priority = -1000;
  spec.after = {{JobId{7}, core::When::kAny}, {JobId{9, 0}, core::When::kFail}, {JobId{8}, {}}};
  spec.array = *core::parse_array("0-9:3,12%2");
  spec.retries = 5;
  spec.retry_gpu_pct = 150;
  spec.requeue = true;
  spec.held = true;
  spec.preemptible = false;
  spec.idle_s = 600;
  spec.no_preempt = true;
  spec.shed = true;
  spec.begin = WallTime{1'800'000'000'500};
  spec.deadline = WallTime{1'900'000'000'500};
  spec.labels = {{"sweep", kOddText}, {"\xc3\xa9", ""}};
  spec.notify.to = {{core::NotifyWay::kMail, ""},
                    {core::NotifyWay::kWebhook, "https://u:p@h.example/secret?x=1"},
                    {core::NotifyWay::kCommand, std::string("echo ") + kOddBytes}};
  spec.notify.on = {core::NotifyOn::kStart, core::NotifyOn::kIdle};
  spec.notify.none = true;
  return spec;
}

core::Detached full_detached() {
  core::Detached detached;
  detached.environment = std::string(64, 'a');
  detached.script = std::string(64, 'b');
  detached.gid = 4294967293;
  detached.groups = {4, 4294967292};
  detached.umask = 0777;
  detached.limits = {{0, 1, UINT64_MAX}, {31, 0, 5}};
  detached.log = std::string("/home/alice/%j-") + kOddBytes;
  detached.err = "/dev/null";
  detached.tty = true;
  detached.visible_by_index = true;
  return detached;
}

core::JobSpec full_detached_spec() {
  core::JobSpec spec = full_spec();
  spec.detached = full_detached();
  return spec;
}

core::JobSpec full_trial_spec() {
  core::JobSpec spec = full_detached_spec();
  spec.key = "5f0c1d2e3b4a59687786a5b4c3d2e1f0";
  spec.trial = full_trial();
  return spec;
}

core::Exit exit_without_metrics() {
  core::Exit exit;
  exit.code = -1;
  exit.signal = 9;
  exit.not_started = exit.timed_out = exit.gpu_oom = exit.ram_oom = true;
  exit.peaks = {Bytes::from_gib(3), Bytes(), kMost};
  exit.ran_ms = 4'294'967'295'000;
  exit.log_bytes = kMost;
  exit.note = kOddText;
  return exit;
}

core::Exit full_exit() {
  core::Exit exit = exit_without_metrics();
  exit.metrics = {{"val_loss", 0.1 + 0.2}, {kOddBytes, kNan}, {"acc", -0.0}};
  exit.step = UINT64_MAX;
  return exit;
}

core::Job full_job() {
  core::Job job;
  job.id = JobId{12, 3};
  job.spec = full_trial_spec();
  job.state = core::JobState::kStopping;
  job.attempt = 3;
  job.priority = 7;
  job.held = true;
  job.submitted = {1'800'000'000'123};
  job.started = WallTime{1'800'000'001'000};
  job.ended = WallTime{1'800'000'002'999};
  job.not_before = WallTime{1'800'000'004'000};
  job.put_off = core::PutOff{"mete-keeper is missing", 3};
  job.failures = 2;
  job.unmet = {{JobId{9, 0}, core::When::kFail}};
  job.outcome = core::Outcome::kGpuOom;
  job.exit = full_exit();
  job.gpu = *core::parse_gpu("2x12G");
  job.grant = {{3, "GPU-3", Bytes::from_gib(8), false}, {0, "GPU-0", kMost, true}};
  job.runner = core::ProcessRef{412, 99};
  job.program = core::ProcessRef{2147483647, UINT64_MAX};
  core::Attempt plain;
  plain.ended = {1'800'000'000'200};
  core::Attempt full{2, WallTime{1'800'000'000'300}, {1'800'000'000'400}, core::Outcome::kOk, {}};
  full.exit = full_exit();
  job.attempts = {plain, full};
  job.forecast = core::Forecast{{1}, {2}, {3}};
  job.requeue = true;
  job.grant[0].least = Bytes::from_gib(2);
  job.grant[0].most = Bytes::from_gib(20);
  job.park = core::Park{core::ParkCause::kPreempted,
                        JobId{14, 2},
                        kOddText,
                        true,
                        true,
                        {1'800'000'001'500},
                        {Bytes::from_mib(518), Bytes()},
                        kMost,
                        Bytes::from_gib(3),
                        kOddText};
  job.parked_ms = 4'294'967'295'000;
  job.resumed = WallTime{1'800'000'001'400};
  job.stayed = {Bytes::from_mib(600), kMost};
  job.unparkable = core::ParkRefusal{{1'800'000'001'300}, kOddText, true};
  job.growth = core::Growth::kTight;
  job.escapes = {{412, UINT64_MAX, "GPU-0", 3, kMost, Bytes::from_gib(1), kOddText}};
  job.idle = core::IdleSpan{{1'800'000'001'200}, core::IdleStep::kNotified};
  job.stopped = kOddText;
  return job;
}

core::Job plain_job() {
  core::JobSpec spec;
  spec.name = "plain";
  core::Job job;
  job.id = JobId{3};
  job.spec = spec;
  return job;
}

core::Quota full_quota() { return {1, Bytes::from_gib(2), 3, 4, kMost}; }

core::Reservation full_reservation() {
  return {UINT64_MAX,
          "carol",
          {1'800'000'000'000},
          {1'800'000'000'001},
          {{0, "GPU-0", Bytes::from_gib(140), true}},
          "root"};
}

core::sweep::Plan full_sweep_plan() {
  using namespace core::sweep;  // NOLINT: values of a sweep alone
  const std::vector<std::string> names = {"lr", "opt", "momentum", "batch-size", "depth"};
  const std::vector<Value> opts = {guess("adam"), of_text(kOddBytes), of_text("3"), guess("+3"),
                                   of_bool(true)};
  const Range momentum{0, 1, false, false, 0.1};
  Plan plan;
  plan.name = "lr-scan";
  plan.space = *Space::make({{"lr", Range{1e-5, 0.1, true}},
                             {"opt", opts},
                             {"momentum", momentum, *Expression::parse("opt == 'adam'", names)},
                             {"batch-size", Range{1, 1024, true, true}},
                             {"depth", Range{-3, 9, false, true, 3.0}}},
                            *Expression::parse("batch-size <= 512 or lr < 0.01", names));
  plan.sampling = {Method::kTpe, UINT64_MAX, 1'000, true};
  plan.for_s = 7'200;
  plan.until = WallTime{1'900'000'000'500};
  plan.metrics = {{"val_loss", "val_loss=([0-9.]+)"}, {kOddBytes, ""}};
  plan.goal = Goal{"acc", true};
  plan.target = *parse_target("acc > 0.99 and val_loss < 0.1", plan);
  plan.halving = HalvingRule{"val_loss", 1, 4'294'967'296, 3};
  plan.reduce = ReduceRule{Correlation::kKendall, 40, 5, 0.25};
  plan.max_parallel = 8;
  plan.max_failures = 3;
  plan.auto_gpu = true;
  plan.as_flags = true;
  plan.job = full_detached_spec();
  plan.job.key = "5f0c1d2e3b4a59687786a5b4c3d2e1f0";
  return plan;
}

core::sweep::Sweep::Parts full_sweep(std::uint64_t number) {
  using namespace core::sweep;  // NOLINT: values of a sweep alone
  Sweep::Parts parts;
  parts.number = number;
  parts.plan = std::make_shared<const Plan>(full_sweep_plan());
  parts.state = SweepState::kPaused;
  parts.started = {1'800'000'000'000};
  parts.ended = WallTime{1'800'000'009'000};
  parts.why = kOddText;
  for (std::uint64_t n = 1; n <= 5; ++n) {
    Trial& trial = parts.trials.emplace_back();
    trial.n = n;
    trial.point = {of_real(0.001 * static_cast<double>(n)), guess("adam"), guess("0.3"),
                   of_integer(32), of_integer(-3)};
    trial.state = static_cast<TrialState>(n - 1);
  }
  parts.trials[1].point[1] = of_text(kOddBytes);
  parts.trials[1].point[2].reset();  // not in use
  parts.trials[1].job = JobId{8};
  parts.trials[1].runs = 1;
  Trial& full = parts.trials[2];
  full.job = JobId{9};
  full.runs = 3;
  full.metrics = {{"val_loss", kNan}, {"acc", 0.5}, {kOddBytes, 1e-300}};
  full.step = UINT64_MAX;
  full.peak = kMost;
  full.granted = Bytes::from_gib(8);
  full.ran_out = Bytes::from_gib(7);
  full.why = kOddText;
  full.started = WallTime{1'800'000'001'000};
  full.ended = WallTime{1'800'000'002'000};
  full.cards = {3, 0};
  full.order = 1;
  parts.trials[3].order = 2;
  parts.trials[4].order = 3;
  parts.next_draw = 12;
  parts.barren = 4;
  parts.rested = WallTime{1'800'000'003'000};
  parts.best = Best{3, 0.5};
  parts.dropped = {{1, of_text(kOddBytes), -0.75}};
  parts.reduced_at = 2;
  parts.halving = Halving(*parts.plan->halving);
  (void)parts.halving.report(3, 5, std::numeric_limits<double>::infinity());
  (void)parts.halving.report(2, 1, 0.1);
  (void)parts.halving.report(4, 4'294'967'296, -1e300);
  parts.ends = {{2, JobId{8}, core::Outcome::kGpuOom, full_exit(), kOddText},
                {1, JobId{7, 0}, core::Outcome::kLost, {}, ""}};
  parts.to_end = {{2, {Ending::kFinished, kOddText}}, {1, {Ending::kAgain, ""}}};
  parts.verdicts = {{2, {Ending::kStopped, kOddText}}};
  parts.on_target = 4;
  return parts;
}

core::Wait full_wait() {
  core::CardWait card;
  card.index = 3;
  card.why = core::InTheWay::kTooFull;
  card.whole = true;
  card.needed = Bytes::from_gib(8);
  card.free = Bytes::from_gib(3);
  card.kept = Bytes::from_gib(1);
  card.holders = {
      {JobId{7}, "alice", kOddText, kMost, true, true, false, WallTime{1'800'000'001'000}}};
  card.outside = {{"process 412 of bob", Bytes::from_gib(2), JobId{8, 1}, "bob", 412},
                  {"",
                   Bytes::from_gib(1),
                   {},
                   "carol",
                   {},
                   core::Outside::Reserved{UINT64_MAX, {1'800'000'002'000}}}};
  card.unlisted = 2;
  card.detail = kOddText;
  core::Wait wait;
  wait.reason = core::Reason::kDrained;
  wait.holders = {JobId{7}, JobId{8, 1}};
  wait.room.needs = core::CardNeed{
      2, core::GpuRequest{{core::CardCount::Kind::kOne, 0}, core::Size{Bytes::from_gib(8)}},
      Bytes::from_gib(8), 3, 1};
  wait.room.cards = {card};
  wait.room.unlisted = 5;
  wait.room.machine = true;
  wait.room.returns = true;
  wait.behind = core::Wait::Behind{JobId{5}, kOddText, wait.room};
  wait.parking = {JobId{4}};
  wait.later = core::Wait::Later{{JobId{6}}, {1'800'000'003'000}};
  wait.release = JobId{9, 2};
  wait.after = {{JobId{10}, core::When::kFail}};
  wait.more_after = 3;
  wait.until = WallTime{1'800'000'004'000};
  wait.failure = kOddText;
  wait.quota = core::Wait::OfQuota{"alice", {core::OverQuota::Limit::kBytes, 1, UINT64_MAX, 2}};
  wait.array = core::Wait::OfArray{JobId{11}, 4, 5};
  wait.cpus = core::Wait::Cpus{6, 7};
  wait.words = kOddText;
  return wait;
}

JobView full_view() {
  JobView view;
  view.job = full_job();
  view.wait = full_wait();
  view.used = {Bytes::from_gib(5), std::nullopt};
  view.forecast = core::Forecast{{}, {1'800'000'005'000}, {1'800'000'006'000}};
  view.idle_since = WallTime{1'800'000'007'000};
  view.remark = {kOddText,
                 core::Remark::Idle{{1'800'000'007'000}, WallTime{1'800'000'008'000}, true}};
  view.place = 2;
  return view;
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what << " in " << text;
  return at == std::string::npos ? text : text.replace(at, what.size(), with);
}

}  // namespace mete::wire
