// SPDX-License-Identifier: Apache-2.0
#include "launch/log_times.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"

namespace mete::launch {
namespace {

class LogTimesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "mete-times-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    log_ = folder_ + "/b.log";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static WallTime at(std::int64_t seconds) { return {1'700'000'000'000 + seconds * 1000}; }
  std::uint64_t since(std::int64_t seconds) const { return *offset_since(log_, at(seconds)); }

  std::string folder_;
  std::string log_;
};

TEST_F(LogTimesTest, TheFileIsHiddenBesideTheLog) {
  EXPECT_EQ(times_path("/a/b.log"), "/a/.b.log.times");
  EXPECT_EQ(times_path("b"), ".b.times");
}

TEST_F(LogTimesTest, WhatWasWrittenBeforeASilenceIsNotShownAfterIt) {
  LogTimes times(log_);
  times.mark(at(0), 0);
  times.mark({at(0).ms + 200}, 10);  // within a second: not marked
  times.mark(at(1), 20);
  times.mark(at(1800), 30);
  EXPECT_EQ(since(-100), 0u);
  EXPECT_EQ(since(0), 0u);
  EXPECT_EQ(since(1), 20u);
  EXPECT_EQ(since(900), 30u);
  EXPECT_EQ(since(1800), 30u);
  EXPECT_GT(since(1900), 1'000'000u);
}

TEST_F(LogTimesTest, AWeekOfOutputTakesLittle) {
  LogTimes times(log_);
  constexpr std::int64_t kWeek = 7 * 86'400;
  for (std::int64_t second = 0; second < kWeek; second += 10)
    times.mark(at(second), static_cast<std::uint64_t>(second));
  EXPECT_LT(std::filesystem::file_size(times_path(log_)), 1u << 20);
  const std::uint64_t found = since(kWeek / 2);
  EXPECT_LE(found, static_cast<std::uint64_t>(kWeek / 2));
  EXPECT_GT(found, static_cast<std::uint64_t>(kWeek / 2 - 300));
}

TEST_F(LogTimesTest, ANextAttemptGoesOnInTheSameFile) {
  LogTimes(log_).mark(at(0), 0);
  LogTimes(log_).mark(at(100), 50);
  EXPECT_EQ(since(0), 0u);
  EXPECT_EQ(since(50), 50u);
}

TEST_F(LogTimesTest, AClockThatIsSetBackLosesNothing) {
  LogTimes times(log_);
  times.mark(at(1000), 0);
  times.mark(at(10), 5);
  times.mark(at(20), 9);
  EXPECT_EQ(since(15), 0u);
  EXPECT_EQ(since(1000), 0u);
}

TEST_F(LogTimesTest, RotationAndRemovalBeginANewOne) {
  LogTimes times(log_);
  times.mark(at(0), 70);
  times.rotated(log_ + ".1");
  times.mark_new_file(at(5), 0);
  EXPECT_EQ(*offset_since(log_ + ".1", at(0)), 70u);
  EXPECT_EQ(since(0), 0u);
  times.mark(at(10), 70);
  times.mark_new_file(at(20), 0);  // it was removed
  EXPECT_EQ(since(8), 0u);
}

TEST_F(LogTimesTest, TwoProgramsThatWriteOneLogShareIt) {
  LogTimes one(log_);
  LogTimes other(log_);
  one.mark(at(0), 0);
  other.mark(at(2), 20);
  one.rotated(log_ + ".1");
  one.mark_new_file(at(10), 0);
  other.mark_new_file(at(12), 30);
  EXPECT_EQ(since(0), 0u);
  EXPECT_EQ(since(12), 30u);
}

TEST_F(LogTimesTest, ForeignBytesAreNoTimes) {
  EXPECT_EQ(offset_since(log_, at(0)).error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(
      base::write_atomic(times_path(log_), "something\nelse 12\n1 99999999999999999999 3\n"));
  EXPECT_EQ(offset_since(log_, at(0)).error().code, ErrorCode::kNotFound);
  LogTimes(log_).mark(at(0), 7);
  EXPECT_EQ(since(0), 7u);
}

TEST_F(LogTimesTest, WhatIsNoFileIsNotWaitedForNorFollowed) {
  ASSERT_EQ(mkfifo(times_path(log_).c_str(), 0600), 0);
  EXPECT_FALSE(offset_since(log_, at(0)));  // it returns
  ASSERT_EQ(unlink(times_path(log_).c_str()), 0);
  const std::string elsewhere = log_ + ".elsewhere";
  ASSERT_TRUE(base::write_atomic(elsewhere, "0 7 1000\n"));
  ASSERT_EQ(symlink(elsewhere.c_str(), times_path(log_).c_str()), 0);
  EXPECT_FALSE(offset_since(log_, at(0)));
}

TEST_F(LogTimesTest, AFileThatGoesOnSaysAfterWhat) {
  EXPECT_EQ(before_of(log_), LogBefore());
  LogTimes times(log_);
  times.mark(at(0), 0);
  EXPECT_EQ(before_of(log_), LogBefore());
  times.goes_on({70, true});
  EXPECT_EQ(before_of(log_), (LogBefore{70, true}));
  EXPECT_EQ(since(0), 0u);
  times.forget();
  EXPECT_EQ(before_of(log_), LogBefore());
}

}  // namespace
}  // namespace mete::launch
