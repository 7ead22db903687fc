// SPDX-License-Identifier: Apache-2.0
// The record of a keeper: its content at each stage, exclusive claims under many concurrent
// processes, withdrawn claims and drafts of killed keepers. Every write in place is cut after each
// byte, and every byte of a claim is changed: a torn area counts as absent, a changed claim is
// refused. The files are real, in a temporary folder.
#include "launch/keeper_record.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"

namespace mete::launch {
namespace {

class KeeperRecordTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/mete-record-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return base::join_path(folder_, "12_3.2"); }
  KeeperRecord claimed() {
    Result<KeeperRecord> record = KeeperRecord::claim(folder_, claim_);
    EXPECT_TRUE(record.ok()) << record.error().message;
    return *std::move(record);
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_),
                                                  std::filesystem::directory_iterator()));
  }

  std::string folder_;
  Claim claim_{{12, 3}, 2, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 255}, {412, 98765}};
  RunningProgram program_{{413, 98766}, seam::Nanoseconds(123'456'789)};
  std::vector<std::string> groups_{"/sys/fs/cgroup/mete-12_3.2-412"};
};

TEST_F(KeeperRecordTest, SaysWhatWasWrittenAtEachStage) {
  KeeperRecord record = claimed();
  Record expected{claim_};
  EXPECT_EQ(*read_record(path()), expected);
  ASSERT_TRUE(record.launching(groups_).ok());
  expected.launched = true;
  expected.groups = groups_;
  EXPECT_EQ(*read_record(path()), expected);
  ASSERT_TRUE(record.running(program_).ok());
  expected.program = program_;
  EXPECT_EQ(*read_record(path()), expected);
  ASSERT_TRUE(record.ended("{\"exit_code\":7}").ok());
  expected.exit = "{\"exit_code\":7}";
  EXPECT_EQ(*read_record(path()), expected);
  struct stat info {};
  ASSERT_EQ(stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(info.st_size, 4096);
  EXPECT_EQ(files(), 1u);
}

TEST_F(KeeperRecordTest, AllRoomIsTakenByTheClaim) {
  KeeperRecord record = claimed();
  struct stat before {};
  ASSERT_EQ(stat(path().c_str(), &before), 0);
  ASSERT_TRUE(record.launching(groups_).ok());
  ASSERT_TRUE(record.ended(std::string(kMaxExitText, 'x')).ok());
  struct stat after {};
  ASSERT_EQ(stat(path().c_str(), &after), 0);
  EXPECT_EQ(before.st_blocks, after.st_blocks);
  EXPECT_GE(before.st_blocks, 8);
}

TEST_F(KeeperRecordTest, ASecondClaimIsRefusedAndChangesNothing) {
  KeeperRecord record = claimed();
  ASSERT_TRUE(record.launching({}).ok());
  Claim other = claim_;
  other.keeper = {500, 1};
  const Result<KeeperRecord> second = KeeperRecord::claim(folder_, other);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kBusy);
  EXPECT_EQ(read_record(path())->claim, claim_);
  EXPECT_TRUE(read_record(path())->launched);
  EXPECT_EQ(files(), 1u);
}

TEST_F(KeeperRecordTest, OfManyWhoClaimAtOnceExactlyOneGetsIt) {
  for (int round = 0; round < 5; ++round) {
    claim_.attempt = static_cast<std::uint32_t>(round);
    std::vector<pid_t> children;
    for (int i = 0; i < 16; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        claim_.keeper = {getpid(), 1};
        _exit(KeeperRecord::claim(folder_, claim_).ok() ? 1 : 0);
      }
      children.push_back(child);
    }
    int winners = 0;
    pid_t winner = 0;
    for (const pid_t child : children) {
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      winners += WEXITSTATUS(status);
      if (WEXITSTATUS(status) == 1) winner = child;
    }
    EXPECT_EQ(winners, 1);
    const Result<Record> record =
        read_record(base::join_path(folder_, to_string(RecordName{{12, 3}, claim_.attempt})));
    ASSERT_TRUE(record.ok());
    EXPECT_EQ(record->claim.keeper.pid, winner);
  }
}

