// SPDX-License-Identifier: Apache-2.0
// Making and removing grant files in a temporary folder, and removing leftovers. Launchers and jobs
// are real processes, some of them killed: a file stays as long as its launcher or a process of its
// job lives, and links or files of others are never touched. What is made must pass
// abi::check_grant.
#include "launch/grant_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/file.h"
#include "launch/leftovers.h"

namespace mete::launch {
namespace {

class GrantFileTest : public testing::Test {
 protected:
  GrantFileTest() {
    std::string name = testing::TempDir() + "mete-grants-XXXXXX";
    folder_ = mkdtemp(name.data());
    EXPECT_TRUE(set_uuid(card_[0], "GPU-00112233-4455-6677-8899-aabbccddeeff"));
    card_[0].guarantee_bytes = card_[0].ceiling_bytes = 8ull << 30;
    card_[0].total_bytes = 140ull << 30;
    card_[0].context_first_bytes = 518ull << 20;
  }
  ~GrantFileTest() override { std::filesystem::remove_all(folder_); }

  std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  // A launcher that is killed leaves its file behind.
  std::string left_by_killed_launcher() {
    const pid_t pid = fork();
    if (pid == 0) {
      Result<GrantFile> file = GrantFile::make(folder_, {}, card_);
      _exit(file ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
    return base::join_path(folder_, "cap-" + std::to_string(pid) + ".1");
  }

  std::string folder_;
  abi::GrantCard card_[1] = {};
};

TEST_F(GrantFileTest, IsAValidGrantForItsOwnerAloneAndFullyAllocated) {
  const Result<GrantFile> file = GrantFile::make(folder_, {}, card_);
  ASSERT_TRUE(file) << file.error().evidence;
  EXPECT_EQ(file->job(), "cap-" + std::to_string(getpid()));
  EXPECT_EQ(abi::check_grant(&file->grant(), sizeof(abi::Grant)), abi::GrantCheck::kOk);
  EXPECT_EQ(file->grant().accounts[0][0].limit_bytes.load(), 8ull << 30);
  EXPECT_EQ(file->grant().header.cards[0].uuid[15], 0xff);
  EXPECT_STREQ(file->grant().header.job, file->job().c_str());
  struct stat info {};
  ASSERT_EQ(stat(file->path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  EXPECT_GE(static_cast<std::uint64_t>(info.st_blocks) * 512, sizeof(abi::Grant));
}

TEST_F(GrantFileTest, AGrowingGrantBeginsAtItsGuarantee) {
  card_[0].ceiling_bytes = 20ull << 30;
  GrantName name;
  name.growing = true;
  const Result<GrantFile> file = GrantFile::make(folder_, name, card_);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->grant().accounts[0][0].limit_bytes.load(), 8ull << 30);
  EXPECT_EQ(file->grant().header.cards[0].ceiling_bytes, 20ull << 30);
  EXPECT_EQ(GrantFile::make(folder_, name, card_, 2).error().code, ErrorCode::kUnsupported);
  // Without a runner that answers, the whole ceiling is available at once.
  const Result<GrantFile> alone = GrantFile::make(folder_, {}, card_);
  ASSERT_TRUE(alone);
  EXPECT_EQ(alone->grant().accounts[0][0].limit_bytes.load(), 20ull << 30);
}

TEST_F(GrantFileTest, IsRemovedByItsMakerOnly) {
  {
    const Result<GrantFile> file = GrantFile::make(folder_, {}, card_);
    ASSERT_TRUE(file);
    const pid_t pid = fork();
    if (pid == 0) {
      { GrantFile copy = std::move(const_cast<GrantFile&>(*file)); }
      _exit(0);
    }
    ASSERT_EQ(waitpid(pid, nullptr, 0), pid);
    EXPECT_EQ(entries(), 1u);
  }
  EXPECT_EQ(entries(), 0u);
}

TEST_F(GrantFileTest, AnotherFileOfItsNameStays) {
  {
    const Result<GrantFile> first = GrantFile::make(folder_, {"7"}, card_);
    ASSERT_TRUE(first);
    ASSERT_EQ(unlink(first->path().c_str()), 0);
    ASSERT_TRUE(base::write_atomic(first->path(), "of the next job 7"));
  }
  EXPECT_EQ(entries(), 1u);
}

TEST_F(GrantFileTest, TakesAnotherNameWhenOneIsTaken) {
  const Result<GrantFile> first = GrantFile::make(folder_, {}, card_);
  const Result<GrantFile> second = GrantFile::make(folder_, {}, card_);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(second->job(), first->job() + "-2");
}

TEST_F(GrantFileTest, DoesNotFollowALink) {
  const std::string target = base::join_path(folder_, "precious");
  const std::string link = base::join_path(folder_, "cap-" + std::to_string(getpid()) + ".1");
  ASSERT_EQ(symlink(target.c_str(), link.c_str()), 0);
  const Result<GrantFile> file = GrantFile::make(folder_, {}, card_);
  ASSERT_TRUE(file);
  EXPECT_NE(file->path(), link);
  EXPECT_FALSE(std::filesystem::exists(target));
}

TEST_F(GrantFileTest, AFailureLeavesNothingBehind) {
  EXPECT_EQ(GrantFile::make(folder_, {}, std::vector<abi::GrantCard>(17)).error().code,
            ErrorCode::kUnsupported);
  EXPECT_EQ(GrantFile::make(folder_ + "/none", {}, card_).error().code, ErrorCode::kIo);
  EXPECT_EQ(entries(), 0u);
}

TEST_F(GrantFileTest, ACardIsKnownByItsUuid) {
  EXPECT_EQ(set_uuid(card_[0], "GPU-xyz").error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(card_[0].uuid[15], 0xff) << "and stays as it was";
}

TEST_F(GrantFileTest, LeftoversOfKilledLaunchersAreRemoved) {
  left_by_killed_launcher();
  left_by_killed_launcher();
  EXPECT_EQ(entries(), 2u);
  EXPECT_EQ(remove_leftovers(folder_), 2);
  EXPECT_EQ(entries(), 0u);
}

TEST_F(GrantFileTest, FilesOfLivingLaunchersAndOfOthersStay) {
  const Result<GrantFile> file = GrantFile::make(folder_, {}, card_);
  ASSERT_TRUE(file);
  ASSERT_TRUE(base::write_atomic(base::join_path(folder_, "notes"), "not ours"));
  EXPECT_EQ(remove_leftovers(folder_), 0);
  EXPECT_EQ(entries(), 2u);
  // No process holds this one: a launcher was killed before it had filled it.
  ASSERT_TRUE(base::write_atomic(base::join_path(folder_, "12.1"), ""));
  EXPECT_EQ(remove_leftovers(folder_), 1);
}

TEST_F(GrantFileTest, AFileStaysWhileAProcessOfItsJobLives) {
  const std::string path = left_by_killed_launcher();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    (void)close(ends[1]);
    (void)dup2(ends[0], 0);
    const std::string variable = "METE_GRANT=" + path;
    const char* const argv[] = {"cat", nullptr};
    const char* const environment[] = {variable.c_str(), nullptr};
    (void)execve("/bin/cat", const_cast<char**>(argv), const_cast<char**>(environment));
    _exit(1);
  }
  (void)close(ends[0]);
  const std::string comm = "/proc/" + std::to_string(pid) + "/comm";
  for (int i = 0; i < 30'000 && base::read_all(comm).value() != "cat\n"; ++i) (void)usleep(1000);
  ASSERT_EQ(base::read_all(comm).value(), "cat\n");
  EXPECT_EQ(remove_leftovers(folder_), 0);
  EXPECT_TRUE(std::filesystem::exists(path));
  (void)close(ends[1]);  // the end of cat's input
  ASSERT_EQ(waitpid(pid, nullptr, 0), pid);
  EXPECT_EQ(remove_leftovers(folder_), 1);
}

TEST_F(GrantFileTest, AJobOfADaemonHasItsNumberAndAttempt) {
  const Result<GrantFile> first = GrantFile::make(folder_, {"12", 3}, card_, 4);
  const Result<GrantFile> second = GrantFile::make(folder_, {"12", 3}, card_);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->path(), folder_ + "/12.3");
  EXPECT_EQ(first->job(), "12");
  EXPECT_EQ(first->grant().header.attempt, 3u);
  EXPECT_EQ(first->grant().header.part_count, 4u);
  EXPECT_EQ(second->path(), folder_ + "/12-2.3");
  EXPECT_EQ(second->job(), "12");
}

}  // namespace
}  // namespace mete::launch
