// SPDX-License-Identifier: Apache-2.0
// LogReader on real files in a temporary folder. The tests play the keeper: they append, rename
// FILE to FILE.1, remove and truncate, between the calls of a reader that is open, which must miss
// and repeat nothing.
#include "cli/log_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "launch/log_times.h"

namespace mete::cli {
namespace {

class LogReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "mete-log-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = std::filesystem::canonical(pattern).string();
    log_ = folder_ + "/log";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void append(const std::string& text) { std::ofstream(log_, std::ios::app) << text; }
  void rotate() { std::filesystem::rename(log_, log_ + ".1"); }

  // Everything that is there at the moment.
  static std::string all(LogReader& reader) {
    std::string text;
    for (;;) {
      const Result<std::string> block = reader.next();
      EXPECT_TRUE(block.ok());
      if (!block || block->empty()) return text;
      text += *block;
    }
  }
  std::string read(const LogReader::From& from) {
    Result<LogReader> reader = LogReader::open(log_, from);
    return reader ? all(*reader) : "error: " + reader.error().message;
  }
  std::string tail(std::uint64_t lines) { return read({lines, {}, {}}); }

  std::string folder_;
  std::string log_;
};

TEST_F(LogReaderTest, TheLastLinesAreCountedFromTheEnd) {
  append("one\ntwo\nthree\n");
  EXPECT_EQ(tail(0), "");
  EXPECT_EQ(tail(1), "three\n");
  EXPECT_EQ(tail(2), "two\nthree\n");
  EXPECT_EQ(tail(3), "one\ntwo\nthree\n");
  EXPECT_EQ(tail(99), "one\ntwo\nthree\n");
  append("half");
  EXPECT_EQ(tail(1), "half");
  EXPECT_EQ(tail(2), "three\nhalf");
}

TEST_F(LogReaderTest, LinesLongerThanABlockAndManyOfThem) {
  const std::string line(150'000, 'x');
  append("first\n" + line + "\n");
  EXPECT_EQ(tail(1), line + "\n");
  EXPECT_EQ(tail(2), "first\n" + line + "\n");
  std::string many;
  for (int i = 0; i < 20'000; ++i) many += std::to_string(i) + "\n";
  append(many);
  EXPECT_EQ(tail(20'000), many);
  EXPECT_EQ(tail(1), "19999\n");
}

TEST_F(LogReaderTest, AnEmptyLogHasNoLines) {
  append("");
  EXPECT_EQ(tail(5), "");
  EXPECT_EQ(read({}), "");
}

TEST_F(LogReaderTest, TheOldFileComesFirstIfItIsOfThisJob) {
  append("old 1\nold 2\n");
  rotate();
  append("new\n");
  EXPECT_EQ(read({}), "old 1\nold 2\nnew\n");
  EXPECT_EQ(tail(2), "old 2\nnew\n");
  EXPECT_EQ(tail(1), "new\n");
  const WallTime later{4'000'000'000'000};
  EXPECT_EQ(read({{}, {}, later}), "new\n");
}

TEST_F(LogReaderTest, FollowsOverRotation) {
  append("a");
  Result<LogReader> reader = LogReader::open(log_, {});
  ASSERT_TRUE(reader);
  EXPECT_EQ(all(*reader), "a");
  append("b");
  rotate();
  append("c");
  EXPECT_EQ(all(*reader), "bc");
  append("d");
  EXPECT_EQ(all(*reader), "d");
}

TEST_F(LogReaderTest, ARotationThatWasMissedIsReadFromTheOldFile) {
  append("a");
  Result<LogReader> reader = LogReader::open(log_, {});
  ASSERT_TRUE(reader);
  EXPECT_EQ(all(*reader), "a");
  rotate();
  append("b");
  rotate();
  append("c");
  EXPECT_EQ(all(*reader), "bc");
}

TEST_F(LogReaderTest, FollowsOverRemovalAndEmptying) {
  append("a");
  Result<LogReader> reader = LogReader::open(log_, {});
  ASSERT_TRUE(reader);
  EXPECT_EQ(all(*reader), "a");
  std::filesystem::remove(log_);
  EXPECT_EQ(all(*reader), "");
  append("bcd");
  EXPECT_EQ(all(*reader), "bcd");
  std::filesystem::resize_file(log_, 0);
  append("e");
  EXPECT_EQ(all(*reader), "e");
}

TEST_F(LogReaderTest, TellsWhenThereIsMore) {
  append("a");
  Result<LogReader> reader = LogReader::open(log_, {});
  ASSERT_TRUE(reader);
  EXPECT_EQ(all(*reader), "a");
  reader->heard();
  const auto readable = [&] {
    char byte = 0;
    // Looks without taking: events of inotify cannot be read in parts.
    return ::read(reader->descriptor(), &byte, 1) < 0 && errno == EINVAL;
  };
  EXPECT_FALSE(readable());
  append("b");
  EXPECT_TRUE(readable());
  EXPECT_EQ(all(*reader), "b");
  reader->heard();
  rotate();
  append("c");
  EXPECT_TRUE(readable());
  EXPECT_EQ(all(*reader), "c");
  reader->heard();
  append("d");
  EXPECT_TRUE(readable());
}

TEST_F(LogReaderTest, OnlyWhatWasWrittenSince) {
  launch::LogTimes times(log_);
  times.mark(WallTime{1'000'000}, 0);
  append("early\n");
  times.mark(WallTime{2'000'000}, 6);
  append("late\n");
  EXPECT_EQ(read({{}, WallTime{1'000'000}, {}}), "early\nlate\n");
  EXPECT_EQ(read({{}, WallTime{1'500'000}, {}}), "late\n");
  EXPECT_EQ(read({{}, WallTime{3'000'000}, {}}), "");
  EXPECT_EQ(read({1, WallTime{1'000'000}, {}}), "late\n");
}

TEST_F(LogReaderTest, WithoutTimesSinceIsRefused) {
  append("a\n");
  EXPECT_EQ(read({{}, WallTime{1'000'000}, {}}),
            "error: it is not known when what was written to " + log_);
}

TEST_F(LogReaderTest, WhatIsNoFileIsNotRead) {
  ASSERT_EQ(mkfifo(log_.c_str(), 0600), 0);
  EXPECT_EQ(LogReader::open(log_, {}).error().code, ErrorCode::kUnsupported);
  std::filesystem::remove(log_);
  EXPECT_EQ(LogReader::open(log_, {}).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace mete::cli
