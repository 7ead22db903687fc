// SPDX-License-Identifier: Apache-2.0
// Hands with a fake loop and store, a real claims folder and one card of 80 GiB. The keeper is a
// script that records its plan and refuses to run, so that every launch ends in NotLaunched; inputs
// for the engine are collected in told_. tests/e2e/keeper has real keepers.
#include "daemon/hands.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "abi/process.h"
#include "base/file.h"
#include "launch/test/small_library.h"
#include "tests/support/manual_loop.h"
#include "tests/support/mem_store.h"
#include "wire/keeper.h"

namespace mete::daemon {
namespace {

namespace fs = std::filesystem;
using core::JobId;
using core::JobState;

constexpr char kCard[] = "GPU-00000000-0000-0000-0000-000000000001";
const core::ProcessRef kGone{2147483, 77};  // no such process

std::vector<core::GrantedCard> share(std::uint64_t gib) {
  core::GrantedCard card;
  card.uuid = kCard;
  card.bytes = Bytes::from_gib(gib);
  return {card};
}

class HandsTest : public testing::Test {
 protected:
  HandsTest() {
    char name[] = "/tmp/mete-hands-XXXXXX";
    folder_ = mkdtemp(name);
    claims_.emplace(*node::ClaimBook::open({folder_ + "/claims"}, "alice"), loop_.loop(), [] {});
    settings_.state_dir = folder_ + "/state";
    fs::create_directory(settings_.state_dir);
    settings_.parts.keeper = folder_ + "/keeper";
    settings_.parts.preload = {folder_ + "/libmete.so"};
    settings_.socket = [] { return "/run/meted.sock"; };
    settings_.descriptors.shares = {10, 10, 10};
    write(settings_.parts.keeper, "#!/bin/sh\ncat /proc/$$/fd/3 > " + folder_ + "/plan\n" +
                                      "echo 'not now out of order' >&4\n");
    const launch::SmallLibrary meter;
    write(folder_ + "/libmete.so",
          std::string(reinterpret_cast<const char*>(&meter), sizeof meter));
    machine_.pool.cards.emplace_back().card = {0, kCard, "H200", Bytes::from_gib(80)};
    machine_.cards.try_emplace(kCard);
    machine_.driver = "570.1";
    claims_->see(machine_.pool);
    claims_->begin();
    store_.put_blob("environment", std::string("HOME=/home/alice\0", 17));
    EXPECT_TRUE(store_.commit());
  }
  ~HandsTest() override {
    hands_.reset();
    claims_.reset();
    fs::remove_all(folder_);
  }

  static void write(const std::string& path, const std::string& text) {
    EXPECT_TRUE(base::write_atomic(path, text, 0700));
  }
  Hands& hands() {
    if (!hands_) {
      hands_.emplace(
          settings_, loop_.loop(), loop_, *claims_, store_,
          [this](core::Input input) { told_.push_back(std::move(input)); },
          [this](const std::string& line) { log_ += line + "\n"; });
      hands_->meet(state_, machine_);
      EXPECT_TRUE(hands_->begin());
    }
    return *hands_;
  }

  core::JobSpec spec() const {
    core::JobSpec spec;
    spec.name = "train";
    spec.uid = getuid();
    spec.user = "alice";
    spec.command = {"train"};
    spec.folder = "/";
    spec.detached.emplace().environment = "environment";
    return spec;
  }
  void happens(core::Happened what) {
    state_.apply({state_.last_seq() + 1, WallTime{1000}, std::move(what)});
  }
  // A job to launch, with this much of the card.
  const core::Job& granted(core::JobSpec spec, std::uint64_t gib = 0) {
    const JobId id{state_.last_job() + 1};
    happens(core::JobSubmitted{id, std::move(spec), {}});
    happens(core::JobGranted{id, gib == 0 ? std::vector<core::GrantedCard>() : share(gib)});
    return *state_.find(id);
  }
  // Starts the job and waits until its launch has failed, as all do here.
  core::NotLaunched launch(const core::Job& job) {
    hands().start(job);
    EXPECT_TRUE(loop_.until([&] { return !told_.empty(); }, seam::Milliseconds(1)));
    if (told_.empty() || !std::holds_alternative<core::NotLaunched>(told_.front())) {
      ADD_FAILURE() << "another input than NotLaunched";
      return {};
    }
    const auto failed = std::get<core::NotLaunched>(told_.front());
    told_.clear();
    hands().forget(job.id);
    return failed;
  }
  wire::KeeperPlan plan() const {
    const Result<std::string> bytes = base::read_all(folder_ + "/plan");
    Result<wire::KeeperPlan> plan =
        bytes ? wire::decode_keeper_plan(*bytes) : Result<wire::KeeperPlan>(bytes.error());
    EXPECT_TRUE(plan) << (plan ? "" : plan.error().message);
    return plan ? *std::move(plan) : wire::KeeperPlan();
  }
  bool launched() const { return fs::exists(folder_ + "/plan"); }

