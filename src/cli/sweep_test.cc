// SPDX-License-Identifier: Apache-2.0
// The command line of `mete sweep`: words and files to a request.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "cli/run_plan.h"
#include "cli/sweep_document.h"
#include "cli/sweep_options.h"
#include "cli/sweep_plan.h"
#include "cli/verbs.h"
#include "core/request/gpu.h"

namespace mete::cli {
namespace {

using Texts = std::vector<std::string>;
using core::sweep::Method;

constexpr WallTime kNow{1'763'208'000'000};  // 2025-11-15T12:00:00Z

class SweepTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = testing::TempDir() + "mete-sweep-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    around_ = {"/home/ann", {"HOME=/home/ann"}, 027, kNow};
    setenv("TZ", "UTC", 1);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
    return folder_ + "/" + name;
  }
  Result<SweepPlan> plan(const Texts& args) {
    const Result<Parsed> parsed = parse_options(sweep_options(), args, Rest::kCommand);
    if (!parsed) return parsed.error();
    SweepPlanner planner(*parsed, around_, 77);
    Result<SweepPlan> result = planner.plan();
    if (!result) exit_code_ = planner.exit_code(result.error());
    return result;
  }
  SweepPlan fine(const Texts& args) {
    Result<SweepPlan> result = plan(args);
    EXPECT_TRUE(result) << result.error().message << "\n" << result.error().evidence;
    return result ? *std::move(result) : SweepPlan();
  }
  // The plan of a grid with these options before the command.
  core::sweep::Plan with(Texts options) {
    options.insert(options.begin(), {"--gpu", "8G", "--grid", "lr=1e-3,1e-4", "--grid", "bs=8,16"});
    options.insert(options.end(), {"--", "true", "{lr}", "{bs}"});
    return fine(options).request.plan;
  }
  std::string refused(const Texts& args, int exit_code = 64) {
    exit_code_ = 64;
    Result<SweepPlan> result = plan(args);
    EXPECT_FALSE(result);
    if (result) return "";
    EXPECT_EQ(exit_code_, exit_code) << result.error().message;
    std::string message = result.error().message;
    for (std::size_t at; (at = message.find(folder_ + "/")) != std::string::npos;)
      message.erase(at, folder_.size() + 1);
    return message;
  }
  std::string refused_with(Texts options) {
    options.insert(options.begin(), {"--gpu", "8G", "--grid", "lr=1e-3,1e-4"});
    options.insert(options.end(), {"--", "true", "{lr}"});
    return refused(options);
  }

  std::string folder_;
  Surroundings around_;
  int exit_code_ = 64;
};

TEST_F(SweepTest, TakesAGridAsItIsWritten) {
  const SweepPlan planned = fine({"--gpu", "0.25", "-t", "2h", "--grid", "lr=1e-3,1e-4", "--grid",
                                  "opt=sgd,adam", "--", "true", "--lr", "{lr}", "--opt={opt}"});
  const core::sweep::Plan& plan = planned.request.plan;
  EXPECT_EQ(plan.name, "true");
  EXPECT_FALSE(planned.named);
  EXPECT_EQ(plan.space.names(), (Texts{"lr", "opt"}));
  EXPECT_EQ(plan.sampling.method, Method::kGrid);
  EXPECT_EQ(plan.sampling.trials, 0u);
  EXPECT_FALSE(plan.sampling.seed) << "a grid draws nothing";
  EXPECT_FALSE(plan.sampling.scattered);
  EXPECT_TRUE(plan.job.command.empty()) << "the job is sent beside the plan";
  const core::JobSpec& spec = planned.request.submit.spec;
  EXPECT_EQ(spec.command, (Texts{"true", "--lr", "{lr}", "--opt={opt}"}));
  EXPECT_EQ(to_string(*spec.request.gpu), "25%");
  EXPECT_EQ(spec.time_s, 7200u);
  EXPECT_EQ(spec.folder, "/home/ann");
  ASSERT_TRUE(spec.detached);
  EXPECT_EQ(spec.detached->umask, 027u);
  EXPECT_EQ(planned.request.submit.environment, (Texts{"HOME=/home/ann"}));
  EXPECT_TRUE(planned.notes.empty());
}

