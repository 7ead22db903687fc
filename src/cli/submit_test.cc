// SPDX-License-Identifier: Apache-2.0
// The command line of `mete submit`.
#include "cli/submit_test.h"

#include <algorithm>

#include "cli/run_plan.h"

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
                         "METE_METRICS=/x/metrics.jsonl",
                         "METE_PARAM_LR=0.1",
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

// ---- the same words by every road ----

struct Road {
  std::string_view option;
  std::string value;  // "": a flag
  Texts with = {"--gpu", "8G"};
};

// One example of every option of a job, with what it needs beside it.
const std::vector<Road>& roads() {
  static const std::vector<Road> all{
      {"--gpu", "8GB..20GB", {}},
      {"--devices", "1,0", {}},
      {"--gpu-type", "H200"},
      {"--where", "attribute:gpu.memory >= 16G"},
      {"--cpu-only", "", {}},
      {"--or-cpu", ""},
      {"--time", "2h"},
      {"--name", "train it"},
      {"--after", "12:any"},
      {"--array", "0-9%2"},
      {"--log", "out/%j.txt"},
      {"--err", "/tmp/%j.err"},
      {"--retries", "2"},
      {"--retry-gpu", "x1.5", {"--gpu", "8G", "--retries", "2"}},
      {"--requeue", ""},
      {"--begin", "now+2h"},
      {"--deadline", "tomorrow 08:00"},
      {"--hold", ""},
      {"--priority", "-5"},
      {"--procs", "2"},
      {"--cpus", "3"},
      {"--ram", "8GB"},
      {"--tty", ""},
      {"--label", "team=vision"},
      {"--env", "A=b c"},
      {"--chdir", "/run"},
      {"--visible", "index"},
      {"--no-wait", ""},
      {"--notify", "mail:ann@example.org"},
      {"--notify-on", "start,oom"},
      {"--preemptible", ""},
      {"--not-preemptible", ""},
      {"--idle", "10m"},
      {"--no-preempt", ""},
      {"--shed", "", {"--gpu", "8G..20G"}},
  };
  return all;
}

class RoadsTest : public SubmitTest {
 protected:
  // "--gpu", "8G", ... as the lines of a job file.
  static std::string yaml(const Texts& words) {
    std::string text;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const bool flag = i + 1 == words.size() || words[i + 1].starts_with("--");
      const std::string key = words[i] == "--label" ? "labels" : words[i].substr(2);
      const std::string value = flag ? "true" : words[++i];
      const std::size_t equals = value.find('=');
      if (key == "env" || key == "labels")
        text += key + ": {" + value.substr(0, equals) + ": \"" + value.substr(equals + 1) + "\"}\n";
      else
        text += key + ": " + (flag ? value : "\"" + value + "\"") + "\n";
    }
    return text;
  }
  static std::string mete_line(const Texts& words) {
    std::string text = "#METE";
    for (const std::string& word : words) text += " '" + word + "'";
    return text + "\n";
  }
  // What differs by the road and by nothing else is made the same.
  static SubmitPlan::Job plain(const Result<SubmitPlan>& plan, const Road& road) {
    EXPECT_TRUE(plan) << road.option << ": " << plan.error().message;
    if (!plan) return {};
    SubmitPlan::Job job = plan->jobs.at(0);
    core::JobSpec& spec = job.job.request.spec;
    spec.command = {"prog"};
    if (road.option != "--name") spec.name = "prog";
    job.job.request.script.clear();
    return job;
  }
  static void expect_same(const SubmitPlan::Job& one, const SubmitPlan::Job& other,
                          const Road& road, const char* by) {
    EXPECT_EQ(one.job.request.spec, other.job.request.spec) << road.option << " by " << by;
    EXPECT_EQ(one.job.request.wait, other.job.request.wait) << road.option << " by " << by;
    EXPECT_EQ(one.job.request.environment, other.job.request.environment) << road.option;
    EXPECT_EQ(one.job.after, other.job.after) << road.option << " by " << by;
  }
  static bool offers(std::span<const OptionSpec> specs, std::string_view name) {
    return std::any_of(specs.begin(), specs.end(),
                       [&](const OptionSpec& spec) { return spec.name == name && spec.offered(); });
  }
};