  std::string folder_, log_;
  support::ManualLoop loop_;
  tests::MemStore store_;
  core::State state_;
  serve::MachineReading machine_;
  HandsSettings settings_;
  std::optional<ClaimsKeeper> claims_;
  std::vector<core::Input> told_;
  std::optional<Hands> hands_;
};

// ---- the plan of a keeper -----------------------------------------------------------------------

TEST_F(HandsTest, AKeeperIsToldAllThatItsJobNeeds) {
  store_.put_blob("script", "#!/bin/sh\nmake\n");
  store_.put_blob("command", std::string("train\0--epochs\0", 15) + std::string("90\0", 3));
  ASSERT_TRUE(store_.commit());
  settings_.config.grace_s.value = 7;
  settings_.descriptors.before = core::ResourceLimit{RLIMIT_NOFILE, 1024, 4096};
  core::JobSpec asked = spec();
  asked.preemptible = true;
  asked.detached->script = "script";
  asked.command_content = "command";
  const core::Job& job = granted(asked, 40);
  const core::NotLaunched failed = launch(job);
  EXPECT_EQ(failed.id, job.id);
  EXPECT_EQ(failed.why, "out of order") << "as the keeper said";
  EXPECT_TRUE(failed.later);
  const wire::KeeperPlan told = plan();
  EXPECT_EQ(told.job, job.id);
  EXPECT_EQ(told.grant, job.grant);
  ASSERT_EQ(told.cards.size(), 1u);
  EXPECT_EQ(told.cards[0].type, "H200");
  EXPECT_EQ(told.driver, "570.1");
  EXPECT_EQ(told.keep, settings_.state_dir + "/keep");
  EXPECT_EQ(told.state, settings_.state_dir);
  EXPECT_EQ(told.log, settings_.state_dir + "/logs/1.log");
  EXPECT_EQ(told.err, "");
  EXPECT_EQ(told.grace_ms, 7000u);
  EXPECT_EQ(told.preload, settings_.parts.preload);
  EXPECT_EQ(told.socket, "/run/meted.sock");
  EXPECT_TRUE(told.park) << "it can be parked";
  EXPECT_EQ(told.environment, std::string("HOME=/home/alice\0", 17));
  EXPECT_EQ(told.script, "#!/bin/sh\nmake\n");
  EXPECT_EQ(told.spec.command, (std::vector<std::string>{"train", "--epochs", "90"}));
  ASSERT_EQ(told.spec.detached->limits.size(), 1u) << "not the limit of the daemon";
  EXPECT_EQ(told.spec.detached->limits[0].soft, 1024u);
}

TEST_F(HandsTest, AJobWithoutCardsNeedsNoMeter) {
  fs::remove(folder_ + "/libmete.so");
  core::JobSpec asked = spec();
  asked.detached->limits = {{RLIMIT_NOFILE, 512, 512}};
  settings_.descriptors.before = core::ResourceLimit{RLIMIT_NOFILE, 1024, 4096};
  (void)launch(granted(asked));
  const wire::KeeperPlan told = plan();
  EXPECT_TRUE(told.cards.empty());
  EXPECT_EQ(told.socket, "");
  EXPECT_FALSE(told.park);
  ASSERT_EQ(told.spec.detached->limits.size(), 1u);
  EXPECT_EQ(told.spec.detached->limits[0].soft, 512u) << "the limit of its user";
}

// ---- launches that are put off ------------------------------------------------------------------

TEST_F(HandsTest, WithoutTheMeterALaunchIsPutOff) {
  fs::remove(folder_ + "/libmete.so");
  const core::NotLaunched failed = launch(granted(spec(), 40));
  EXPECT_TRUE(failed.later);
  EXPECT_NE(failed.why.find("libmete.so"), std::string::npos) << failed.why;
  EXPECT_NE(log_.find("libmete.so"), std::string::npos) << "and the log says so";
  EXPECT_FALSE(launched());
}

TEST_F(HandsTest, WithoutAKeeperALaunchIsPutOff) {
  settings_.parts.keeper = "";
  const core::NotLaunched failed = launch(granted(spec()));
  EXPECT_TRUE(failed.later);
  EXPECT_EQ(failed.why, "mete-keeper is missing");
}

TEST_F(HandsTest, ACardThatHasVanishedPutsALaunchOff) {
  machine_.pool.cards.clear();
  const core::NotLaunched failed = launch(granted(spec(), 40));
  EXPECT_TRUE(failed.later);
  EXPECT_EQ(failed.why, "a granted card has vanished");
  EXPECT_FALSE(launched());
}

TEST_F(HandsTest, AJobWhoseEnvironmentIsLostIsNotTriedAgain) {
  core::JobSpec asked = spec();
  asked.detached->environment = "lost";
  const core::NotLaunched failed = launch(granted(asked));
  EXPECT_FALSE(failed.later);
  EXPECT_NE(failed.why.find("its environment"), std::string::npos) << failed.why;
}

TEST_F(HandsTest, BeforeTheCardsWereReadNothingIsLaunchedOnThem) {
  machine_.cards.clear();
  const core::NotLaunched failed = launch(granted(spec(), 40));
  EXPECT_EQ(failed.why, "") << "it waits again";
  EXPECT_FALSE(launched());
}

TEST_F(HandsTest, AJobThatIsBeingEndedIsNotLaunched) {
  const core::Job& job = granted(spec());
  happens(core::JobStopping{job.id, core::Outcome::kCancelled});
  EXPECT_EQ(launch(job).why, "");
  EXPECT_FALSE(launched());
}

// ---- the processes of runs ---------------------------------------------------------------------

TEST_F(HandsTest, ARunnerThatIsGoneIsTold) {
  core::JobSpec asked = spec();
  asked.detached.reset();
  const core::Job& job = granted(asked);
  hands().watch(job.id, kGone);
  ASSERT_TRUE(loop_.until([&] { return !told_.empty(); }, seam::Milliseconds(20)));
  ASSERT_TRUE(std::holds_alternative<core::RunnerGone>(told_.front()));
  EXPECT_EQ(std::get<core::RunnerGone>(told_.front()).id, job.id);
}

TEST_F(HandsTest, ARunWithoutProcessesIsGoneWhenItIsStopped) {
  core::JobSpec asked = spec();
  asked.detached.reset();
  const JobId id{1};
  happens(core::JobSubmitted{id, asked, kGone});
  happens(core::JobGranted{id, {}});
  hands().stop(id);  // not watched before, as after a restart
  const auto gone = [&] {
    return std::any_of(told_.begin(), told_.end(), [](const core::Input& input) {
      return std::holds_alternative<core::JobGone>(input);
    });
  };
  EXPECT_TRUE(loop_.until(gone, seam::Milliseconds(20)));
}

TEST_F(HandsTest, AStoppedRunnerIsWokenUp) {
  const pid_t child = fork();
  if (child == 0) {
    (void)raise(SIGSTOP);
    _exit(3);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status));
  abi::ProcessStat stat;
  ASSERT_EQ(abi::read_stat(static_cast<std::uint32_t>(child), &stat), abi::StatResult::kRead);
  core::JobSpec asked = spec();
  asked.detached.reset();
  hands().wake(granted(asked).id, {child, stat.start});
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 3);
}

