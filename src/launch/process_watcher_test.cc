// SPDX-License-Identifier: Apache-2.0
// Ending the processes of jobs, with real processes that carry a job's mark. They fork, ignore
// signals, hang and drop their marks; the watcher must end all of them, signal no other process,
// and report a job as gone only when it is. The daemon's time moves only when a test moves it.
#include "launch/process_watcher.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "abi/process.h"
#include "base/file.h"
#include "tests/support/manual_loop.h"

namespace mete::launch {
namespace {

using core::JobId;
using core::ProcessRef;
using seam::Milliseconds;

const JobId kJob{12};
const ProcessRef kRunner{2147483, 77};  // long gone

ProcessRef ref_of(pid_t pid) {
  abi::ProcessStat stat;
  EXPECT_EQ(abi::read_stat(static_cast<std::uint32_t>(pid), &stat), abi::StatResult::kRead);
  return {pid, stat.start};
}

class WatcherTest : public testing::Test {
 protected:
  void SetUp() override {
    watcher_.emplace(loop_.loop(), loop_,
                     WatcherCallbacks{[this](JobId) { return uid_; },
                                      [this](JobId job) { runners_gone_.push_back(job); },
                                      [this](JobId job) { jobs_gone_.push_back(job); }});
  }
  void TearDown() override {
    watcher_.reset();
    for (const pid_t pid : started_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }
  // Runs a shell script as a child of another process, until it has written something. Its
  // variables: those of the job, and PATH.
  ProcessRef orphan(const std::string& script, std::vector<std::string> environment) {
    base::Pipe said = std::move(*base::make_pipe()), number = std::move(*base::make_pipe());
    const pid_t between = fork();
    if (between == 0) {
      const pid_t pid = fork();
      if (pid > 0) {
        (void)!write(number.write.get(), &pid, sizeof pid);
        _exit(0);
      }
      (void)dup2(said.write.get(), 1);
      (void)close(2);  // a reader of our output does not wait for these
      environment.emplace_back("PATH=/usr/bin:/bin");
      std::vector<char*> variables;
      for (std::string& line : environment) variables.push_back(line.data());
      variables.push_back(nullptr);
      (void)execle("/bin/sh", "sh", "-c", script.c_str(), nullptr, variables.data());
      _exit(127);
    }
    waitpid(between, nullptr, 0);
    pid_t pid = -1;
    EXPECT_EQ(read(number.read.get(), &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
    started_.push_back(pid);
    char byte = 0;
    said.write.reset();
    EXPECT_EQ(read(said.read.get(), &byte, 1), 1) << "it did not start";
    return ref_of(pid);
  }
  std::vector<std::string> marks(const std::string& job = "12",
                                 const std::string& token = "2147483.77") {
    return {"A=b", "METE_JOB_ID=" + job, "METE_JOB_TOKEN=" + token};
  }
  void stop() {
    watcher_->watch(kJob, kRunner);
    watcher_->stop(kJob);
  }
  bool job_is_gone(Milliseconds step = Milliseconds(20)) {
    return loop_.until([&] { return !jobs_gone_.empty(); }, step);
  }
  std::vector<pid_t> scan(JobScan scan) {
    std::vector<pid_t> found;
    looked_.clear();
    scan_job(scan, {[&](pid_t pid) { looked_.push_back(pid); },
                    [&](const ProcessRef& process) { found.push_back(process.pid); }});
    return found;
  }
  support::ManualLoop loop_;
  std::optional<std::uint32_t> uid_ = getuid();
  std::vector<JobId> runners_gone_, jobs_gone_;
  std::optional<ProcessWatcher> watcher_;
  std::vector<pid_t> started_, looked_;
};

constexpr char kSleep[] = "echo; exec sleep 1000";

TEST_F(WatcherTest, TellsWhenARunnerEnds) {
  const pid_t runner = fork();
  if (runner == 0)
    for (;;) pause();
  started_.push_back(runner);
  watcher_->watch(kJob, ref_of(runner));
  loop_.turn(0);
  loop_.advance(Milliseconds(10000));
  EXPECT_TRUE(runners_gone_.empty());
  kill(runner, SIGKILL);
  ASSERT_TRUE(loop_.until([&] { return !runners_gone_.empty(); }));
  loop_.turn(0);
  loop_.advance(Milliseconds(10000));
  EXPECT_EQ(runners_gone_, std::vector{kJob}) << "once";
  EXPECT_EQ(loop_.watched(), 0u);
}

TEST_F(WatcherTest, ARunnerWithoutADescriptorIsLookedAtNowAndThen) {
  watcher_->keep_handles(0);
  const pid_t runner = fork();
  if (runner == 0)
    for (;;) pause();
  watcher_->watch(kJob, ref_of(runner));
  EXPECT_EQ(loop_.watched(), 0u);
  loop_.advance(Milliseconds(10000));
  EXPECT_TRUE(runners_gone_.empty());
  kill(runner, SIGKILL);
  waitpid(runner, nullptr, 0);
  loop_.advance(Milliseconds(10000));
  EXPECT_EQ(runners_gone_.size(), 1u);
}

TEST_F(WatcherTest, ARunnerThatIsGoneAlreadyIsToldOfAfterwards) {
  watcher_->watch(kJob, kRunner);
  EXPECT_TRUE(runners_gone_.empty()) << "not from within";
  loop_.advance(Milliseconds(0));
  EXPECT_EQ(runners_gone_.size(), 1u);
}

TEST_F(WatcherTest, AReusedPidIsNotTheRunner) {
  watcher_->watch(kJob, {getpid(), ref_of(getpid()).start_ticks + 1});
  loop_.advance(Milliseconds(0));
  EXPECT_EQ(runners_gone_.size(), 1u);
}

TEST_F(WatcherTest, TheNewerRunnerCounts) {
  watcher_->watch(kJob, kRunner);
  watcher_->watch(kJob, ref_of(getpid()));
  loop_.advance(Milliseconds(1000));
  EXPECT_TRUE(runners_gone_.empty());
  watcher_->forget(kJob);
  EXPECT_EQ(loop_.watched(), 0u);
}

TEST_F(WatcherTest, TheSameRunnerAgainChangesNothing) {
  watcher_->watch(kJob, kRunner);
  watcher_->watch(kJob, kRunner);
  loop_.advance(Milliseconds(0));
  watcher_->watch(kJob, kRunner);
  loop_.advance(Milliseconds(1000));
  EXPECT_EQ(runners_gone_.size(), 1u);
}

TEST_F(WatcherTest, AJobThatNeverHadARunnerIsGone) {
  watcher_->stop(kJob);
  EXPECT_TRUE(jobs_gone_.empty()) << "not from within";
  loop_.advance(Milliseconds(0));
  EXPECT_EQ(jobs_gone_, std::vector{kJob});
}

TEST_F(WatcherTest, AJobWithoutProcessesIsGone) {
  stop();
  watcher_->stop(kJob);  // idempotent
  ASSERT_TRUE(job_is_gone());
  EXPECT_EQ(jobs_gone_, std::vector{kJob});
}

TEST_F(WatcherTest, OrphansAreFoundAndEnded) {
  const ProcessRef first = orphan(kSleep, marks()), second = orphan(kSleep, marks());
  stop();
  ASSERT_TRUE(job_is_gone());
  EXPECT_FALSE(is_living(first));
  EXPECT_FALSE(is_living(second));
}

TEST_F(WatcherTest, OthersAreLeftAlone) {
  const ProcessRef other_job = orphan(kSleep, marks("13")),
                   other_daemon = orphan(kSleep, marks("12", "2147483.78")),
                   longer = orphan(kSleep, marks("123")),
                   no_token = orphan(kSleep, {"METE_JOB_ID=12"});
  stop();
  ASSERT_TRUE(job_is_gone());
  for (const ProcessRef& process : {other_job, other_daemon, longer, no_token})
    EXPECT_TRUE(is_living(process));
}

TEST_F(WatcherTest, OnlyTheJobsUserIsSignalled) {
  const ProcessRef process = orphan(kSleep, marks());
  uid_ = getuid() + 1;  // another user's job: our process only claims to belong to it
  EXPECT_FALSE(signal_process(process, *uid_, SIGKILL));
  stop();
  ASSERT_TRUE(job_is_gone());
  EXPECT_TRUE(is_living(process));
  EXPECT_FALSE(signal_process({process.pid, process.start_ticks + 1}, getuid(), SIGKILL))
      << "another life of this pid";
  EXPECT_TRUE(signal_process(process, getuid(), SIGKILL));
}

TEST_F(WatcherTest, WhoIgnoresTermIsKilledAfterTheGrace) {
  const ProcessRef stubborn = orphan("trap '' TERM; echo; while :; do sleep 0.1; done", marks());
  stop();
  ASSERT_TRUE(loop_.until([&] { return loop_.watched() == 1; }, Milliseconds(1)));
  ASSERT_TRUE(loop_.until([&] { return loop_.watched() == 0; }));
  for (int i = 0; i < 40; ++i) {
    loop_.advance(Milliseconds(100));
    loop_.turn(0);
  }
  EXPECT_TRUE(is_living(stubborn)) << "it has five seconds";
  ASSERT_TRUE(job_is_gone(Milliseconds(100)));
  EXPECT_FALSE(is_living(stubborn));
}

TEST_F(WatcherTest, DescendantsThatDroppedTheirMarksAreFound) {
  const ProcessRef parent = orphan(
      "env -i /bin/sh -c 'trap \"\" TERM; echo; while :; do /bin/sleep 0.1; done'; :", marks());
  stop();
  ASSERT_TRUE(job_is_gone(Milliseconds(100)));
  EXPECT_FALSE(is_living(parent));
  EXPECT_TRUE(scan({{kJob, getuid(), kRunner}, {}, {}}).empty());
}

TEST_F(WatcherTest, WhoForksASuccessorWhenItIsEndedDoesNotEscape) {
  orphan(
      "trap 'trap \"\" TERM; (while :; do sleep 0.1; done) & exit' TERM; echo; "
      "while :; do sleep 0.01; done",
      marks());
  stop();
  ASSERT_TRUE(job_is_gone(Milliseconds(100)));
  EXPECT_TRUE(scan({{kJob, getuid(), kRunner}, {}, {}}).empty());
}

// Each process lives for two milliseconds: it is gone before its pid is of use.
TEST_F(WatcherTest, AProcessThatForksOnIsEndedAndNotBelievedGoneBefore) {
  constexpr char kForksOn[] =
      "exec perl -e '$SIG{TERM} = \"IGNORE\"; syswrite(STDOUT, \"x\\n\"); for (1..20000) "
      "{ exit if fork; select(undef, undef, undef, 0.002) }'";
  const JobScan look{{kJob, getuid(), kRunner}, {}, {}};
  for (int round = 0; round < 5; ++round) {
    orphan(kForksOn, marks());
    started_.pop_back();  // gone, and its pid reused
    jobs_gone_.clear();
    stop();
    for (int i = 0; i < 10; ++i) {
      loop_.turn(5);
      loop_.advance(Milliseconds(20));
    }
    ASSERT_TRUE(jobs_gone_.empty()) << "it lives, and ignores TERM";
    ASSERT_TRUE(job_is_gone(Milliseconds(100)));
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(scan(look).empty()) << "round " << round;
    watcher_->forget(kJob);
  }
}

TEST_F(WatcherTest, AStoppedProcessHearsTerm) {
  const ProcessRef stopped = orphan(kSleep, marks());
  kill(stopped.pid, SIGSTOP);
  stop();
  const seam::Nanoseconds began = loop_.monotonic();
  ASSERT_TRUE(job_is_gone(Milliseconds(1)));
  EXPECT_LT(loop_.monotonic() - began, ProcessWatcher::kGrace) << "by TERM, not by KILL";
}

// A `mete run` that is stopped, or does not react, ends with its job.
TEST_F(WatcherTest, ARunnerThatLivesIsEndedWithWhatItStarted) {
  base::Pipe alive = std::move(*base::make_pipe());
  base::Pipe ready = std::move(*base::make_pipe());
  const pid_t runner = fork();
  if (runner == 0) {
    (void)signal(SIGTERM, SIG_IGN);
    (void)fork();  // unmarked: the program between fork and exec
    (void)!write(ready.write.get(), "x", 1);
    for (;;) pause();
  }
  started_.push_back(runner);
  alive.write.reset();
  char bytes[2];
  for (char& byte : bytes) ASSERT_EQ(read(ready.read.get(), &byte, 1), 1);
  kill(runner, SIGSTOP);
  watcher_->watch(kJob, ref_of(runner));
  watcher_->stop(kJob);
  ASSERT_TRUE(job_is_gone(Milliseconds(100)));
  pollfd end{alive.read.get(), POLLIN, 0};
  EXPECT_EQ(poll(&end, 1, 20'000), 1) << "a process is left";
}

TEST_F(WatcherTest, AProcessWithTheGrantMappedIsOfTheJob) {
  char name[] = "/tmp/mete-watcher-test-XXXXXX";
  const int fd = mkstemp(name);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(ftruncate(fd, 4096), 0);
  std::vector<std::string> variables = marks();
  variables.push_back(std::string("METE_GRANT=") + name);
  orphan(kSleep, variables);
  base::Pipe ready = std::move(*base::make_pipe());
  const pid_t unmarked = fork();
  if (unmarked == 0) {
    (void)mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
    (void)!write(ready.write.get(), "x", 1);
    for (;;) pause();
  }
  started_.push_back(unmarked);
  char byte = 0;
  ASSERT_EQ(read(ready.read.get(), &byte, 1), 1);
  const std::vector<pid_t> found = scan({{kJob, getuid(), kRunner}, {}, {}});
  EXPECT_NE(std::find(found.begin(), found.end(), unmarked), found.end());
  close(fd);
  unlink(name);
}

TEST_F(WatcherTest, OutsidersAreNotOfTheJob) {
  const ProcessRef server = orphan(kSleep, marks());
  std::string path;
  ASSERT_TRUE(loop_.until([&] {  // the shell becomes it a moment later
    path = base::real_path("/proc/" + std::to_string(server.pid) + "/exe");
    return path.find("sleep") != std::string::npos || path.find("coreutils") != std::string::npos ||
           path.find("busybox") != std::string::npos;
  }));
  EXPECT_EQ(scan({{kJob, getuid(), kRunner}, {}, {}}), std::vector{server.pid});
  EXPECT_TRUE(scan({{kJob, getuid(), kRunner}, {{}, path}, {}}).empty());
  EXPECT_TRUE(scan({{kJob, getuid(), kRunner}, {{server.pid}, ""}, {}}).empty());
}

TEST_F(WatcherTest, WhereALookHungIsLookedAtLast) {
  const ProcessRef first = orphan(kSleep, marks()), second = orphan(kSleep, marks());
  // Processes that other programs of the machine start meanwhile are looked at after both.
  const auto place = [this](const ProcessRef& of) {
    return std::find(looked_.begin(), looked_.end(), of.pid) - looked_.begin();
  };
  for (const bool first_hung : {true, false}) {
    (void)scan({{kJob, getuid(), kRunner}, {}, {first_hung ? first.pid : second.pid}});
    ASSERT_LT(std::max(place(first), place(second)), std::ssize(looked_));
    EXPECT_EQ(place(first) > place(second), first_hung);
  }
}

TEST_F(WatcherTest, ForgettingEndsEverything) {
  orphan("trap '' TERM; echo; while :; do sleep 0.1; done", marks());
  stop();
  loop_.advance(Milliseconds(0));
  watcher_->forget(kJob);
  loop_.advance(Milliseconds(20000));
  EXPECT_EQ(loop_.watched(), 0u);
  EXPECT_EQ(loop_.timers(), 0u);
  EXPECT_TRUE(jobs_gone_.empty());
}

}  // namespace
}  // namespace mete::launch