TEST_F(KeeperRecordTest, AWithdrawnClaimIsFreeAgain) {
  KeeperRecord record = claimed();
  ASSERT_TRUE(record.withdraw().ok());
  EXPECT_EQ(read_record(path()).error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(KeeperRecord::claim(folder_, claim_).ok());
}

TEST_F(KeeperRecordTest, TheDraftOfAKilledKeeperIsNotInTheWay) {
  ASSERT_TRUE(base::write_atomic(base::join_path(folder_, ".12_3.2.412"), "half").ok());
  EXPECT_TRUE(KeeperRecord::claim(folder_, claim_).ok());
  EXPECT_EQ(files(), 1u);
}

TEST_F(KeeperRecordTest, AFolderThatIsNotThereIsAnError) {
  EXPECT_EQ(KeeperRecord::claim(folder_ + "/none", claim_).error().code, ErrorCode::kNotFound);
}

TEST_F(KeeperRecordTest, TheEndIsOneLineOfBoundedLength) {
  KeeperRecord record = claimed();
  EXPECT_FALSE(record.ended(std::string(kMaxExitText + 1, 'x')).ok());
  EXPECT_FALSE(record.ended("two\nlines").ok());
  EXPECT_FALSE(record.ended(std::string("a\0b", 3)).ok());
  EXPECT_FALSE(read_record(path())->exit.has_value());
}

// Each write in place, cut off after any byte: the new content counts as absent, and the old
// content is still there.
TEST_F(KeeperRecordTest, ATornWriteIsNeverTakenForAWholeOne) {
  KeeperRecord record = claimed();
  const std::string first = *base::read_all(path());
  ASSERT_TRUE(record.launching(groups_).ok());
  const std::string second = *base::read_all(path());
  ASSERT_TRUE(record.running(program_).ok());
  const std::string third = *base::read_all(path());
  ASSERT_TRUE(record.ended("{\"exit_code\":7}").ok());
  const std::string fourth = *base::read_all(path());
  const auto torn = [](const std::string& before, const std::string& after, std::size_t at) {
    return *parse_record(after.substr(0, at) + before.substr(at));
  };
  for (std::size_t at = 0; at < kRecordBytes; ++at) {
    const Record launch = torn(first, second, at);
    EXPECT_TRUE(launch.groups.empty() || launch.groups == groups_);
    EXPECT_EQ(launch.launched, at > 512) << at;
    const Record program = torn(second, third, at);
    EXPECT_TRUE(!program.program || *program.program == program_);
    EXPECT_TRUE(program.launched);
    const Record exit = torn(third, fourth, at);
    EXPECT_TRUE(!exit.exit || *exit.exit == "{\"exit_code\":7}");
    EXPECT_EQ(exit.program, program_);
  }
  EXPECT_EQ(*torn(third, fourth, kRecordBytes - 1).exit, "{\"exit_code\":7}");
}

TEST_F(KeeperRecordTest, AClaimWithOneByteChangedIsRefused) {
  (void)claimed();
  const std::string whole = *base::read_all(path());
  const std::size_t length = whole.find('\0');
  for (std::size_t at = 0; at < length; ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_EQ(parse_record(changed).error().code, ErrorCode::kCorrupt) << at;
  }
}

TEST_F(KeeperRecordTest, OnlyFilesOfTheRightSizeAreRead) {
  (void)claimed();
  const std::string whole = *base::read_all(path());
  EXPECT_TRUE(parse_record(whole).ok());
  EXPECT_FALSE(parse_record(whole.substr(1)).ok());
  EXPECT_FALSE(parse_record("").ok());
  ASSERT_TRUE(base::write_atomic(path(), whole + "x").ok());
  EXPECT_EQ(read_record(path()).error().code, ErrorCode::kCorrupt);
}

TEST(RecordName, IsJobAndAttempt) {
  EXPECT_EQ(to_string(RecordName{{12}, 1}), "12.1");
  EXPECT_EQ(to_string(RecordName{{12, 3}, 2}), "12_3.2");
  EXPECT_EQ(parse_record_name("12_3.2"), (RecordName{{12, 3}, 2}));
  EXPECT_EQ(parse_record_name("12.1"), (RecordName{{12}, 1}));
  for (const char* bad : {"", ".", "12", "12.", ".1", "12.1.1", "012.1", "12.01", "12_.1", "a.1",
                          "12_3.-1", ".12.1.400", "12.4294967296"})
    EXPECT_EQ(parse_record_name(bad), std::nullopt) << bad;
}

}  // namespace
}  // namespace mete::launch
