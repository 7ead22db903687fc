// SPDX-License-Identifier: Apache-2.0
#include "wire/keeper.h"

#include <gtest/gtest.h>

#include "wire/test/full.h"

namespace mete::wire {
namespace {

KeeperPlan full_plan() {
  KeeperPlan plan;
  plan.job = {12, 3};
  plan.attempt = 2;
  plan.spec = full_detached_spec();
  plan.grant = {{1, "GPU-1", Bytes::from_gib(8), true}, {0, "GPU-0", Bytes::from_gib(9), false}};
  plan.cards = {{0, "", "H200", Bytes::from_gib(140), Bytes::from_gib(141), "NVIDIA H200"},
                {0, "", "A10", Bytes::from_gib(23), Bytes::from_gib(24), "NVIDIA A10"}};
  plan.driver = "580.1";
  plan.readings = "/run/readings";
  plan.simulated = "2xH200";
  plan.keep = "/var/lib/mete/keep";
  plan.state = std::string("/var/lib/mete/users/") + kOddBytes;
  plan.as_owner = true;
  plan.log = std::string("/home/alice/") + kOddBytes;
  plan.err = "/home/alice/err";
  plan.log_limit = Bytes::from_mib(256);
  plan.grace_ms = 30'000;
  plan.preload = {"/usr/lib/mete/libmete.so", "/usr/lib/mete/libmete-cuda.so"};
  plan.simgpu = "/usr/lib/mete/simgpu";
  plan.probe = "/usr/libexec/mete/mete-probe";
  plan.environment = std::string("A=b\0ODD=", 8) + kOddBytes + std::string("\nline\0", 6);
  plan.script = std::string("#!/bin/sh\necho ") + kOddBytes + "\n";
  return plan;
}

TEST(KeeperPlan, IsReadAsItWasWritten) {
  const KeeperPlan plan = full_plan();
  const Result<KeeperPlan> read = decode_keeper_plan(encode(plan));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(encode(*read), encode(plan));
  EXPECT_EQ(read->spec, plan.spec);
  EXPECT_EQ(read->state, plan.state);
  EXPECT_EQ(read->log, plan.log);
  EXPECT_EQ(read->environment, plan.environment);
  EXPECT_EQ(read->script, plan.script);
  EXPECT_EQ(read->grant, plan.grant);
  EXPECT_EQ(read->cards[1].total, Bytes::from_gib(24));
  EXPECT_TRUE(read->as_owner);
}

TEST(KeeperPlan, ThatIsNotWholeIsRefused) {
  const std::string bytes = encode(full_plan());
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(decode_keeper_plan(std::string_view(bytes).substr(0, length)).ok()) << length;
  EXPECT_FALSE(decode_keeper_plan(bytes + "x").ok());
  EXPECT_FALSE(decode_keeper_plan(replaced(bytes, "plan 1", "plan 2")).ok());
}

TEST(KeeperPlan, NeedsADetachedJobAndACardForEachGranted) {
  KeeperPlan plan = full_plan();
  plan.cards.pop_back();
  EXPECT_FALSE(decode_keeper_plan(encode(plan)).ok());
  plan = full_plan();
  plan.spec.detached.reset();
  EXPECT_FALSE(decode_keeper_plan(encode(plan)).ok());
}

TEST(EnvironmentLines, AreWhatStandsBeforeEachNul) {
  EXPECT_EQ(environment_lines(std::string_view("A=b\0C=\nd\0", 9)),
            (std::vector<std::string>{"A=b", "C=\nd"}));
  EXPECT_TRUE(environment_lines("").empty());
}

TEST(LogPath, PatternsAreFilledIn) {
  core::JobSpec spec;
  spec.name = "a/b";
  spec.user = "alice";
  spec.detached.emplace();
  EXPECT_EQ(log_path(spec, {12, 3}, "/s/logs"), "/s/logs/12_3.log");
  EXPECT_EQ(error_log_path(spec, {12, 3}), "");
  spec.detached->log = "/o/%j.%A.%a.%x.%u.%%.%q.%";
  spec.detached->err = "/e/%a%%j";
  EXPECT_EQ(log_path(spec, {12, 3}, "/s/logs"), "/o/12_3.12.3.a_b.alice.%.%q.%");
  EXPECT_EQ(log_path(spec, {12}, "/s/logs"), "/o/12.12.0.a_b.alice.%.%q.%");
  EXPECT_EQ(error_log_path(spec, {12, 3}), "/e/3%j");
}

TEST(TerminalPath, IsOfTheAttempt) {
  EXPECT_EQ(terminal_path("/s", {12, 3}, 2), "/s/terminals/12_3.2");
}

}  // namespace
}  // namespace mete::wire
