// SPDX-License-Identifier: Apache-2.0
// For the tests of the engine: a daemon on fakes. The vocabulary of the tests: submit, started,
// ended, cancel, tick, crash_and_restart. Whatever the launcher is asked to do must be on disk by
// then.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_launcher.h"
#include "tests/support/mem_store.h"

namespace mete::engine {

using core::JobId;
using core::JobState;
using tests::FakeClock;
using tests::FakeLauncher;
using tests::FaultyStore;
using Ids = std::vector<JobId>;
using Calls = std::vector<std::string>;

inline constexpr std::uint32_t kAlice = 1000;
inline const core::Caller& alice() {
  static const core::Caller caller{kAlice, false, "alice"};
  return caller;
}

inline core::Pool one_card(std::uint64_t gib) {
  core::PoolCard card;
  card.card = {0, "GPU-0", "H200", Bytes::from_gib(gib)};
  return {{card}};
}

class EngineTest : public testing::Test {
 protected:
  EngineTest() {
    launcher_.before_act = [this] {
      EXPECT_EQ(store_.queued(), 0u) << "acted on what is not on disk";
    };
    begin();
  }

  void begin() {
    engine_ = std::make_unique<Engine>(clock_, store_, launcher_, options_);
    const Result<void> recovered = engine_->recover();
    ASSERT_TRUE(recovered.ok()) << recovered.error().message;
    engine_->see(machine_);
  }
  void crash_and_restart() {
    engine_.reset();
    store_.crash();
    launcher_.crash();
    begin();
  }

  std::vector<Answer> turn(std::vector<core::Input> inputs) {
    std::vector<Asked> asked;
    for (core::Input& input : inputs) asked.push_back({++tickets_, std::move(input)});
    clock_.advance(seam::Milliseconds(10));
    Result<std::vector<Answer>> answers = engine_->turn(std::move(asked));
    EXPECT_TRUE(answers.ok()) << answers.error().message;
    return answers.ok() ? *std::move(answers) : std::vector<Answer>{};
  }
  std::vector<Answer> tick() { return turn({}); }

  // A job of `mete run`.
  static core::Submit job(const std::string& gpu, bool wait = true) {
    static std::int32_t runners = 100;
    core::Submit submit;
    submit.spec.name = "train";
    submit.spec.uid = kAlice;
    submit.spec.user = "alice";
    submit.spec.command = {"train"};
    submit.spec.folder = "/";
    submit.spec.request.gpu = *core::parse_gpu(gpu);
    submit.runner = core::ProcessRef{++runners, 7};
    submit.wait = wait;
    submit.admin = false;
    return submit;
  }
  // A job of `mete submit`.
  static core::Submit detached(const std::string& gpu) {
    core::Submit submit = job(gpu);
    submit.runner.reset();
    submit.spec.detached = core::Detached{};
    submit.spec.detached->environment = "e1";
    return submit;
  }
  JobId submit(const std::string& gpu) { return submit(job(gpu)); }
  JobId submit(core::Submit asked) {
    const std::vector<Answer> answers = turn({std::move(asked)});
    EXPECT_EQ(answers.size(), 1u);
    if (answers.empty() || !answers.front().result) return {};
    return *answers.front().result;
  }
  void started(JobId id) { turn({core::Started{id, kAlice, program_of(id)}}); }
  void ended(JobId id) { turn({end_of(id)}); }
  static core::Ended end_of(JobId id) {
    core::Exit exit;
    exit.code = 0;
    return {id, kAlice, exit};
  }
  static core::ProcessRef program_of(JobId id) {
    return {static_cast<std::int32_t>(id.number + 5000), 3};
  }
  JobId run(const std::string& gpu) { return run(job(gpu)); }
  JobId run(core::Submit asked) {
    const JobId id = submit(std::move(asked));
    started(id);
    EXPECT_EQ(state_of(id), JobState::kRunning);
    return id;
  }

  JobState state_of(JobId id) const {
    const core::Job* found = engine_->state().find(id);
    return found == nullptr ? JobState::kEnded : found->state;
  }
  Ids in_state(JobState state) const {
    Ids ids;
    for (const auto& [id, each] : engine_->state().jobs())
      if (each.state == state) ids.push_back(id);
    return ids;
  }
  Ids reserved() const {
    Ids ids;
    for (const auto& [id, cards] : launcher_.reserved()) ids.push_back(id);
    return ids;
  }

  FakeClock clock_;
  FaultyStore store_;
  FakeLauncher launcher_;
  Options options_;
  core::Pool machine_ = one_card(80);
  std::unique_ptr<Engine> engine_;
  std::uint64_t tickets_ = 0;
};

}  // namespace mete::engine
