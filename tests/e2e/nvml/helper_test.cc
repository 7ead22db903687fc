// SPDX-License-Identifier: Apache-2.0
// The daemon's helper over simulated cards: real processes hold memory, the helper sees them, and
// each is attributed correctly. Lost cards and a killed helper show in the next readings. Every
// check waits for a snapshot that began after its cause.
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <optional>

#include "base/fd.h"
#include "node/attribution.h"
#include "node/card_helper.h"
#include "node/proc.h"
#include "node/readings_file.h"
#include "tests/support/manual_loop.h"

extern char** environ;

namespace mete::node {
namespace {

std::string build(const std::string& path) {
  const char* folder = std::getenv("METE_BUILD_DIR");
  return std::string(folder != nullptr ? folder : ".") + "/" + path;
}

// Holds memory on card 0 until it is released; below a process of its own, as a program is below
// its runner.
class Runner {
 public:
  explicit Runner(std::uint64_t mib) {
    base::Pipe input = std::move(*base::make_pipe()), output = std::move(*base::make_pipe());
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input.read.get(), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output.write.get(), STDOUT_FILENO);
    std::string script = build("tests/nvml_holder") + " " + build("simgpu/libcuda.so.1") + " 0 " +
                         std::to_string(mib << 20) + " 0; :";
    char shell[] = "/bin/sh", option[] = "-c";
    char* arguments[] = {shell, option, script.data(), nullptr};
    EXPECT_EQ(posix_spawn(&pid_, shell, &actions, nullptr, arguments, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    output.write.reset();
    input_ = std::move(input.write);
    char ready[6] = {};
    EXPECT_EQ(read(output.read.get(), ready, sizeof(ready)), 6)
        << "the holder did not get its memory";
  }
  ~Runner() {
    input_.reset();
    waitpid(pid_, nullptr, 0);
  }
  core::ProcessRef ref() const { return {pid_, read_stat(pid_)->start_ticks}; }

 private:
  pid_t pid_ = -1;
  Fd input_;
};

class HelperOverSimulatedCards : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/mete-helper-e2e-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    setenv("METE_SIM_DIR", name, 1);
    setenv("METE_SIM", "2xH200", 1);
    CardHelperSettings settings;
    settings.open = open_nvml(build("simgpu/libnvidia-ml.so.1"));
    settings.readings = folder_ + "/readings";
    settings.idle_period = seam::Milliseconds(10);
    helper_.emplace(settings, loop_.loop(), loop_, [] {});
  }
  void TearDown() override {
    helper_.reset();
    control("stop");
    ASSERT_EQ(std::system(("rm -rf " + folder_).c_str()), 0);
  }
  void control(const std::string& words) {
    ASSERT_EQ(
        std::system((build("simgpu/mete-simgpu") + " --ctl " + words + " > /dev/null").c_str()), 0)
        << words;
  }
  // A snapshot that began after now.
  const CardSnapshot& fresh() {
    const seam::Nanoseconds now = seam::system_clock().monotonic();
    EXPECT_TRUE(loop_.until([&] { return helper_->last() && helper_->last()->at > now; }))
        << (helper_->trouble() ? helper_->trouble()->message : "silent");
    return *helper_->last();
  }
  std::string folder_;
  support::ManualLoop loop_;
  std::optional<CardHelper> helper_;
};

TEST_F(HelperOverSimulatedCards, EachProcessIsKnownForWhatItIs) {
  const Runner job(300), other(200), stranger(100);
  const core::JobId id{12};
  const std::vector<JobHold> jobs = {{id, job.ref(), getuid(), {}}};
  const CardSnapshot& snapshot = fresh();
  ASSERT_EQ(snapshot.cards.size(), 2u);
  EXPECT_EQ(snapshot.driver.version, "580.159.04");
  const std::vector<OtherHold> others = {{"bob's mete", other.ref(), snapshot.cards[0].uuid}};
  const Attribution seen = attribute(snapshot, jobs, others, {});
  const CardUse& use = seen.cards[0];
  EXPECT_GE(use.jobs.at(id), Bytes::from_mib(300));
  EXPECT_GE(use.claimed, Bytes::from_mib(200));
  ASSERT_EQ(use.foreign.size(), 1u);
  EXPECT_EQ(use.foreign[0].comm, "nvml_holder");
  EXPECT_GE(*use.foreign[0].used, Bytes::from_mib(100));
  EXPECT_LT(*use.foreign[0].used, use.claimed);
  EXPECT_EQ(use.unlisted, Bytes{}) << "the driver's figures add up";
  EXPECT_TRUE(seen.cards[1].outside.empty());
}

TEST_F(HelperOverSimulatedCards, WhatEndedIsFreeInTheNextReading) {
  {
    const Runner stranger(100);
    EXPECT_FALSE(attribute(fresh(), {}, {}, {}).cards[0].outside.empty());
  }
  EXPECT_TRUE(attribute(fresh(), {}, {}, {}).cards[0].outside.empty());
}

TEST_F(HelperOverSimulatedCards, ALostCardIsSeenAndTheReadingsFileSaysSo) {
  fresh();
  control("lose-card 1");
  EXPECT_EQ(fresh().cards[1].state, seam::CardState::kLost);
  const Result<Sample> sample = read_readings(folder_ + "/readings");
  ASSERT_TRUE(sample) << sample.error().message;
  EXPECT_TRUE(sample->cards[1].lost);
  EXPECT_FALSE(sample->cards[0].lost);
}

TEST_F(HelperOverSimulatedCards, AKilledHelperComesBackAndReadsOn) {
  fresh();
  const pid_t first = helper_->pid();
  kill(first, SIGKILL);
  ASSERT_TRUE(loop_.until([&] { return helper_->pid() > 0 && helper_->pid() != first; },
                          seam::Milliseconds(10)));
  fresh();
  EXPECT_FALSE(helper_->trouble());
  const Result<Sample> sample = read_readings(folder_ + "/readings");
  ASSERT_TRUE(sample);
  EXPECT_GE(sample->at, helper_->last()->at);
}

}  // namespace
}  // namespace mete::node