// ---- promises and logs -------------------------------------------------------------------------

TEST_F(HandsTest, TheBytesOfAJobThatHasEndedCanBePromisedAtOnce) {
  const JobId first = granted(spec(), 60).id;
  ASSERT_TRUE(hands().reserve(first, share(60)));
  const JobId second = granted(spec(), 60).id;
  EXPECT_FALSE(hands().reserve(second, share(60)));
  happens(core::JobEnded{first, core::Outcome::kOk, {}});
  EXPECT_TRUE(hands().reserve(second, share(60))) << "before forget() is called for the first";
}

TEST_F(HandsTest, EachUserOfTheMachinesDaemonHasAFolder) {
  settings_.system = true;
  core::JobSpec asked = spec();
  asked.detached->err = "/home/alice/%j.err";
  const core::Job& job = granted(asked);
  const auto [log, err] = hands().logs_of(job);
  EXPECT_EQ(log, settings_.state_dir + "/users/" + std::to_string(getuid()) + "/logs/1.log");
  EXPECT_EQ(err, "/home/alice/1.err");
}

TEST_F(HandsTest, OnlyLogsThatTheDaemonNamedAreRemoved) {
  const std::string logs = settings_.state_dir + "/logs";
  fs::create_directory(logs);
  for (const char* name : {"1.log", "1.log.1", ".1.log.times", ".1.log.1.times", "2.log"})
    write(logs + "/" + name, "text");
  core::JobSpec own = spec();
  own.detached->log = logs + "/2.log";
  hands().discard(granted(spec()));
  hands().discard(granted(own));
  std::vector<std::string> left;
  for (const fs::directory_entry& entry : fs::directory_iterator(logs))
    left.push_back(entry.path().filename());
  EXPECT_EQ(left, std::vector<std::string>{"2.log"}) << "a file that its user named";
}

TEST_F(HandsTest, NoLinkLeadsToTheLogsOfAnother) {
  const std::string elsewhere = folder_ + "/elsewhere";
  fs::create_directory(elsewhere);
  write(elsewhere + "/1.log", "text");
  fs::create_directory_symlink(elsewhere, settings_.state_dir + "/logs");
  hands().discard(granted(spec()));
  EXPECT_TRUE(fs::exists(elsewhere + "/1.log"));
}

}  // namespace
}  // namespace mete::daemon