TEST_F(SweepTest, ChoosesASampler) {
  EXPECT_EQ(with({}).sampling.method, Method::kGrid);
  EXPECT_EQ(with({"--trials", "3"}).sampling.method, Method::kRandom);
  EXPECT_EQ(with({"--trials", "3"}).sampling.seed, 77u) << "drawn, and recorded";
  EXPECT_EQ(with({"--trials", "3", "--seed", "5"}).sampling.seed, 5u);
  const core::sweep::Plan grid = with({"--trials", "3", "--sampler", "grid"});
  EXPECT_EQ(grid.sampling.method, Method::kGrid);
  EXPECT_TRUE(grid.sampling.scattered) << "a part of a grid";
  EXPECT_FALSE(with({"--sampler", "sobol", "--trials", "3"}).sampling.seed);
  EXPECT_EQ(fine({"--gpu", "0", "--space", file("s.yaml", "params: {lr: {min: 0, max: 1}}\n"),
                  "--trials", "9", "--", "true", "{lr}"})
                .request.plan.sampling.method,
            Method::kRandom);
  EXPECT_EQ(refused_with({"--sampler", "sobal"}), "--sampler 'sobal': there is no such sampler");
  EXPECT_EQ(refused_with({"--sampler", "tpe", "--trials", "3"}),
            "--sampler tpe learns from a metric");
}

TEST_F(SweepTest, CountsTrials) {
  EXPECT_EQ(with({"--fraction", "0.5"}).sampling.trials, 2u);
  EXPECT_EQ(with({"--fraction", "75%"}).sampling.trials, 3u);
  EXPECT_EQ(with({"--fraction", "0.01"}).sampling.trials, 1u) << "at least one";
  EXPECT_EQ(with({"--trials", "9"}).sampling.trials, 4u) << "there are no more points";
  EXPECT_EQ(refused_with({"--fraction", "0"}), "--fraction '0' is no part of a space");
  EXPECT_EQ(refused_with({"--fraction", "1.5"}), "--fraction '1.5' is no part of a space");
  EXPECT_EQ(refused_with({"--fraction", "0.1", "--trials", "2"}),
            "--fraction and --trials exclude each other");
  EXPECT_EQ(refused_with({"--trials", "0"}), "--trials '0' is not a number from 1 on");
  EXPECT_EQ(refused({"--gpu", "0", "--space", file("s.yaml", "params: {lr: {min: 0, max: 1}}\n"),
                     "--fraction", "0.1", "--", "true", "{lr}"}),
            "--fraction needs a finite space");
  EXPECT_EQ(refused({"--gpu", "0", "--space", file("s.yaml", "params: {lr: {min: 0, max: 1}}\n"),
                     "--", "true", "{lr}"}),
            "this sweep has no end: its space is continuous");
}

TEST_F(SweepTest, OptionsWinOverTheFile) {
  const std::string path = file("space.yaml",
                                "params:\n  lr: [0.1, 0.2]\n  bs: [8, 16, 32]\nsampler: random\n"
                                "trials: 5\nseed: 3\nkeep: bs > 8\n"
                                "metrics: {loss: last, acc: last}\nminimize: loss\n");
  core::sweep::Plan plan =
      fine({"--gpu", "0", "--space", path, "--", "true", "{lr}", "{bs}"}).request.plan;
  EXPECT_EQ(plan.sampling, (core::sweep::Sampling{Method::kRandom, 3, 5, false}));
  EXPECT_EQ(plan.space.keep()->text(), "bs > 8");
  EXPECT_EQ(plan.goal, (core::sweep::Goal{"loss", false}));
  EXPECT_EQ(plan.metrics.size(), 2u);

  plan = fine({"--gpu",     "0",          "--space",  path,       "--grid",
               "lr=7",      "--grid",     "x=1,2",    "--keep",   "x == 1",
               "--sampler", "lhs",        "--trials", "4",        "--seed",
               "9",         "--maximize", "acc",      "--metric", "acc=acc ([0-9]+)",
               "--",        "true",       "{lr}"})
             .request.plan;
  EXPECT_EQ(plan.space.names(), (Texts{"lr", "bs", "x"})) << "lr keeps its place";
  EXPECT_EQ(plan.space.values_of(0), 1u);
  EXPECT_EQ(plan.space.keep()->text(), "x == 1");
  EXPECT_EQ(plan.sampling, (core::sweep::Sampling{Method::kLatin, 9, 4, false}));
  EXPECT_EQ(plan.goal, (core::sweep::Goal{"acc", true}));
  EXPECT_EQ(plan.metrics.front(), (core::sweep::MetricRule{"acc", "acc ([0-9]+)"}));
  EXPECT_EQ(plan.metrics.size(), 2u);
}

