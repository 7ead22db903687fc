// SPDX-License-Identifier: Apache-2.0
#include "sweep/results_csv.h"

#include <gtest/gtest.h>

#include <limits>

namespace mete::sweep {
namespace {

using core::sweep::guess;
using core::sweep::of_text;
using core::sweep::TrialState;
using Trial = wire::SweepDocument::Trial;

Trial trial_of(std::uint64_t n, TrialState state = TrialState::kOk) {
  Trial trial;
  trial.n = n;
  trial.state = state;
  return trial;
}

TEST(ResultsCsv, ARowHasAllFieldsAsDocumented) {
  Trial full = trial_of(7);
  full.params = {{"lr", guess("1e-3")}, {"bs", guess("32")}};
  full.metrics = {{"val_loss", 0.1}};
  full.step = 81;
  full.peak = Bytes::from_mib(1);
  full.started = WallTime{1'763'559'600'000};
  full.ended = WallTime{1'763'559'672'045};
  full.job = core::JobId{12};
  EXPECT_EQ(csv_header({"lr", "bs"}, {"val_loss"}),
            "n,state,lr,bs,val_loss,step,peak_bytes,started_at,ended_at,seconds,job,why\n");
  EXPECT_EQ(csv_row(full, {"lr", "bs"}, {"val_loss"}),
            "7,ok,1e-3,32,0.1,81,1048576,2025-11-19T13:40:00.000Z,2025-11-19T13:41:12.045Z,72.045,"
            "12,\n");
  EXPECT_EQ(csv_row(trial_of(8, TrialState::kFailed), {"lr", "bs"}, {"val_loss"}),
            "8,failed,,,,,,,,,,\n");
}

TEST(ResultsCsv, TextsAreQuotedWhereNeededAndOtherwiseVerbatim) {
  Trial odd = trial_of(1);
  odd.params = {{"a", of_text("x,y")},  {"b", of_text("say \"hi\"\n")},
                {"c", of_text("")},     {"d", of_text(" pad ")},
                {"e", of_text("=1+1")}, {"f", of_text("\xc3\xa9")}};
  EXPECT_EQ(csv_row(odd, {"a", "b", "c", "d", "e", "f"}, {}),
            "1,ok,\"x,y\",\"say \"\"hi\"\"\n\",\"\",\" pad \",=1+1,\xc3\xa9,,,,,,,\n");
}

TEST(ResultsCsv, NumbersReadBackAndNanIsNan) {
  Trial odd = trial_of(1);
  odd.metrics = {{"a", 0.1 + 0.2},
                 {"b", std::numeric_limits<double>::quiet_NaN()},
                 {"c", -std::numeric_limits<double>::infinity()},
                 {"d", 1e-300}};
  EXPECT_EQ(csv_row(odd, {}, {"a", "b", "c", "d", "none"}),
            "1,ok,0.30000000000000004,NaN,-inf,1e-300,,,,,,,,\n");
}

TEST(ResultsCsv, NoColumnHasTheNameOfAnotherOne) {
  EXPECT_EQ(
      csv_header({"lr", "step", "lr_metric"}, {"lr", "n", "val,loss"}),
      "n,state,lr,step_param,lr_metric,lr_metric_metric,n_metric,\"val,loss\",step,peak_bytes,"
      "started_at,ended_at,seconds,job,why\n");
}

TEST(ResultsCsv, OnlyTrialsThatAreOverAreListedInTheOrderOfTheirNumbers) {
  wire::SweepDocument sweep;
  sweep.space.resize(1);
  sweep.space[0].name = "lr";
  sweep.trials = {trial_of(4, TrialState::kStopped), trial_of(2, TrialState::kRunning), trial_of(1),
                  trial_of(3, TrialState::kPending), trial_of(5, TrialState::kFailed)};
  sweep.trials[2].metrics = {{"b", 1}, {"a", 2}};
  sweep.trials[4].metrics = {{"a", 3}, {"c", 4}};
  sweep.trials[4].why = "exit code 1";
  EXPECT_EQ(metrics_of(sweep), (std::vector<std::string>{"b", "a", "c"}));
  EXPECT_EQ(to_csv(sweep), csv_header({"lr"}, {"b", "a", "c"}) +
                               "1,ok,,1,2,,,,,,,,\n4,stopped,,,,,,,,,,,\n"
                               "5,failed,,,3,4,,,,,,,exit code 1\n");
  EXPECT_EQ(to_csv({}), csv_header({}, {}));
}

}  // namespace
}  // namespace mete::sweep
