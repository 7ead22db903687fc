// SPDX-License-Identifier: Apache-2.0
// Sweeps as people read them.
#include "cli/sweep_text.h"

#include <gtest/gtest.h>
#include <time.h>

#include <cstdlib>

#include "base/columns.h"
#include "base/text.h"
#include "cli/sweep_client.h"
#include "cli/sweep_document.h"

namespace mete::cli {
namespace {

using core::sweep::SweepState;
using core::sweep::TrialState;
using wire::SweepDocument;
using wire::SweepRow;

// 2026-11-15 12:00:00 UTC, which is what the tests' clocks show.
constexpr std::int64_t kNoon = 1'794'744'000'000;

WallTime at(std::int64_t minutes) { return {kNoon + minutes * 60'000}; }

class SweepText : public testing::Test {
 protected:
  void SetUp() override {
    setenv("TZ", "UTC", 1);
    tzset();
  }

  static SweepRow row() {
    SweepRow row;
    row.name = "lr-scan";
    row.user = "alice";
    row.sampler = "tpe";
    row.started = at(-12);
    row.wanted = 24;
    row.running = 4;
    row.ok = 10;
    row.failed = 1;
    row.stopped = 1;
    row.best = SweepDocument::Best{7, "val_loss", 0.41};
    row.end_forecast = at(20);
    return row;
  }

  static SweepDocument document() {
    SweepDocument sweep;
    sweep.at = at(0);
    sweep.name = "lr-scan";
    sweep.started = at(-12);
    sweep.sampler = "grid";
    sweep.wanted = 3;
    sweep.metric = "val_loss";
    sweep.command = {"python", "train.py", "--lr", "{lr}"};
    sweep.space.resize(2);
    sweep.space[0].name = "lr";
    sweep.space[0].values = {core::sweep::guess("1e-3"), core::sweep::guess("1e-4"),
                             core::sweep::guess("1e-5")};
    sweep.space[1].name = "epochs";  // fixed: no column
    sweep.space[1].values = {core::sweep::guess("20")};
    for (std::uint64_t n = 1; n <= 3; ++n) {
      SweepDocument::Trial& trial = sweep.trials.emplace_back();
      trial.n = n;
      trial.params = {{"lr", sweep.space[0].values[n - 1]}, {"epochs", core::sweep::guess("20")}};
      trial.state = n == 3 ? TrialState::kRunning : TrialState::kOk;
      trial.job = core::JobId{39 + n};
      trial.started = at(-10);
      if (n == 3) continue;
      trial.metrics = {{"val_loss", n == 1 ? 0.5 : 0.25}};
      trial.step = 20;
      trial.peak = Bytes::from_gib(6);
      trial.ended = at(-5);
    }
    sweep.best = SweepDocument::Best{2, "val_loss", 0.25};
    return sweep;
  }
};

TEST_F(SweepText, ProgressFitsIntoALine) {
  const std::string line = "mete: " + progress_line(row(), at(0));
  EXPECT_EQ(line,
            "mete: lr-scan [########........] 12/24, 4 run, 1 failed, best val_loss 0.41, ends "
            "~12:20");
  SweepRow begun;
  begun.name = "lr-scan";
  begun.wanted = 24;
  EXPECT_EQ(progress_line(begun, at(0)), "lr-scan [................] 0/24");
  begun.wanted.reset();
  begun.ok = 3;
  begun.state = SweepState::kPaused;
  EXPECT_EQ(progress_line(begun, at(0)), "lr-scan 3 done, paused");
}

TEST_F(SweepText, SaysWhyItBeginsNoTrial) {
  SweepRow blocked;
  blocked.name = "lr-scan";
  blocked.wanted = 24;
  blocked.why = "the queue is full";
  EXPECT_EQ(progress_line(blocked, at(0)),
            "lr-scan [................] 0/24, waits: the queue is full");
  EXPECT_EQ(
      row_text(blocked),
      "sweep lr-scan is running; 0 of 24 trials are over; its next trial waits: the queue is full");
}

TEST_F(SweepText, SaysHowItEnded) {
  SweepRow over = row();
  over.state = SweepState::kDone;
  over.why = "all 24 trials are over";
  over.ok = 22;
  over.running = 0;
  over.ended = at(0);
  EXPECT_EQ(end_text(over, at(5)),
            "sweep lr-scan is done: all 24 trials are over; 22 ok, 1 failed, 1 stopped early, in "
            "12 min; best val_loss 0.41 of trial 7");
  EXPECT_EQ(counts_text(row()), "12 of 24 trials are over: 10 ok, 1 failed, 1 stopped early");
  SweepRow paused = row();
  paused.state = SweepState::kPaused;
  EXPECT_EQ(row_text(paused), "sweep lr-scan is paused; 4 running trials finish");
  paused.state = SweepState::kStopped;
  EXPECT_EQ(row_text(paused), "sweep lr-scan is stopped; 4 trials are being ended");
  paused.running = 0;
  EXPECT_EQ(row_text(paused), "sweep lr-scan is stopped; mete sweep resume lr-scan continues it");
}

TEST_F(SweepText, SaysWhyTrialsFailed) {
  SweepDocument sweep = document();
  EXPECT_EQ(failures_text(sweep), "");
  sweep.trials[1].state = TrialState::kFailed;
  sweep.trials[1].why = "exit code 3";
  EXPECT_EQ(failures_text(sweep),
            "trial 2 failed: exit code 3; mete sweep logs lr-scan 2 shows the output of trial 2");
  sweep.trials[0] = sweep.trials[2] = sweep.trials[1];
  sweep.trials[0].n = 1;
  sweep.trials[2].n = 3;
  sweep.trials[0].why = "signal 9";
  EXPECT_EQ(failures_text(sweep),
            "3 trials failed, 2 of them: exit code 3; mete sweep logs lr-scan 2 shows the output "
            "of trial 2");
  EXPECT_NE(sweep_text(sweep, 200, true).find("\n  failed   3 trials failed, 2 of them"),
            std::string::npos);
}

TEST_F(SweepText, ListsSweeps) {
  wire::SweepsDocument list{at(0), {row()}};
  list.sweeps.push_back(row());
  list.sweeps[1].name = "a\033[2Jb";
  list.sweeps[1].best.reset();
  const std::string text = sweeps_table(list, false, 80);
  EXPECT_EQ(text.substr(0, text.find('\n', text.find('\n') + 1)),
            "NAME       STATE    TRIALS  RUN  FAILED  BEST            TIME  ENDS\n"
            "lr-scan    running   12/24    4       1  val_loss 0.41  12:00  ~12:20");
  EXPECT_EQ(text.find('\033'), std::string::npos);
  EXPECT_NE(sweeps_table(list, true, 80).find("alice"), std::string::npos);
}

TEST_F(SweepText, ShowsTrialsBestFirst) {
  const SweepDocument sweep = document();
  EXPECT_EQ(trials_table(sweep, all_ranked(sweep), 80),
            "TRIAL  STATE    val_loss    lr  STEP  PEAK   TIME  JOB\n"
            "    2  ok           0.25  1e-4    20  6.0G   5:00   41\n"
            "    1  ok            0.5  1e-3    20  6.0G   5:00   40\n"
            "    3  running         -  1e-5     -     -  10:00   42");
  EXPECT_EQ(best_and_running(sweep, 1, 5).size(), 2u);
  EXPECT_EQ(best_and_running(sweep, 1, 0).front()->n, 2u);
}

TEST_F(SweepText, ShowsManyParametersInOneColumn) {
  SweepDocument sweep = document();
  for (int i = 0; i < 6; ++i) {
    SweepDocument::Parameter& added = sweep.space.emplace_back();
    added.name = "p" + std::to_string(i);
    added.values = {core::sweep::guess("1"), core::sweep::guess("2")};
    for (SweepDocument::Trial& trial : sweep.trials)
      trial.params.emplace_back(added.name, core::sweep::guess("2"));
  }
  const std::string text = trials_table(sweep, all_ranked(sweep), 80);
  EXPECT_NE(text.find("PARAMETERS"), std::string::npos) << text;
  EXPECT_NE(text.find("lr=1e-4 p0=2"), std::string::npos) << text;
  for (const std::string_view line : base::split(text, '\n'))
    EXPECT_LE(base::columns_of(line), 80u) << line;
}

TEST_F(SweepText, ShowsASweep) {
  SweepDocument sweep = document();
  const std::string text = sweep_text(sweep, 80, true);
  EXPECT_EQ(text.substr(0, text.find("\n\n")),
            "sweep lr-scan: running · started 11:48\n"
            "  trials   2 of 3 trials are over: 2 ok, 1 running\n"
            "  sampler  grid\n"
            "  goal     minimize val_loss\n"
            "  best     val_loss 0.25 of trial 2\n"
            "  command  python train.py --lr {lr}");
  for (const std::string_view line : base::split(text, '\n'))
    EXPECT_LE(base::columns_of(line), 80u) << line;
  sweep.trials.clear();
  sweep.best.reset();
  EXPECT_EQ(sweep_text(sweep, 80, true).find("TRIAL"), std::string::npos);
}

TEST_F(SweepText, NamesItsPaths) {
  EXPECT_EQ(sweep_target({"lr-scan", ""}), "/v1/sweeps/lr-scan");
  EXPECT_EQ(sweep_target({"lr-scan", "bob"}, "/stop"), "/v1/sweeps/lr-scan/stop?user=bob");
  EXPECT_EQ(sweep_target({"a", "b&c"}, "", "brief=1"), "/v1/sweeps/a?brief=1&user=b%26c");
  EXPECT_EQ(sweep_ref({}, "../x").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(sweep_ref({}, "").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(sweep_ref({}, "lr-scan")->name, "lr-scan");
}

}  // namespace
}  // namespace mete::cli