TEST_F(RoadsTest, EveryOptionGoesByEveryRoad) {
  for (const OptionSpec& spec : submit_options()) {
    if (!spec.offered() || is_of_command_line(spec.name)) continue;
    const auto road = std::find_if(roads().begin(), roads().end(),
                                   [&](const Road& each) { return each.option == spec.name; });
    ASSERT_NE(road, roads().end()) << spec.name << " has no example";
    Texts words = road->with;
    words.emplace_back(spec.name);
    if (!spec.value.empty()) words.push_back(road->value);
    Texts args = words;
    args.insert(args.end(), {"--", "prog"});
    const SubmitPlan::Job said = plain(plan(args), *road);
    const std::string script = file("s.sh", "#!/bin/sh\n" + mete_line(words));
    expect_same(plain(plan({script}), *road), said, *road, "#METE");
    const std::string job = file("j.yaml", yaml(words) + "command: [prog]\n");
    expect_same(plain(plan({"-f", job}), *road), said, *road, "a job file");
    const std::string printed = file("p.yaml", plan_as_yaml(*plan(args)) + "\n");
    expect_same(plain(plan({"-f", printed}), *road), said, *road, "--dry-run");
  }
}

// What `mete run` takes `mete submit` takes too, and means the same by it; what only one of them
// can do, the other names.
TEST_F(RoadsTest, RunAndSubmitHaveTheSameOptions) {
  for (const OptionSpec& spec : run_options()) {
    if (!spec.offered() || spec.name == "--exec") continue;
    EXPECT_TRUE(offers(submit_options(), spec.name)) << spec.name;
  }
  for (const OptionSpec& spec : submit_options()) {
    if (!spec.offered() || spec.name == "--file") continue;
    const auto of_run =
        std::find_if(run_options().begin(), run_options().end(),
                     [&](const OptionSpec& each) { return each.name == spec.name; });
    ASSERT_NE(of_run, run_options().end()) << spec.name;
    const auto road = std::find_if(roads().begin(), roads().end(),
                                   [&](const Road& each) { return each.option == spec.name; });
    if (road == roads().end() || !of_run->offered()) continue;
    Texts args = road->with;
    args.emplace_back(spec.name);
    if (!spec.value.empty()) args.push_back(road->value);
    args.insert(args.end(), {"--", "prog"});
    const Result<Parsed> parsed = parse_options(run_options(), args, Rest::kCommand);
    ASSERT_TRUE(parsed) << spec.name << ": " << parsed.error().message;
    const Result<RunPlan> run = make_run_plan(*parsed);
    ASSERT_TRUE(run) << spec.name << ": " << run.error().message;
    core::JobSpec submitted = plain(plan(args), *road).job.request.spec;
    submitted.detached.reset();
    submitted.folder = run->job.spec.folder;
    EXPECT_EQ(run->job.spec, submitted) << spec.name;
  }
}

TEST_F(RoadsTest, TheCommandLineWinsWhereTwoOptionsAreAboutOneThing) {
  const std::string script = file("s.sh", "#!/bin/sh\n#METE --gpu 8G --preemptible\n");
  EXPECT_EQ(one({"--not-preemptible", script}).spec.preemptible, false);
  EXPECT_EQ(one({script}).spec.preemptible, true);
  EXPECT_EQ(
      one({"-f", file("j.yaml", "gpu: 8G\npreemptible: false\ncommand: x\n")}).spec.preemptible,
      false)
      << "said, and not left to the configuration";
  EXPECT_TRUE(
      one({"-f", file("j.yaml", "gpu: 8G\nno_preempt: true\ncommand: x\n")}).spec.no_preempt);
}

TEST_F(SubmitTest, OptionsThatDoNothingAloneAreRefused) {
  EXPECT_EQ(refused({"--gpu", "8G", "--retry-gpu", "x1.5", "p"}), "--retry-gpu needs --retries");
  EXPECT_EQ(refused({"--gpu", "8G..20G", "--retry-gpu", "x1.5", "--retries", "2", "p"}),
            "--retry-gpu needs a share of a card that can be made larger");
  EXPECT_EQ(refused({"--gpu", "8G", "--shed", "p"}), "--shed is for shares that grow");
  EXPECT_EQ(refused({"--gpu", "8G", "--idle", "0", "p"}), "--idle '0' is no duration");
  EXPECT_EQ(refused({"--gpu", "8G", "--idle", "10m", "--not-preemptible", "p"}),
            "--not-preemptible and --idle contradict each other");
  EXPECT_EQ(refused({"--cpu-only", "--idle", "10m", "p"}), "--idle is for jobs with a GPU");
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
