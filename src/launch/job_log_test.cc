// SPDX-License-Identifier: Apache-2.0
// The log of a job on real files: rotation, files that are removed, moved or replaced while it is
// open, links, FIFOs and /dev/null, and a disk that is full (a tmpfs of 64 KiB, which needs root).
// The log must count what it drops, and never wait. Two writers of one file must follow each
// other's rotation.
#include "launch/job_log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/file.h"

namespace mete::launch {
namespace {

class JobLogTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/mete-log-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name = "a.log") const {
    return base::join_path(folder_, name);
  }
  JobLog opened(Bytes limit = Bytes()) {
    Result<JobLog> log = JobLog::open({path(), limit});
    EXPECT_TRUE(log.ok()) << log.error().message;
    return *std::move(log);
  }
  static std::string text(const std::string& of) {
    const Result<std::string> bytes = base::read_all(of, 64 << 20);
    return bytes ? *bytes : "(none)";
  }
  static Error refused(const std::string& at) {
    const Result<JobLog> log = JobLog::open({at, Bytes()});
    EXPECT_FALSE(log.ok());
    return log.ok() ? Error::invalid("it was opened") : log.error();
  }

  std::string folder_;
};

TEST_F(JobLogTest, AddsToWhatIsThere) {
  ASSERT_TRUE(base::write_atomic(path(), "before\n", 0644).ok());
  JobLog log = opened();
  log.write("one\n");
  log.write("half");
  log.say("ours");
  log.write("two\n");
  EXPECT_EQ(text(path()), "before\none\nhalf\nmete: ours\ntwo\n");
  EXPECT_EQ(log.size(), Bytes::from_bytes(text(path()).size()));
}

