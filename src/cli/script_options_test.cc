// SPDX-License-Identifier: Apache-2.0
// The lines of a script, ours and those of Slurm, and which of them wins.
#include "cli/submit_test.h"

namespace mete::cli {
namespace {

TEST_F(SubmitTest, ReadsTheLinesOfAScript) {
  const std::string script = file("train.sh",
                                  "#!/bin/bash\n"
                                  "# a comment\n"
                                  "#METE --gpu 8G --time 2h   # not for long\n"
                                  "\n"
                                  "#METE -e 'A=x y' --name \"the \\\"best\\\"\"\n"
                                  "#METEOR --gpu 9G\n"
                                  "echo hello\n");
  const wire::SubmitRequest request = one({"--time", "1h", script, "a", "--gpu"});
  EXPECT_EQ(to_string(*request.spec.request.gpu), "8G");
  EXPECT_EQ(request.spec.time_s, 3600u) << "the command line wins";
  EXPECT_EQ(request.spec.name, "the \"best\"");
  EXPECT_EQ(request.environment.back(), "A=x y");
  EXPECT_EQ(request.spec.command, (Texts{script, "a", "--gpu"}));
  EXPECT_EQ(request.script.substr(0, 11), "#!/bin/bash");
}

TEST_F(SubmitTest, RunsWhatComesAfterDashesWhereItLies) {
  const std::string script = file("train.sh", "#!/bin/bash\n#METE --gpu 8G\n");
  EXPECT_EQ(one({"--gpu", "1G", "--", script}).script, "");
  EXPECT_EQ(to_string(*one({"--gpu", "1G", "--", script}).spec.request.gpu), "1G");
  EXPECT_EQ(one({"--gpu", "1G", file("program", std::string("\177ELF\0", 5))}).script, "");
  EXPECT_EQ(one({"--gpu", "1G", folder_}).script, "");
  EXPECT_EQ(one({"--gpu", "1G", "/no/such"}).script, "");
}

TEST_F(SubmitTest, RefusesAScriptWithoutAShebang) {
  EXPECT_EQ(refused({"--gpu", "1G", file("a.sh", "echo hello\n")}, 65),
            "a.sh has no shebang, so nothing says what runs it");
  EXPECT_EQ(refused({file("b.sh", "#METE --gpu 1G\necho hello\n")}, 65),
            "b.sh has no shebang, so nothing says what runs it");
  EXPECT_EQ(refused({"--gpu", "1G", file("c.sh", "#!/bin/sh\r\necho hello\r\n")}, 65),
            "c.sh:1: its lines end as DOS has them");
  EXPECT_EQ(refused({"--gpu", "1G", file("d.sh", "#!/bin/sh\n" + std::string(1 << 19, ' '))}, 65),
            "d.sh is too large to send along");
}

TEST_F(SubmitTest, SaysInWhichLineOfAScriptAMistakeIs) {
  const auto in_script = [&](const std::string& line) {
    return refused({file("x.sh", "#!/bin/sh\n" + line + "\n")}, 65);
  };
  EXPECT_EQ(in_script("#METE --gup 8G"), "x.sh:2: there is no option '--gup'");
  EXPECT_EQ(in_script("#METE --gpu 8Q"),
            "x.sh:2: --gpu '8Q': '8Q' is not a size: there is no unit 'Q'");
  EXPECT_EQ(in_script("#METE --gpu 8G\n#METE --gpu 8G"), "x.sh:3: --gpu is given twice");
  EXPECT_EQ(in_script("#METE --gpu '8G"), "x.sh:2: a quote is not closed");
  EXPECT_EQ(in_script("#METE --gpu 8G train.py"), "x.sh:2: 'train.py' is not expected here");
  EXPECT_EQ(in_script("#METE --dry-run"),
            "x.sh:2: --dry-run has its place on the command line alone");
  EXPECT_EQ(in_script("#METE --time 2h"), "x.sh: how much of a card is not said");
  EXPECT_EQ(refused({"--gpu", "8Q", file("x.sh", "#!/bin/sh\n#METE --time x\n")}, 64),
            "--gpu '8Q': '8Q' is not a size: there is no unit 'Q'");
}

TEST_F(SubmitTest, WarnsOfLinesThatComeTooLate) {
  const Result<SubmitPlan> result =
      plan({file("x.sh", "#!/bin/sh\n#METE --gpu 0\ncd /\n#METE --time x\n#SBATCH -t y\n")});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->warnings,
            (Texts{folder_ + "/x.sh:4: lines for mete after the first command are not read"}));
}

TEST_F(SubmitTest, MergesByOptionAndByName) {
  const std::string script =
      file("x.sh",
           "#!/bin/sh\n#METE --gpu 8G --gpu-type H200 --devices 1 -e A=1 -e B=1\n"
           "#METE --after 5 --after 6\n");
  wire::SubmitRequest request = one({"--gpu", "4G", "-e", "B=2", script});
  EXPECT_EQ(to_string(*request.spec.request.gpu), "4G");
  EXPECT_EQ(request.spec.request.gpu_type, "H200");
  EXPECT_EQ(request.spec.request.devices, Texts{"1"});
  EXPECT_EQ(request.environment, (Texts{"HOME=/home/ann", "PATH=/bin", "A=1", "B=2"}));
  request = one({"--cpu-only", script});
  EXPECT_EQ(request.spec.request.gpu, core::no_gpu());
  EXPECT_TRUE(request.spec.request.devices.empty());
  EXPECT_EQ(request.spec.request.gpu_type, std::nullopt);
  EXPECT_EQ(afters(*plan({"--after", "7", script})), Texts{"7:ok"});
}

// ---- #SBATCH ----

class SlurmTest : public SubmitTest {
 protected:
  std::string script(const std::string& lines) {
    return file("s.sh", "#!/bin/bash\n#SBATCH " + lines + "\nsrun hostname\n");
  }
  wire::SubmitRequest job(const std::string& lines) { return one({script(lines)}); }
  std::string bad(const std::string& lines) { return refused({script(lines)}, 65); }
};

TEST_F(SlurmTest, CommonOptionsMeanWhatTheyMeanThere) {
  const core::JobSpec spec =
      job("-J net -t 1-12:30 -o out-%j.%x -e err-%A_%a.%u --gres=gpu:h200:2\n"
          "#SBATCH --mem=16G -c 8 --array=0-15%4 -D /data --requeue\n"
          "#SBATCH --begin=now+1hour --nice=10 --comment='a b' --hold")
          .spec;
  EXPECT_EQ(spec.name, "net");
  EXPECT_EQ(spec.time_s, (36u * 60 + 30) * 60);
  EXPECT_EQ(spec.detached->log, "/data/out-%j.%x");
  EXPECT_EQ(spec.detached->err, "/data/err-%A_%a.%u");
  EXPECT_EQ(to_string(*spec.request.gpu), "2");
  EXPECT_EQ(spec.request.gpu_type, "h200");
  EXPECT_EQ(spec.request.ram, Bytes::from_gib(16));
  EXPECT_EQ(spec.request.cpus, 8u);
  EXPECT_EQ(core::to_string(*spec.array), "0-15%4");
  EXPECT_EQ(spec.folder, "/data");
  EXPECT_TRUE(spec.requeue);
  EXPECT_TRUE(spec.held);
  EXPECT_EQ(spec.begin, (WallTime{kNow.ms + 3'600'000}));
  EXPECT_EQ(spec.priority, -10);
  EXPECT_EQ(spec.labels.at("comment"), "a b");
}

TEST_F(SlurmTest, TimesAreMinutesFirst) {
  const auto seconds = [&](const std::string& time) { return job("-t " + time).spec.time_s; };
  EXPECT_EQ(seconds("90"), 5400u);
  EXPECT_EQ(seconds("10:30"), 630u);
  EXPECT_EQ(seconds("1:30:00"), 5400u);
  EXPECT_EQ(seconds("2-12"), 216000u);
  EXPECT_EQ(seconds("2-12:30"), 217800u);
  EXPECT_EQ(seconds("2-12:30:05"), 217805u);
  EXPECT_EQ(seconds("0"), std::nullopt);
  EXPECT_EQ(seconds("UNLIMITED"), std::nullopt);
  EXPECT_EQ(bad("-t 2h"), "s.sh:2: #SBATCH --time '2h' is no time");
}

TEST_F(SlurmTest, CardsAreAskedForInManyWays) {
  const auto gpu = [&](const std::string& lines) {
    const core::Request request = job(lines).spec.request;
    return to_string(*request.gpu) + (request.gpu_type ? ":" + *request.gpu_type : "");
  };
  EXPECT_EQ(gpu("--gres=gpu"), "1");
  EXPECT_EQ(gpu("--gres=gpu:2"), "2");
  EXPECT_EQ(gpu("--gres gpu:H200:1"), "1:H200");
  EXPECT_EQ(gpu("--gres=gpu:a100"), "1:a100");
  EXPECT_EQ(gpu("--gres=gpu:0"), "0");
  EXPECT_EQ(gpu("-G 2"), "2");
  EXPECT_EQ(gpu("--gpus=h200:2"), "2:h200");
  EXPECT_EQ(gpu("--gpus-per-node=4 --gres=gpu:h200:4"), "4:h200");
  EXPECT_EQ(gpu("--gpus 1 --gpus 3"), "3") << "the last holds";
  EXPECT_EQ(bad("--gpus 1 --gres=gpu:2"), "s.sh:2: the options ask for 1 and for 2 GPUs");
  EXPECT_EQ(bad("--gpus=x:y:2"), "s.sh:2: #SBATCH --gpus 'x:y:2' is no number of GPUs");
  EXPECT_EQ(bad("--gres=gpu:a:1,gpu:b:1"),
            "s.sh:2: #SBATCH --gres 'gpu:a:1,gpu:b:1' is not possible here");
  EXPECT_EQ(bad("--gres=shard:8"), "s.sh:2: #SBATCH --gres 'shard:8' is not possible here");
}

TEST_F(SlurmTest, WithoutOneItSeesNone) {
  const Result<SubmitPlan> result = plan({script("-t 10")});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->jobs[0].job.request.spec.request.gpu, core::no_gpu());
  EXPECT_EQ(result->warnings,
            (Texts{folder_ + "/s.sh: its #SBATCH lines ask for no GPU, so the job will see none"}));
  EXPECT_EQ(to_string(*one({"--gpu", "8G", script("-t 10")}).spec.request.gpu), "8G");
}

