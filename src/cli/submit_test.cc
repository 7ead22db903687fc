// SPDX-License-Identifier: Apache-2.0
// The command line of `mete submit`.
#include "cli/submit_test.h"

namespace mete::cli {
namespace {

TEST_F(SubmitTest, SaysEverythingThatWasAskedFor) {
  const wire::SubmitRequest request = one({"--gpu",
                                           "2x8G",
                                           "--gpu-type",
                                           "H200",
                                           "-t",
                                           "2h",
                                           "-J",
                                           "train",
                                           "--array",
                                           "0-9%2",
                                           "--log",
                                           "out/%j.txt",
                                           "--err",
                                           "/tmp/%A_%a.err",
                                           "--retries",
                                           "3",
                                           "--retry-gpu",
                                           "x1.5",
                                           "--requeue",
                                           "--begin",
                                           "18:00",
                                           "--deadline",
                                           "tomorrow 08:00",
                                           "-H",
                                           "--priority",
                                           "-5",
                                           "--procs",
                                           "2",
                                           "--cpus",
                                           "4",
                                           "--ram",
                                           "16G",
                                           "-l",
                                           "team=vision",
                                           "--label",
                                           "x=",
                                           "--visible",
                                           "index",
                                           "--",
                                           "python",
                                           "train.py",
                                           "--gpu",
                                           "3"});
  const core::JobSpec& spec = request.spec;
  EXPECT_EQ(to_string(*spec.request.gpu), "2x8G");
  EXPECT_EQ(spec.request.gpu_type, "H200");
  EXPECT_EQ(spec.request.procs, 2u);
  EXPECT_EQ(spec.request.cpus, 4u);
  EXPECT_EQ(spec.request.ram, Bytes::from_gib(16));
  EXPECT_EQ(spec.time_s, 7200u);
  EXPECT_EQ(spec.name, "train");
  EXPECT_EQ(core::to_string(*spec.array), "0-9%2");
  EXPECT_EQ(spec.retries, 3u);
  EXPECT_EQ(spec.retry_gpu_pct, 150u);
  EXPECT_TRUE(spec.requeue);
  EXPECT_TRUE(spec.held);
  EXPECT_EQ(to_string(*spec.begin), "2025-11-15T18:00:00.000Z");
  EXPECT_EQ(to_string(*spec.deadline), "2025-11-16T08:00:00.000Z");
  EXPECT_EQ(spec.priority, -5);
  EXPECT_EQ(spec.labels, (std::map<std::string, std::string>{{"team", "vision"}, {"x", ""}}));
  EXPECT_EQ(spec.command, (Texts{"python", "train.py", "--gpu", "3"}));
  EXPECT_EQ(spec.folder, "/home/ann/50% off");
  EXPECT_EQ(spec.detached->log, "/home/ann/50%% off/out/%j.txt") << "a folder is no pattern";
  EXPECT_EQ(spec.detached->err, "/tmp/%A_%a.err");
  EXPECT_EQ(spec.detached->umask, 027u);
  EXPECT_TRUE(spec.detached->visible_by_index);
  EXPECT_FALSE(spec.detached->tty);
  EXPECT_TRUE(request.wait);
}

TEST_F(SubmitTest, TakesTheEnvironmentAlongButNotThatOfAnotherJob) {
  around_.environment = {"HOME=/home/ann",
                         "METE_JOB_ID=3",
                         "METE_GRANT=/x",
                         "METE_STATE_DIR=/s",
                         "EMPTY=",
                         "=odd",
                         "METE_JOB_TOKEN=1.2",
                         "METE_ARRAY_INDEX=4",
                         "METE_SIM=1xH200",
                         "LD_PRELOAD=/a/libmete.so:/b/mine.so",
                         "A=old"};
  EXPECT_EQ(one({"--gpu", "0", "-e", "A=new", "--env", "B=x=y", "prog"}).environment,
            (Texts{"HOME=/home/ann", "METE_STATE_DIR=/s", "EMPTY=", "METE_SIM=1xH200",
                   "LD_PRELOAD=/b/mine.so", "A=new", "B=x=y"}));
  EXPECT_EQ(refused({"--gpu", "0", "--env", "METE_GRANT=x", "prog"}),
            "--env cannot set METE_GRANT: mete sets it for the program");
}

TEST_F(SubmitTest, FindsItsFolder) {
  EXPECT_EQ(one({"--gpu", "0", "-D", "run", "--log", "l", "p"}).spec.folder,
            "/home/ann/50% off/run");
  EXPECT_EQ(one({"--gpu", "0", "-D", "/run", "--log", "l", "p"}).spec.detached->log, "/run/l");
  around_.folder = "";
  EXPECT_EQ(one({"--gpu", "0", "-D", "/run", "p"}).spec.folder, "/run");
  EXPECT_EQ(plan({"--gpu", "0", "p"}).error().message, "this folder is gone");
}

TEST_F(SubmitTest, WaitsForOtherJobs) {
  const Result<SubmitPlan> result =
      plan({"--gpu", "0", "--after", "12,13_[1,3]:any", "--after=@~1:fail", "p"});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(afters(*result), (Texts{"12:ok", "13_[1,3]:any", "@~1:fail"}));
  EXPECT_EQ(refused({"--gpu", "0", "--after", "12:done", "p"}),
            "--after '12:done': there is no 'done'");
  EXPECT_EQ(refused({"--gpu", "0", "--after", "prepare", "p"}), "--after 'prepare' names no job");
  EXPECT_EQ(refused({"--gpu", "0", "--after", "12,", "p"}), "--after '' names no job");
}

TEST_F(SubmitTest, RefusesWhatIsWrong) {
  const auto with = [&](Texts more) {
    more.insert(more.begin(), {"--gpu", "8G"});
    more.push_back("p");
    return refused(more);
  };
  EXPECT_EQ(with({"--array", "0-999999"}), "--array '0-999999': an array has at most 50000 jobs");
  EXPECT_EQ(with({"--retries", "-1"}), "--retries '-1' is not a number between 0 and 1000");
  for (const char* factor : {"1.5", "x1", "x0.5", "x11", "x", "x1.005", "x1.5.0"})
    EXPECT_EQ(with({"--retry-gpu", factor}),
              std::string("--retry-gpu '") + factor + "' is no factor from x1.01 to x10");
  EXPECT_EQ(with({"--begin", "6pm"}), "--begin '6pm' is no time");
  EXPECT_EQ(with({"--deadline", "now"}), "--deadline 'now' has passed");
  EXPECT_EQ(with({"--begin", "now+2h", "--deadline", "now+1h"}),
            "its deadline is not after its begin");
  EXPECT_EQ(with({"--log", "%q"}), "--log '%q': there is no '%q'");
  EXPECT_EQ(with({"--log", "x%"}), "--log 'x%': there is no '%'");
  EXPECT_EQ(with({"--err", "logs/"}), "--err 'logs/' is no file");
  EXPECT_EQ(with({"--tty", "--err", "x"}),
            "--tty and --err contradict each other: a terminal has one output");
  EXPECT_EQ(with({"--label", "x"}), "--label 'x' is not KEY=VALUE");
  EXPECT_EQ(with({"--priority", "1001"}),
            "--priority '1001' is not a number between -1000 and 1000");
  EXPECT_EQ(with({"--time", "soon"}), "--time 'soon' is no duration");
  EXPECT_EQ(with({"--no-wait", "--hold"}), "--no-wait and --hold contradict each other");
  EXPECT_EQ(with({"--no-wait", "--begin", "now+1h"}),
            "--no-wait and --begin contradict each other");
  EXPECT_EQ(refused({"--gpu", "8G"}), "there is no program to run");
  EXPECT_EQ(refused({"--gpu", "8G", "--", ""}), "the name of the program is empty");
  EXPECT_EQ(refused({"p"}), "how much of a card is not said");
  EXPECT_EQ(refused({"--gpu", "0", "--retry-gpu", "x2", "p"}),
            "--retry-gpu needs a share of a card that can be made larger");
  EXPECT_EQ(refused({"--exec", "--gpu", "0", "p"}), "--exec is an option of mete run");
}

TEST_F(SubmitTest, OptionsThatDoNothingAloneAreRefused) {
  EXPECT_EQ(refused({"--gpu", "8G", "--retry-gpu", "x1.5", "p"}), "--retry-gpu needs --retries");
  EXPECT_EQ(refused({"--gpu", "8G..20G", "--retry-gpu", "x1.5", "--retries", "2", "p"}),
            "--retry-gpu needs a share of a card that can be made larger");
  EXPECT_EQ(refused({"--gpu", "8G", "--shed", "p"}), "--shed is for shares that grow");
  EXPECT_EQ(refused({"--gpu", "8G", "--notify", "none", "--notify-on", "end", "p"}),
            "--notify none contradicts --notify-on");
}

TEST_F(SubmitTest, ALogIsNotWhatOnlyThisCommandHas) {
  for (const char* path :
       {"/dev/stdout", "/dev/stderr", "/dev/fd/1", "/proc/self/fd/1", "/dev/tty"})
    EXPECT_NE(refused({"--cpu-only", "--log", path, "--", "true"}).find(path), std::string::npos);
  EXPECT_EQ(one({"--cpu-only", "--log", "/dev/null", "--", "true"}).spec.detached->log,
            "/dev/null");
}

TEST_F(SubmitTest, APlanNamesItsScriptFromEverywhere) {
  const std::string path = file("s.sh", "#!/bin/sh\n#METE --cpu-only\n");
  EXPECT_NE(plan_as_yaml(*plan({path, "a"})).find("script: [\"" + path + "\",\"a\"]"),
            std::string::npos);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder_);
  around_.folder = folder_;
  const Result<SubmitPlan> relative = plan({"./s.sh"});
  const Result<SubmitPlan> in_file = plan({"-f", file("j.yaml", "script: s.sh\ncpu-only: true\n")});
  std::filesystem::current_path(before);
  ASSERT_TRUE(relative) << relative.error().message;
  ASSERT_TRUE(in_file) << in_file.error().message;
  EXPECT_NE(plan_as_yaml(*relative).find("script: [\"" + folder_ + "/./s.sh\"]"),
            std::string::npos);
  EXPECT_NE(plan_as_yaml(*in_file).find("script: [\"" + folder_ + "/s.sh\"]"), std::string::npos);
}

}  // namespace
}  // namespace mete::cli