TEST_F(SweepTest, ReadsRules) {
  const core::sweep::Plan plan = with(
      {"--minimize", "loss", "--asha", "min=1,max=27,eta=3", "--reduce", "--target", "loss < 0.1",
       "--for", "2h", "--until", "18:00", "--max-parallel", "4", "--fail-fast", "--as-flags"});
  EXPECT_EQ(plan.halving, (core::sweep::HalvingRule{"loss", 1, 27, 3}));
  EXPECT_TRUE(plan.reduce);
  EXPECT_EQ(plan.target->text(), "loss < 0.1");
  EXPECT_EQ(plan.for_s, 7200u);
  EXPECT_EQ(to_string(*plan.until), "2025-11-15T18:00:00.000Z");
  EXPECT_EQ(plan.max_parallel, 4u);
  EXPECT_EQ(plan.max_failures, 1u);
  EXPECT_TRUE(plan.as_flags);
  EXPECT_TRUE(with({"--minimize", "loss", "--asha"}).halving) << "without a rule";
  EXPECT_TRUE(with({"--minimize", "loss", "--asha=max=9"}).halving);
  EXPECT_EQ(refused_with({"--asha"}), "--asha does not know which metric counts");
  EXPECT_EQ(refused_with({"--minimize", "a", "--maximize", "b"}),
            "--minimize and --maximize exclude each other");
  EXPECT_EQ(refused_with({"--fail-fast", "--max-failures", "3"}),
            "--fail-fast and --max-failures exclude each other");
  EXPECT_EQ(refused_with({"--until", "2020-01-01 00:00"}), "--until '2020-01-01 00:00' has passed");
  EXPECT_EQ(refused_with({"--detach", "--csv", "x.csv"}),
            "--csv is written while mete follows the sweep, and --detach ends that");
}

TEST_F(SweepTest, MeasuresTheShareOnRequest) {
  const SweepPlan planned = fine({"--gpu", "auto", "--grid", "bs=8,16", "--", "true", "{bs}"});
  EXPECT_TRUE(planned.request.plan.auto_gpu);
  EXPECT_FALSE(planned.request.submit.spec.request.gpu);
  EXPECT_EQ(refused({"--gpu", "auto", "--retries", "1", "--retry-gpu", "x2", "--grid", "a=1,2",
                     "--", "true", "{a}"}),
            "--gpu auto gives a trial that ran out of memory more by itself");
  EXPECT_EQ(refused({"--grid", "a=1,2", "--", "true", "{a}"}), "how much of a card is not said");
  // Elsewhere it means nothing.
  const Result<Parsed> run =
      parse_options(run_options(), {"--gpu", "auto", "true"}, Rest::kCommand);
  ASSERT_TRUE(run);
  EXPECT_EQ(make_run_plan(*run).error().message, "--gpu auto is for mete sweep");
}

TEST_F(SweepTest, FindsMistakesBeforeAnythingIsSent) {
  const Result<SweepPlan> unknown = plan({"--gpu", "0", "--grid", "lr=1,2", "--", "true", "{rl}"});
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().hint.find("lr"), std::string::npos) << unknown.error().hint;
  EXPECT_EQ(refused({"--gpu", "0", "--", "true"}), "the sweep has no parameters");
  EXPECT_EQ(refused({"--gpu", "0", "--grid", "lr=1"}), "the sweep has no command");
  const std::string path = file("space.yaml", "params: {lr: [1, 2]}\n");
  EXPECT_EQ(refused({"--gpu", "0", "--grid", "lr=1", path, "--", "true"}),
            "'space.yaml' is a file with a space, and no program");
  EXPECT_EQ(refused({"--gpu", "0", "--grid", "lr=1", "no-such-program-x"}, 65),
            "there is no program 'no-such-program-x' in PATH");
  EXPECT_NE(plan({"--gpu", "0", "--grid", "lr=1,1", "--", "true", "{lr}"}).error().message, "");
  EXPECT_EQ(exit_code_, 64);
  EXPECT_NE(refused({"--gpu", "0", "--space", file("bad.yaml", "params: {lr: {min: 1, max: 1}}\n"),
                     "--trials", "2", "--", "true", "{lr}"},
                    65),
            "");
  EXPECT_NE(refused({"--gpu", "0", "--space", "/no/such/file", "--", "true"}, 65), "");
  EXPECT_EQ(refused_with({"--log", "out.log"}), "--log would be one file for all trials");
  EXPECT_EQ(with({"--log", "out/%x.log"}).name, "true");
}

TEST_F(SweepTest, RefusesOptionsThatTrialsCannotHave) {
  for (const char* option : {"--array", "--after", "--begin", "--deadline"}) {
    const Result<SweepPlan> result = plan({option, "1", "--grid", "a=1", "--", "true"});
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().message, std::string(option) + " is an option of mete submit");
  }
  for (const char* option : {"--hold", "--no-wait", "--tty"})
    EXPECT_FALSE(plan({option, "--grid", "a=1", "--", "true"}));
}