TEST_F(SlurmTest, MemoryAndCpusMultiply) {
  EXPECT_EQ(job("--mem=512").spec.request.ram, Bytes::from_mib(512));
  EXPECT_EQ(job("--mem=0").spec.request.ram, std::nullopt) << "all there is";
  EXPECT_EQ(job("--mem-per-cpu=2G -c 4").spec.request.ram, Bytes::from_gib(8));
  EXPECT_EQ(job("--mem-per-gpu=32G --gpus=2").spec.request.ram, Bytes::from_gib(64));
  EXPECT_EQ(job("--cpus-per-gpu=6 --gpus=2").spec.request.cpus, 12u);
  EXPECT_EQ(bad("--mem-per-gpu=1G"), "s.sh:2: --mem-per-gpu without a GPU");
  EXPECT_EQ(bad("--mem=lots"), "s.sh:2: #SBATCH --mem 'lots' is no amount of memory");
}

TEST_F(SlurmTest, DependenciesAreOurs) {
  const auto after = [&](const std::string& text) {
    const Result<SubmitPlan> result = plan({script("--dependency=" + text)});
    EXPECT_TRUE(result) << result.error().message;
    return afters(*result);
  };
  EXPECT_EQ(after("afterok:12:13,afterany:14"), (Texts{"12:ok", "13:ok", "14:any"}));
  EXPECT_EQ(after("afternotok:12_3"), Texts{"12_3:fail"});
  EXPECT_EQ(bad("-d singleton"), "s.sh:2: #SBATCH --dependency 'singleton' is not possible here");
  EXPECT_EQ(bad("-d after:12+5"), "s.sh:2: #SBATCH --dependency 'after' is not possible here");
  EXPECT_EQ(bad("-d afterok:1?afterok:2"),
            "s.sh:2: #SBATCH --dependency with ? is not possible here");
  EXPECT_EQ(bad("-d afterok:x"), "s.sh:2: --after 'x' names no job");
  EXPECT_EQ(bad("-d afterok"), "s.sh:2: #SBATCH --dependency 'afterok' names no job");
}

