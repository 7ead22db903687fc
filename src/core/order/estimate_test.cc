// SPDX-License-Identifier: Apache-2.0
#include "core/order/estimate.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace mete::core {
namespace {

JobSpec named(const std::string& name, const std::string& user = "alice") {
  JobSpec spec;
  spec.user = user;
  spec.name = name;
  return spec;
}

Estimates learned(std::vector<std::uint64_t> seconds) {
  Estimates estimates;
  for (const std::uint64_t each : seconds) estimates.learn(named("train"), each * 1000);
  return estimates;
}

TEST(Estimates, NothingIsKnownBeforeFiveHaveEnded) {
  EXPECT_EQ(learned({}).ends_by(named("train"), 0, 50), std::nullopt);
  EXPECT_EQ(learned({1, 2, 3, 4}).ends_by(named("train"), 0, 50), std::nullopt);
  EXPECT_EQ(learned({1, 2, 3, 4, 5}).ends_by(named("train"), 0, 50), 3u);
  EXPECT_EQ(learned({7}).ends_by(named("train"), 0, 50, 1), 7u) << "unless fewer will do";
}

TEST(Estimates, SoManyPercentHadEndedByThen) {
  std::vector<std::uint64_t> seconds;
  for (std::uint64_t i = 1; i <= 20; ++i) seconds.push_back(i * 10);
  const Estimates estimates = learned(seconds);
  EXPECT_EQ(estimates.ends_by(named("train"), 0, 50), 100u);
  EXPECT_EQ(estimates.ends_by(named("train"), 0, 95), 190u);
  EXPECT_EQ(estimates.ends_by(named("train"), 0, 96), 200u);
  EXPECT_EQ(estimates.ends_by(named("train"), 0, 100), 200u);
  EXPECT_EQ(estimates.ends_by(named("train"), 0, 0), 10u);
}

TEST(Estimates, OfOneThatHasRunForAWhileOnlyThoseCountThatRanLonger) {
  const Estimates estimates = learned({1, 1, 1, 1, 1, 100, 200, 300, 400, 500});
  EXPECT_EQ(estimates.ends_by(named("train"), 0, 50), 1u);
  EXPECT_EQ(estimates.ends_by(named("train"), 1, 50), 300u) << "it is not one of the short ones";
  EXPECT_EQ(estimates.ends_by(named("train"), 100, 50), std::nullopt) << "too few are left";
  EXPECT_EQ(estimates.ends_by(named("train"), 500, 50, 1), std::nullopt);
}

TEST(Estimates, AreByUserAndName) {
  const Estimates estimates = learned({1, 2, 3, 4, 5});
  EXPECT_EQ(estimates.ends_by(named("train", "bob"), 0, 50), std::nullopt);
  EXPECT_EQ(estimates.ends_by(named("test"), 0, 50), std::nullopt);
  EXPECT_EQ(estimates.ends_by("alice", "train", 0, 50), 3u);
}

// A job is named after its program unless its user says otherwise.
TEST(Estimates, AProgramsNameAloneSaysNothingOfAnotherCommand) {
  const auto command = [](std::vector<std::string> words) {
    JobSpec spec = named("sleep");
    spec.command = std::move(words);
    return spec;
  };
  Estimates estimates;
  for (int i = 0; i < 5; ++i) estimates.learn(command({"/bin/sleep", "1"}), 1000);
  EXPECT_EQ(estimates.durations(command({"/bin/sleep", "1", "--again"})).size(), 5u);
  EXPECT_TRUE(estimates.durations(command({"/bin/sleep", "900"})).empty());
  EXPECT_TRUE(estimates.durations(command({"/bin/sleep", "-v", "900"})).empty());
  EXPECT_EQ(estimates.ends_by(command({"/bin/sleep", "900"}), 0, 95), std::nullopt);
  EXPECT_EQ(estimates.ends_by("alice", "sleep", 0, 95), 1u) << "all of the name";
  JobSpec called = command({"/bin/sleep", "900"});
  called.name = "train";
  estimates.learn(called, 900'000);
  called.command = {"/bin/sleep", "800"};
  EXPECT_EQ(estimates.durations(called).size(), 1u) << "its user says that they are alike";
}

TEST(Estimates, AJobIsNeverBelievedToHaveBeenOverSoonerThanItWas) {
  Estimates estimates;
  for (int i = 0; i < 5; ++i) estimates.learn(named("train"), 1001);
  EXPECT_EQ(estimates.ends_by(named("train"), 0, 50), 2u);
}

TEST(Estimates, TheLastDurationsAreKept) {
  Estimates estimates;
  for (std::uint64_t i = 0; i < 100; ++i) estimates.learn(named("train"), i * 1000);
  const auto durations = estimates.durations(named("train"));
  ASSERT_EQ(durations.size(), Estimates::kDurations);
  EXPECT_EQ(durations.front(), 68u);
  EXPECT_EQ(durations.back(), 99u);
}

TEST(Estimates, TheKindsThatEndedLastAreKept) {
  Estimates estimates;
  const auto learn = [&](std::size_t i) { estimates.learn(named(std::to_string(i)), 1000); };
  for (std::size_t i = 0; i < Estimates::kKinds; ++i) learn(i);
  learn(0);  // it is used again
  learn(Estimates::kKinds);
  EXPECT_EQ(estimates.entries().size(), Estimates::kKinds);
  EXPECT_FALSE(estimates.durations(named("0")).empty());
  EXPECT_TRUE(estimates.durations(named("1")).empty()) << "the oldest";
  EXPECT_FALSE(estimates.durations(named("2")).empty());
}

TEST(Estimates, EntriesAreAllThereIs) {
  Estimates estimates;
  for (std::size_t i = 0; i < Estimates::kKinds + 5; ++i)
    estimates.learn(named(std::to_string(i * 7 % 5000)), i * 1000);
  Estimates again;
  again.set(estimates.entries());
  EXPECT_EQ(again, estimates);
  estimates.learn(named("new"), 5);
  again.learn(named("new"), 5);
  EXPECT_EQ(again, estimates) << "and the same one is forgotten next";
}

TEST(Estimates, AHugeDurationIsCut) {
  Estimates estimates;
  for (int i = 0; i < 5; ++i) estimates.learn(named("train"), UINT64_MAX);
  EXPECT_GT(*estimates.ends_by(named("train"), 0, 50), 100u * 365 * 86'400);
}

}  // namespace
}  // namespace mete::core