TEST_F(SweepTest, TellsWhatMayBeAMistake) {
  EXPECT_EQ(fine({"--gpu", "0", "--grid", "lr=1,2", "--", "true"}).notes,
            (Texts{"the command names no parameter: the program finds them in METE_PARAM_LR and "
                   "the like, and in the file METE_PARAMS"}));
  EXPECT_TRUE(fine({"--gpu", "0", "--grid", "lr=1,2", "--as-flags", "--", "true"}).notes.empty());
  EXPECT_EQ(fine({"--gpu", "0", "--grid", "lr=1,2", "--metric", "acc=last", "--minimize", "loss",
                  "--", "true", "{lr}"})
                .notes,
            (Texts{"no --metric finds loss in the output: the program must append it to the file "
                   "METE_METRICS"}));
}

TEST_F(SweepTest, KnowsWhoTakesWhichOption) {
  const auto check = [](std::string_view subverb, const Texts& args) {
    const Result<Parsed> parsed = parse_options(sweep_options(), args, Rest::kWords);
    EXPECT_TRUE(parsed);
    const Result<void> r = check_sweep_options(subverb, *parsed);
    return r ? "" : r.error().message;
  };
  EXPECT_EQ(check("report", {"x", "--html", "a.html", "-o", "json", "-u", "bob"}), "");
  EXPECT_EQ(check("logs", {"x", "3", "-f"}), "");
  EXPECT_EQ(check("extend", {"x", "--trials", "3"}), "");
  EXPECT_EQ(check("show", {"x", "--html", "a"}), "--html is not for mete sweep show");
  EXPECT_EQ(check("pause", {"x", "--gpu", "1"}), "--gpu is not for mete sweep pause");
  EXPECT_EQ(check("", {"--html", "a"}), "--html is not for starting a sweep");
  EXPECT_EQ(sweep_subverb("cancel"), "stop");
  EXPECT_EQ(sweep_subverb("wait"), "follow");
  EXPECT_EQ(sweep_subverb("python"), "");
  EXPECT_EQ(sweep_subverb(""), "");
}

TEST(SweepName, ComesFromTheProgram) {
  EXPECT_EQ(name_for({"./train.sh", "x"}), "train");
  EXPECT_EQ(name_for({"python", "-u", "src/train.py", "--lr", "{lr}"}), "train");
  EXPECT_EQ(name_for({"/usr/bin/python3.11", "fit.py"}), "fit");
  EXPECT_EQ(name_for({"python", "-c", "print(1)"}), "python");
  EXPECT_EQ(name_for({"a b"}), "a-b");
  EXPECT_EQ(name_for({"__x"}), "x");
  EXPECT_EQ(name_for({"ö"}), "sweep");
  EXPECT_EQ(free_name("train", {}), "train");
  EXPECT_EQ(free_name("train", {"train", "train-3"}), "train-2");
  EXPECT_EQ(free_name("train", {"train", "train-2"}), "train-3");
}

TEST(SweepPoints, AreThoseThatTheDaemonDraws) {
  core::sweep::Plan plan;
  core::sweep::Parameter a{"a", std::vector{core::sweep::guess("1"), core::sweep::guess("2")}};
  core::sweep::Parameter b{"b", std::vector{core::sweep::guess("x"), core::sweep::guess("y")}};
  plan.space = *core::sweep::Space::make({a, b});
  plan.sampling.method = Method::kGrid;
  const std::vector<core::sweep::Point> points = first_points(plan, 3);
  ASSERT_EQ(points.size(), 3u);
  EXPECT_EQ(points[0][0]->text + points[0][1]->text, "1x");
  EXPECT_EQ(points[1][0]->text + points[1][1]->text, "1y");
  EXPECT_EQ(first_points(plan, 9).size(), 4u);
}

TEST(SweepDocument, HasListedValuesAsTheyWereWritten) {
  wire::SweepDocument sweep;
  sweep.space.resize(2);
  sweep.space[0].name = "lr";
  sweep.space[0].values = {core::sweep::guess("1e-3"), core::sweep::guess("1e-4")};
  sweep.space[1].name = "opt";
  sweep.space[1].values = {core::sweep::guess("adam"), core::sweep::guess("sgd")};
  wire::SweepDocument::Trial trial;
  trial.n = 1;
  trial.params = {{"opt", core::sweep::of_text("sgd")}, {"lr", core::sweep::of_real(0.001)}};
  sweep.trials = {trial};
  settle_values(sweep);
  ASSERT_EQ(sweep.trials[0].params.size(), 2u);
  EXPECT_EQ(sweep.trials[0].params[0].first, "lr");
  EXPECT_EQ(sweep.trials[0].params[0].second.text, "1e-3");
  EXPECT_EQ(sweep.trials[0].params[1].second.text, "sgd");
  EXPECT_TRUE(space_of(sweep));
}

}  // namespace
}  // namespace mete::cli