TEST_F(JobLogTest, IsMadeWithItsOwnModeWhateverTheUmask) {
  const mode_t before = umask(0027);
  (void)opened();
  ASSERT_TRUE(JobLog::open({path("b"), Bytes(), 0664}).ok());
  EXPECT_EQ(umask(before), 0027u);
  struct stat info {};
  ASSERT_EQ(stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ASSERT_EQ(stat(path("b").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0664u);
}

TEST_F(JobLogTest, OneOldFileIsKeptAndNoneGrowsBeyondTheLimit) {
  JobLog log = opened(Bytes::from_bytes(100));
  for (char c = 'a'; c < 'g'; ++c) log.write(std::string(59, c) + "\n");
  EXPECT_EQ(text(path()), std::string(59, 'f') + "\n");
  EXPECT_EQ(text(path("a.log.1")), std::string(59, 'e') + "\n");
  EXPECT_EQ(log.size(), Bytes::from_bytes(120));
  EXPECT_EQ(log.lost(), 0u);
}

TEST_F(JobLogTest, WhatCameBeforeAFileIsKnown) {
  {
    JobLog log = opened(Bytes::from_bytes(100));
    log.write(std::string(60, 'a'));
    EXPECT_EQ(before_of(path()), LogBefore());
    log.write(std::string(59, 'b') + "\n");
    EXPECT_EQ(before_of(path()), (LogBefore{60, true}));
    log.write(std::string(60, 'c'));
    EXPECT_EQ(before_of(path()), (LogBefore{120, false}));
    EXPECT_EQ(before_of(path("a.log.1")), (LogBefore{60, true}));
  }
  JobLog again = opened(Bytes::from_bytes(100));  // the next attempt
  again.write(std::string(60, 'd'));
  EXPECT_EQ(before_of(path()).bytes, 180u);
  ASSERT_EQ(unlink(path().c_str()), 0);
  (void)opened();
  EXPECT_EQ(before_of(path()), LogBefore()) << "a file of the same name is another one";
}

TEST_F(JobLogTest, WhereNoNewFileCanBeMadeBytesAreDroppedAndNothingIsDestroyed) {
  std::filesystem::create_directory(path("a.log.1"));  // prevents the rotation
  JobLog log = opened(Bytes::from_bytes(10));
  log.write("12345678\n");
  log.write("too much\n");
  EXPECT_EQ(text(path()), "12345678\n");
  EXPECT_EQ(log.lost(), 9u);
}

TEST_F(JobLogTest, ARemovedFileIsMadeAgain) {
  JobLog log = opened();
  log.write("one\n");
  ASSERT_EQ(unlink(path().c_str()), 0);
  log.write("two\n");
  EXPECT_EQ(text(path()), "two\n");
}

TEST_F(JobLogTest, AFileMovedAwayIsLeftAlone) {
  JobLog log = opened();
  log.write("one\n");
  ASSERT_EQ(rename(path().c_str(), path("moved").c_str()), 0);
  log.write("two\n");
  EXPECT_EQ(text(path("moved")), "one\n");
  EXPECT_EQ(text(path()), "two\n");
}

TEST_F(JobLogTest, AFolderThatIsGoneDoesNotStopIt) {
  std::filesystem::create_directory(path("f"));
  Result<JobLog> log = JobLog::open({path("f/log"), Bytes()});
  ASSERT_TRUE(log.ok());
  std::filesystem::remove_all(path("f"));
  log->write("no reader for this\n");
  std::filesystem::create_directory(path("f"));
  log->write("back\n");
  EXPECT_EQ(text(path("f/log")), "back\n");
}

TEST_F(JobLogTest, AFifoPutInItsPlaceIsNotOpened) {
  JobLog log = opened();
  ASSERT_EQ(rename(path().c_str(), path("moved").c_str()), 0);
  ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
  log.write("one\n");
  EXPECT_EQ(text(path("moved")), "one\n");
}

TEST_F(JobLogTest, OnlyARegularFileOrTheNullDeviceIsALog) {
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(refused(path("fifo")).message, "the log " + path("fifo") + " is a FIFO");
  // With a reader, open() itself would succeed.
  const Fd reader(open(path("fifo").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_EQ(refused(path("fifo")).code, ErrorCode::kInvalid);
  EXPECT_EQ(refused(folder_).message, "the log " + folder_ + " is a folder");
  EXPECT_EQ(refused("/dev/zero").message, "the log /dev/zero is a device");
  EXPECT_EQ(refused(path("none/log")).code, ErrorCode::kNotFound);
  ASSERT_EQ(symlink("fifo", path("link").c_str()), 0);
  EXPECT_EQ(refused(path("link")).code, ErrorCode::kInvalid);
}

TEST_F(JobLogTest, TheNullDeviceTakesEverything) {
  Result<JobLog> log = JobLog::open({"/dev/null", Bytes::from_bytes(1)});
  ASSERT_TRUE(log.ok());
  log->write(std::string(1000, 'x'));
  EXPECT_EQ(log->lost(), 0u);
  EXPECT_EQ(log->size(), Bytes());
  EXPECT_TRUE(std::filesystem::exists("/dev/null"));
}

TEST_F(JobLogTest, ALinkIsFollowedAndItsTargetRotated) {
  std::filesystem::create_directory(path("real"));
  ASSERT_EQ(symlink("real/log", path().c_str()), 0);
  JobLog log = opened(Bytes::from_bytes(10));
  log.write("12345678\n");
  log.write("87654321\n");
  EXPECT_TRUE(std::filesystem::is_symlink(path()));
  EXPECT_EQ(text(path("real/log")), "87654321\n");
  EXPECT_EQ(text(path("real/log.1")), "12345678\n");
}

TEST_F(JobLogTest, TwoWritersOfOneFileFollowEachOthersRotation) {
  JobLog one = opened(Bytes::from_bytes(20));
  JobLog other = opened(Bytes::from_bytes(20));
  one.write("aaaaaaaa\n");
  other.write("bbbbbbbb\n");
  one.write("cccccccc\n");
  other.write("dddddddd\n");
  EXPECT_EQ(text(path("a.log.1")), "aaaaaaaa\nbbbbbbbb\n");
  EXPECT_EQ(text(path()), "cccccccc\ndddddddd\n");
}

TEST_F(JobLogTest, OnAFullDiskBytesAreDroppedAndSaidLater) {
  if (geteuid() != 0 || mount("tmpfs", folder_.c_str(), "tmpfs", 0, "size=64k") != 0)
    GTEST_SKIP() << "needs root, to mount a small disk";
  {
    JobLog log = opened();
    log.write("first\n");
    const std::string page(4096, 'x');
    for (int i = 0; i < 40; ++i) log.write(page);
    EXPECT_GT(log.lost(), 20u * 4096);
    const std::uint64_t lost = log.lost();
    ASSERT_EQ(truncate(path().c_str(), 6), 0);  // now there is room
    log.write("last\n");
    EXPECT_EQ(log.lost(), lost);
    const std::string said = text(path());
    EXPECT_TRUE(said.starts_with("first\n")) << said;
    EXPECT_NE(said.find("mete: " + std::to_string(lost) +
                        " bytes of output were lost here: No space left on device\nlast\n"),
              std::string::npos)
        << said;
  }
  EXPECT_EQ(umount(folder_.c_str()), 0);
}

}  // namespace
}  // namespace mete::launch