TEST_F(SlurmTest, MailIsANotification) {
  const auto notify = [&](const std::string& options) {
    const core::NotifySpec spec = job(options).spec.notify;
    Texts words;
    for (const core::NotifyTarget& target : spec.to) words.push_back(to_string(target));
    for (const core::NotifyOn on : spec.on) words.emplace_back(to_string(on));
    return words;
  };
  EXPECT_EQ(notify("--mail-type=END"), (Texts{"mail", "end"}));
  EXPECT_EQ(notify("--mail-type=begin,FAIL --mail-user=a@example.org,bob"),
            (Texts{"mail:a@example.org", "mail:bob", "start", "fail", "oom"}));
  EXPECT_EQ(notify("--mail-user=a@example.org --mail-type ALL"),
            (Texts{"mail:a@example.org", "start", "end", "fail", "oom"}));
  EXPECT_EQ(notify("--mail-type=ALL --mail-type=NONE"), Texts{});
  EXPECT_EQ(bad("--mail-type=END --mail-user='a b'").substr(0, 8), "s.sh:2: ");
  const auto warning = [&](const std::string& options) {
    const Result<SubmitPlan> result = plan({script(options + " --gpus=1")});
    EXPECT_TRUE(result && result->warnings.size() == 1);
    return result ? result->warnings.at(0).substr(folder_.size() + 1) : "";
  };
  EXPECT_EQ(warning("--mail-type=END,TIME_LIMIT_80"),
            "s.sh:2: #SBATCH --mail-type 'TIME_LIMIT_80' has no meaning here and was left out");
  EXPECT_EQ(warning("--mail-user=a@example.org"),
            "s.sh:2: #SBATCH --mail-user without --mail-type sends no mail");
}

