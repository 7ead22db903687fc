// SPDX-License-Identifier: Apache-2.0
// Job files, and the output of --dry-run. A file is written to a temporary folder and parsed by
// `mete submit -f`, as a user would do it; bad() is the error message of a file that is refused.
// The output of --dry-run is read back and must mean the same job.
#include "cli/submit_test.h"

namespace mete::cli {
namespace {

class JobFileTest : public SubmitTest {
 protected:
  Result<SubmitPlan> jobs(const std::string& text, Texts more = {}) {
    more.insert(more.end(), {"-f", file("job.yaml", text)});
    return plan(more);
  }
  std::string bad(const std::string& text) { return refused({"-f", file("job.yaml", text)}, 65); }
  std::string hint(const std::string& text) { return jobs(text).error().hint; }
};

TEST_F(JobFileTest, HasTheOptionsAsKeys) {
  const Result<SubmitPlan> result = jobs(
      "name: train\n"
      "gpu: 0.4\n"
      "devices: [3, 2]\n"
      "time: 1:30:00\n"
      "env: {A: 1, B: x y}\n"
      "labels:\n  team: vision\n"
      "after: [12, '@:any']\n"
      "array: 0-9%2\n"
      "requeue: true\n"
      "hold: no\n"
      "begin: 2025-11-15 18:00\n"
      "priority: -3\n"
      "command: [python, train.py, --epochs, 3]\n");
  ASSERT_TRUE(result) << result.error().message;
  const wire::SubmitRequest& request = result->jobs[0].job.request;
  EXPECT_EQ(to_string(*request.spec.request.gpu), "40%");
  EXPECT_EQ(request.spec.request.devices, (Texts{"3", "2"}));
  EXPECT_EQ(request.spec.time_s, 5400u);
  EXPECT_EQ(request.environment.back(), "B=x y");
  EXPECT_EQ(request.spec.labels.at("team"), "vision");
  EXPECT_EQ(result->jobs[0].job.after.size(), 2u);
  EXPECT_TRUE(request.spec.requeue);
  EXPECT_FALSE(request.spec.held);
  EXPECT_EQ(request.spec.priority, -3);
  EXPECT_EQ(request.spec.command, (Texts{"python", "train.py", "--epochs", "3"}));
  EXPECT_EQ(jobs("gpu: 8G\ncommand: x\n", {"--gpu", "1G"})->jobs[0].job.request.spec.request.gpu,
            *core::parse_gpu("1G"));
}

TEST_F(JobFileTest, RunsALineAProgramOrAScript) {
  core::JobSpec spec =
      jobs("gpu: 0\ncommand: python train.py && echo done\n")->jobs[0].job.request.spec;
  EXPECT_EQ(spec.command, (Texts{"/bin/sh", "-c", "python train.py && echo done"}));
  EXPECT_EQ(spec.name, "python");
  const std::string script = file("s.sh", "#!/bin/sh\n#METE --gpu 8G --time 1h\n");
  wire::SubmitRequest request =
      jobs("time: 2h\nscript: [" + script + ", a]\n")->jobs[0].job.request;
  EXPECT_EQ(request.spec.time_s, 7200u) << "the file wins over the script";
  EXPECT_EQ(to_string(*request.spec.request.gpu), "8G");
  EXPECT_EQ(request.spec.command, (Texts{script, "a"}));
  request = jobs("script: |\n  #!/bin/sh\n  #METE --gpu 1G\n  echo\n")->jobs[0].job.request;
  EXPECT_EQ(request.script, "#!/bin/sh\n#METE --gpu 1G\necho\n");
  EXPECT_EQ(to_string(*request.spec.request.gpu), "1G");
}

TEST_F(JobFileTest, OrdersSeveralJobs) {
  const Result<SubmitPlan> result = jobs(
      "gpu: 8G\n"
      "env: {A: 1}\n"
      "hold: true\n"
      "command: [prog]\n"
      "jobs:\n"
      "  - name: report\n"
      "    after: [train:any, 7]\n"
      "    gpu: 0\n"
      "  - name: train\n"
      "    after: prepare\n"
      "    env: {A: 2, B: 3}\n"
      "    hold: false\n"
      "  - name: prepare\n"
      "    command: other\n");
  ASSERT_TRUE(result) << result.error().message;
  Texts names;
  for (const SubmitPlan::Job& job : result->jobs) names.push_back(job.name);
  EXPECT_EQ(names, (Texts{"prepare", "train", "report"}));
  EXPECT_EQ(result->jobs[1].job.request.environment,
            (Texts{"HOME=/home/ann", "PATH=/bin", "A=2", "B=3"}));
  EXPECT_FALSE(result->jobs[1].job.request.spec.held);
  EXPECT_TRUE(result->jobs[2].job.request.spec.held);
  EXPECT_EQ(to_string(*result->jobs[2].job.request.spec.request.gpu), "0");
  EXPECT_EQ(afters(*result, 2), (Texts{"train:any", "7:ok"}));
  EXPECT_EQ(result->jobs[2].job.after[0].name, "train");
  EXPECT_EQ(result->jobs[0].job.request.spec.command[2], "other");
}

TEST_F(JobFileTest, NamesWhatIsWrong) {
  EXPECT_EQ(bad("gup: 8G\ncommand: x\n"), "job.yaml:1:1: there is no key 'gup'");
  EXPECT_EQ(hint("gup: 8G\ncommand: x\n"), "did you mean gpu?");
  EXPECT_EQ(hint("comand: x\n"), "did you mean command?");
  EXPECT_EQ(hint("label: {a: b}\n"), "did you mean labels?");
  EXPECT_EQ(bad("gpu: 8Q\ncommand: x\n"),
            "job.yaml:1:6: --gpu '8Q': '8Q' is not a size: there is no unit 'Q'");
  EXPECT_EQ(bad("gpu: [8G]\ncommand: x\n"), "job.yaml:1:6: gpu is one word");
  EXPECT_EQ(bad("gpu:\ncommand: x\n"), "job.yaml:1:1: gpu has no value");
  EXPECT_EQ(bad("gpu: 1G\ngpu: 2G\n"), "job.yaml:2:1: 'gpu' is there twice");
  EXPECT_EQ(bad("requeue: maybe\n"), "job.yaml:1:10: requeue is true or false");
  EXPECT_EQ(bad("env: [A]\n"), "job.yaml:1:6: env is a map");
  EXPECT_EQ(bad("env: {A: [1]}\n"), "job.yaml:1:7: env has a name and one word for each");
  EXPECT_EQ(bad("command: [a, {b: c}]\n"), "job.yaml:1:14: command is a list of words");
  EXPECT_EQ(bad("command: a\nscript: b\n"),
            "job.yaml:2:1: a job has a command or a script, not both");
  EXPECT_EQ(bad("compute: 50%\n"), "job.yaml:1:1: compute is not implemented yet");
  EXPECT_EQ(bad("- a\n"), "job.yaml:1:1: a job file is a map of keys and values");
  EXPECT_EQ(bad(""), "job.yaml says nothing");
  EXPECT_EQ(bad("gpu: 1G\n---\ngpu: 1G\n"), "job.yaml:2: a second document begins");
  EXPECT_EQ(bad(",a be\b"), "job.yaml:1:1: this is no YAML")
      << "LoadAll of yaml-cpp 0.7 never ends";
  EXPECT_EQ(bad("gpu: [1\n"), "job.yaml:2:1: this is no YAML");
  EXPECT_EQ(bad("gpu: 1G\n"), "job.yaml:1: there is no program to run");
  EXPECT_EQ(bad("command: x\n"), "job.yaml:1: how much of a card is not said");
  EXPECT_EQ(bad("script: /no/such/script\n").substr(0, 14), "job.yaml:1:9: ");
  EXPECT_EQ(bad("gpu: 0\nscript: |\n  echo\n  echo\n").substr(0, 14), "job.yaml:2:9: ");
  EXPECT_EQ(bad("gpu: 0\nenv: {A: \"x\\0y\"}\ncommand: x\n"),
            "job.yaml:2:7: --env has a byte 0 in it");
  EXPECT_EQ(bad("gpu: 0\ncommand: [x, \"\\0\"]\n"), "job.yaml:1: the command has a byte 0 in it");
  EXPECT_EQ(bad("jobs: {}\n"), "job.yaml:1:7: jobs: is a list of jobs");
  EXPECT_EQ(bad("jobs: []\n"), "job.yaml:1:7: jobs: is a list of jobs");
  EXPECT_EQ(bad("jobs: [x]\n"), "job.yaml:1:8: a job is a map of keys and values");
  EXPECT_EQ(bad("jobs:\n- jobs: []\n"), "job.yaml:2:3: there is no key 'jobs'");
  EXPECT_EQ(refused({"-f", "/no/such/file"}, 65), "open /no/such/file: No such file or directory");
  EXPECT_EQ(refused({"-f", file("j.yaml", "gpu: 0\n"), "prog"}, 64),
            "--file and a command contradict each other");
}

TEST_F(JobFileTest, KeysOfOtherProgramsAreNamedAsOurs) {
  for (const auto& [theirs, ours] : {std::pair("gpus", "gpu"),
                                     {"cards", "gpu"},
                                     {"memory", "ram"},
                                     {"environment", "env"},
                                     {"cwd", "chdir"},
                                     {"output", "log"},
                                     {"cmd", "command"},
                                     {"cpu", "cpus"},
                                     {"tiem", "time"}})
    EXPECT_EQ(hint(std::string(theirs) + ": 1\n"), "did you mean " + std::string(ours) + "?");
}

TEST_F(JobFileTest, RefusesJobsThatWaitForNobody) {
  const std::string head = "gpu: 0\ncommand: x\njobs:\n";
  EXPECT_EQ(bad(head + "- name: a\n  after: b\n- name: b\n  after: [a]\n- name: c\n"),
            "job.yaml:4: jobs wait for each other in a circle");
  EXPECT_EQ(bad(head + "- name: a\n  after: a\n- name: b\n"),
            "job.yaml:4: jobs wait for each other in a circle");
  EXPECT_EQ(bad(head + "- name: prepare\n- after: perpare:ok\n"),
            "job.yaml:5:10: --after 'perpare': no job of this file has that name");
  EXPECT_EQ(hint(head + "- name: prepare\n- after: perpare:ok\n"), "did you mean prepare?");
  EXPECT_EQ(bad(head + "- name: a\n- name: a\n- after: a\n"),
            "job.yaml:6: two jobs have the name 'a', after which this one comes");
  EXPECT_EQ(bad("name: a\n" + head + "- gpu: 0\n"),
            "job.yaml:1:1: beside jobs: there is a name for all of them");
  EXPECT_EQ(refused({"--name", "x", "-f", file("j.yaml", head + "- gpu: 0\n- gpu: 0\n")}, 64),
            "--name would be the same for 2 jobs");
}

// ---- --dry-run ----

TEST_F(JobFileTest, IsPrintedAsAFileThatMeansTheSame) {
  const std::string script = file("s.sh", "#!/bin/sh\n#SBATCH --gres=gpu:2 -t 10 --comment=c\n");
  for (const Texts& args :
       {Texts{"--gpu",           "2x8G",      "-t",      "90",        "--after",
              "@:any,12_[1-2]",  "--array",   "0-9%2",   "-e",        "A=x: 'y'\"",
              "--log",           "%j",        "--begin", "18:00",     "--retry-gpu",
              "x1.05",           "--retries", "2",       "--requeue", "--hold",
              "--label",         "a=",        "--",      "sh",        "-c",
              "echo \"$A\" é\n", "",          "null",    "-x"},
        Texts{"--devices", "0,1", "--no-wait", "--tty", "true"}, Texts{script, "a b"},
        Texts{"--gpu", "8GB..20GB", "--shed", "--no-preempt", "--not-preemptible", "true"},
        Texts{"-f", file("j.yaml",
                         "gpu: 1G\njobs:\n- {name: a, command: x y}\n"
                         "- {after: a, script: \"#!/bin/sh\\n:\"}\n")}}) {
    const Result<SubmitPlan> first = plan(args);
    ASSERT_TRUE(first) << first.error().message;
    const std::string text = plan_as_yaml(*first);
    const Result<SubmitPlan> again = jobs(text);
    ASSERT_TRUE(again) << again.error().message << "\n" << text;
    EXPECT_EQ(plan_as_yaml(*again), text);
    ASSERT_EQ(again->jobs.size(), first->jobs.size());
    for (std::size_t i = 0; i < first->jobs.size(); ++i) {
      EXPECT_EQ(again->jobs[i].job.request.spec, first->jobs[i].job.request.spec) << text;
      EXPECT_EQ(again->jobs[i].job.request.environment, first->jobs[i].job.request.environment);
      EXPECT_EQ(again->jobs[i].job.request.script, first->jobs[i].job.request.script);
      EXPECT_EQ(again->jobs[i].job.after, first->jobs[i].job.after) << text;
    }
  }
}

}  // namespace
}  // namespace mete::cli
