// SPDX-License-Identifier: Apache-2.0
// The helper is a real process with a driver of the test in it, which hangs, dies or answers as a
// shared script says. The daemon's time moves only when a test moves it, so restarts and silences
// take no real seconds.
#include "node/card_helper.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <new>

#include "base/file.h"
#include "node/proc.h"
#include "node/readings_file.h"
#include "tests/support/manual_loop.h"

namespace mete::node {
namespace {

using seam::Milliseconds;

// Shared with the helper processes.
struct Script {
  std::atomic<int> opens{0};
  std::atomic<int> reads{0};
  std::atomic<int> mode{0};  // what a reading does
  enum { kFine, kHang, kDie, kMismatch };
};

struct ScriptedDriver final : seam::Driver {
  explicit ScriptedDriver(Script& s) : script(s) {}
  Script& script;
  Result<seam::DriverIdentity> identity() override { return seam::DriverIdentity{"1.2", 13000}; }
  Result<std::vector<seam::CardReading>> read_all(Milliseconds) override {
    ++script.reads;
    if (script.mode == Script::kHang)
      for (;;) pause();
    if (script.mode == Script::kDie) _exit(3);
    if (script.mode == Script::kMismatch)
      return Error::io("nvmlInit: driver and library are of different versions (18)");
    seam::CardReading card;
    card.uuid = "GPU-00000000-0000-0000-0000-000000000001";
    card.processes = {{getppid(), Bytes::from_mib(1), false}};
    return std::vector<seam::CardReading>{card};
  }
};

class CardHelperTest : public testing::Test {
 protected:
  void SetUp() override {
    void* memory =
        mmap(nullptr, sizeof(Script), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    script_ = new (memory) Script;
    settings_.open = [this]() -> Result<std::unique_ptr<seam::Driver>> {
      ++script_->opens;
      return std::unique_ptr<seam::Driver>(new ScriptedDriver(*script_));
    };
    settings_.busy_period = Milliseconds(1);
    settings_.idle_period = Milliseconds(1);
  }
  void TearDown() override {
    helper_.reset();
    munmap(script_, sizeof(Script));
  }
  CardHelper& start() {
    helper_.emplace(settings_, loop_.loop(), loop_, [this] { ++changes_; });
    return *helper_;
  }
  bool has_trouble(const std::string& words) {
    return helper_->trouble() && helper_->trouble()->message.find(words) != std::string::npos;
  }
  // Time passes until another helper runs.
  bool another_than(pid_t old) {
    return loop_.until([&] { return helper_->pid() > 0 && helper_->pid() != old; },
                       Milliseconds(100));
  }
  Script* script_ = nullptr;
  CardHelperSettings settings_;
  support::ManualLoop loop_;
  std::optional<CardHelper> helper_;
  int changes_ = 0;
};

TEST_F(CardHelperTest, SendsWhatItSees) {
  CardHelper& helper = start();
  EXPECT_EQ(helper.age(), std::nullopt);
  ASSERT_TRUE(loop_.until([&] { return helper.last().has_value(); }));
  EXPECT_EQ(helper.last()->driver.version, "1.2");
  ASSERT_EQ(helper.last()->cards.size(), 1u);
  bool found = false;
  for (const ProcessFacts& facts : helper.last()->processes) found |= facts.pid == getpid();
  EXPECT_TRUE(found) << "who the processes are comes along";
  EXPECT_EQ(helper.trouble(), std::nullopt);
  const seam::Nanoseconds at = helper.last()->at;
  ASSERT_TRUE(loop_.until([&] { return helper.last()->at > at; })) << "again and again";
  EXPECT_GE(changes_, 2);
}

TEST_F(CardHelperTest, TroubleComesThroughInWordsAndGoes) {
  script_->mode = Script::kMismatch;
  CardHelper& helper = start();
  ASSERT_TRUE(loop_.until([&] { return has_trouble("different versions (18)"); }));
  EXPECT_EQ(helper.trouble()->code, ErrorCode::kIo);
  const int opens = script_->opens;
  ASSERT_TRUE(loop_.until([&] { return script_->opens > opens; })) << "the driver is opened anew";
  script_->mode = Script::kFine;
  ASSERT_TRUE(loop_.until([&] { return helper.last() && !helper.trouble(); }));
}

TEST_F(CardHelperTest, NoDriverIsAnError) {
  settings_.open = open_nvml("/nowhere/libnvidia-ml.so.1");
  CardHelper& helper = start();
  ASSERT_TRUE(loop_.until([&] { return helper.trouble().has_value(); }));
  EXPECT_EQ(helper.trouble()->code, ErrorCode::kNotFound);
  EXPECT_NE(helper.trouble()->hint, "");
}

TEST_F(CardHelperTest, ADeadHelperIsStartedAgain) {
  CardHelper& helper = start();
  ASSERT_TRUE(loop_.until([&] { return helper.last().has_value(); }));
  const pid_t first = helper.pid();
  kill(first, SIGKILL);
  ASSERT_TRUE(loop_.until([&] { return has_trouble("died"); }));
  EXPECT_TRUE(helper.last()) << "the last snapshot stays";
  EXPECT_EQ(helper.pid(), -1);
  const seam::Nanoseconds age = *helper.age();
  loop_.advance(Milliseconds(99));
  EXPECT_EQ(helper.pid(), -1) << "not at once";
  EXPECT_GT(*helper.age(), age);
  loop_.advance(Milliseconds(1));
  EXPECT_GT(helper.pid(), 0);
  ASSERT_TRUE(loop_.until([&] { return !helper.trouble(); }));
}

TEST_F(CardHelperTest, OneThatDiesAgainAndAgainIsStartedMoreAndMoreSeldom) {
  script_->mode = Script::kDie;
  start();
  seam::Nanoseconds before = loop_.monotonic();
  std::vector<seam::Nanoseconds> pauses;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(loop_.until([&] { return helper_->pid() < 0; }));
    before = loop_.monotonic();
    ASSERT_TRUE(another_than(-1));
    pauses.push_back(loop_.monotonic() - before);
  }
  EXPECT_LE(pauses.front(), Milliseconds(200));
  EXPECT_GE(pauses.back(), Milliseconds(10000));
  EXPECT_LE(pauses.back(), Milliseconds(10100)) << "but for ever";
}

TEST_F(CardHelperTest, ASilentHelperIsKilledAndReplaced) {
  CardHelper& helper = start();
  ASSERT_TRUE(loop_.until([&] { return helper.last().has_value(); }));
  const pid_t first = helper.pid();
  script_->mode = Script::kHang;
  const int reads = script_->reads;
  ASSERT_TRUE(loop_.until([&] { return script_->reads > reads; }));
  loop_.turn();
  loop_.advance(Milliseconds(4000));
  EXPECT_EQ(helper.pid(), first) << "patience";
  loop_.advance(Milliseconds(2000));
  EXPECT_TRUE(has_trouble("does not answer"));
  EXPECT_GE(*helper.age(), seam::Nanoseconds(Milliseconds(5000)));
  script_->mode = Script::kFine;
  ASSERT_TRUE(another_than(first));
  // Its successor may have begun before the driver recovered, and hangs too until its own limit.
  ASSERT_TRUE(loop_.until([&] { return !helper.trouble(); }, Milliseconds(100)));
  EXPECT_TRUE(loop_.until([&] {
    const Result<ProcessStat> stat = read_stat(first);
    return !stat || stat->is_dead();
  })) << "it was killed";
}

TEST_F(CardHelperTest, ADriverThatIsBeingLoadedHasMoreTime) {
  script_->mode = Script::kHang;
  CardHelper& helper = start();
  ASSERT_TRUE(loop_.until([&] { return script_->reads > 0; }));
  const pid_t first = helper.pid();
  loop_.turn();
  loop_.advance(Milliseconds(29000));
  EXPECT_EQ(helper.pid(), first);
  loop_.advance(Milliseconds(2000));
  EXPECT_NE(helper.pid(), first);
}

TEST_F(CardHelperTest, ADaemonThatSleptDoesNotBlameTheHelper) {
  CardHelper& helper = start();
  ASSERT_TRUE(loop_.until([&] { return helper.last().has_value(); }));
  const pid_t first = helper.pid();
  const int reads = script_->reads;
  while (script_->reads < reads + 10) (void)poll(nullptr, 0, 1);
  loop_.leap(Milliseconds(60000));  // we were stopped: timers first, descriptors later
  EXPECT_EQ(helper.pid(), first);
}

TEST_F(CardHelperTest, ReadsAsOftenAsItIsTold) {
  settings_.idle_period = std::chrono::hours(24);
  CardHelper& helper = start();
  ASSERT_TRUE(loop_.until([&] { return helper.last().has_value(); }));
  EXPECT_EQ(script_->reads, 1);
  helper.set_busy(true);
  ASSERT_TRUE(loop_.until([&] { return script_->reads > 3; })) << "at once, not after a day";
}

TEST_F(CardHelperTest, HasNoDescriptorButItsOwn) {
  CardHelper& helper = start();
  ASSERT_TRUE(loop_.until([&] { return helper.last().has_value(); }));
  const std::string folder = "/proc/" + std::to_string(helper.pid());
  DIR* list = opendir((folder + "/fd").c_str());
  ASSERT_NE(list, nullptr);
  std::set<std::string> names;
  while (const dirent* entry = readdir(list)) names.insert(entry->d_name);
  closedir(list);
  EXPECT_EQ(names, (std::set<std::string>{".", "..", "0", "1", "2", "3"}));
  const std::string status = *base::read_all(folder + "/status");
  EXPECT_NE(status.find("SigBlk:\tfffffffe7ffbfeff"), std::string::npos)
      << "all but KILL, STOP and those of libc: " << status;
}

TEST_F(CardHelperTest, DiesWithTheDaemon) {
  Result<base::Pipe> pipe = base::make_pipe();
  const pid_t daemon = fork();
  if (daemon == 0) {
    CardHelper& helper = start();
    (void)loop_.until([&] { return helper.last().has_value(); });
    const pid_t pid = helper.pid();
    (void)!write(pipe->write.get(), &pid, sizeof pid);
    for (;;) pause();
  }
  pid_t helper = 0;
  ASSERT_EQ(read(pipe->read.get(), &helper, sizeof helper), static_cast<ssize_t>(sizeof helper));
  ASSERT_GT(helper, 0);
  kill(daemon, SIGKILL);
  waitpid(daemon, nullptr, 0);
  const auto gone = [&] {
    const Result<ProcessStat> stat = read_stat(helper);
    return !stat || stat->is_dead();
  };
  EXPECT_TRUE(loop_.until(gone));
}

TEST_F(CardHelperTest, PublishesForTheRunners) {
  char name[] = "/tmp/mete-helper-test-XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  settings_.readings = std::string(name) + "/readings";
  CardHelper& helper = start();
  ASSERT_TRUE(loop_.until([&] { return helper.last().has_value(); }));
  const Result<Sample> sample = read_readings(settings_.readings);
  ASSERT_TRUE(sample) << sample.error().message;
  EXPECT_GE(sample->at, helper.last()->at) << "published before it is sent";
  EXPECT_NE(sample->find(getpid()), nullptr);
  helper_.reset();
  unlink(settings_.readings.c_str());
  EXPECT_EQ(rmdir(name), 0);
}

}  // namespace
}  // namespace mete::node