TEST_F(SlurmTest, WhatHasNoMeaningIsNamed) {
  const Result<SubmitPlan> result =
      plan({script("-p gpu -A lab --gpus 1\n#SBATCH --wckey=x --qos high --gres=gpu:1,tmp:5")});
  ASSERT_TRUE(result) << result.error().message;
  Texts names;
  for (const std::string& warning : result->warnings)
    names.push_back(warning.substr(folder_.size() + 1));
  EXPECT_EQ(names, (Texts{"s.sh:2: #SBATCH --partition has no meaning here and was left out",
                          "s.sh:2: #SBATCH --account has no meaning here and was left out",
                          "s.sh:3: #SBATCH --wckey has no meaning here and was left out",
                          "s.sh:3: #SBATCH --qos has no meaning here and was left out",
                          "s.sh:3: #SBATCH --gres 'tmp:5' has no meaning here and was left out"}));
}

TEST_F(SlurmTest, WhatIsSaidForATaskIsNeededForEach) {
  const wire::SubmitRequest tasks = job("-n4 --gpus-per-task=1 -c 2 --mem-per-cpu=1G");
  EXPECT_EQ(to_string(*tasks.spec.request.gpu), "4");
  EXPECT_EQ(tasks.spec.request.cpus, 8u);
  EXPECT_EQ(tasks.spec.request.ram, Bytes::from_gib(8));
  EXPECT_EQ(tasks.spec.request.procs, 1u) << "the script runs once: its srun starts the tasks";
  EXPECT_EQ(tasks.environment.back(), "SLURM_METE_TASKS=4");
  EXPECT_EQ(job("--gpus=2 --ntasks-per-gpu=3").environment.back(), "SLURM_METE_TASKS=6");
  EXPECT_EQ(bad("-n2 --gpus-per-task=1 --gpus=3"), "s.sh:2: the options ask for 3 and for 2 GPUs");
}

TEST_F(SlurmTest, WhatWouldBeAnotherJobIsRefused) {
  EXPECT_EQ(job("-N 1 -n1 --ntasks-per-node=1 --nodes=1-1 --export=ALL").spec.request.procs, 1u);
  EXPECT_EQ(job("--export=ALL,A=1").environment.back(), "A=1");
  EXPECT_EQ(bad("-N 2"), "s.sh:2: #SBATCH --nodes '2' is not possible here");
  EXPECT_EQ(bad("--ntasks=many"), "s.sh:2: #SBATCH --ntasks 'many' is no number of tasks");
  EXPECT_EQ(bad("--ntasks-per-gpu=2"), "s.sh:2: #SBATCH --ntasks-per-gpu '2' without a GPU");
  EXPECT_EQ(bad("--exclusive"), "s.sh:2: #SBATCH --exclusive is not possible here");
  EXPECT_EQ(bad("--export=NONE"), "s.sh:2: #SBATCH --export 'NONE' is not possible here");
  EXPECT_EQ(bad("--export=A,B"), "s.sh:2: #SBATCH --export 'A,B' is not possible here");
  EXPECT_EQ(bad("--partitoin=x"), "s.sh:2: #SBATCH '--partitoin': sbatch has no such option");
  EXPECT_EQ(bad("-Z"), "s.sh:2: #SBATCH '-Z': sbatch has no such option");
  EXPECT_EQ(bad("hetjob"), "s.sh:2: #SBATCH 'hetjob' is no option");
  EXPECT_EQ(bad("--mem"), "s.sh:2: #SBATCH --mem needs a value");
  EXPECT_EQ(bad("--hold=1"), "s.sh:2: #SBATCH --hold takes no value");
  EXPECT_EQ(bad("-o x-%4j"),
            "s.sh:2: #SBATCH --output 'x-%4j' has a pattern that is not known here");
}

TEST_F(SlurmTest, OurOwnLinesWin) {
  const wire::SubmitRequest request = one({file(
      "x.sh", "#!/bin/sh\n#METE --gpu 8G\n#SBATCH --gres=gpu:2 -t 10 -J slurm\n#METE -J ours\n")});
  EXPECT_EQ(to_string(*request.spec.request.gpu), "8G");
  EXPECT_EQ(request.spec.name, "ours");
  EXPECT_EQ(request.spec.time_s, 600u);
}

}  // namespace
}  // namespace mete::cli
