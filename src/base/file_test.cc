// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace mete::base {
namespace {

class FileTest : public testing::Test {
 protected:
  FileTest() {
    std::string name = testing::TempDir() + "mete-file-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~FileTest() override { std::filesystem::remove_all(folder_); }

  std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  std::string folder_;
};

TEST_F(FileTest, WritesAndReadsBack) {
  const std::string path = join_path(folder_, "a");
  ASSERT_TRUE(write_atomic(path, "one"));
  ASSERT_TRUE(write_atomic(path, "two"));
  EXPECT_EQ(*read_all(path), "two");
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, AFailedWriteLeavesNothingBehind) {
  const std::string path = join_path(folder_, "taken");
  ASSERT_TRUE(make_directories(join_path(path, "in-the-way")));
  EXPECT_FALSE(write_atomic(path, "data"));
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, RefusesToReadMoreThanAsked) {
  const std::string path = join_path(folder_, "a");
  ASSERT_TRUE(write_atomic(path, "12345"));
  EXPECT_TRUE(read_all(path, 5));
  EXPECT_EQ(read_all(path, 4).error().code, ErrorCode::kCorrupt);
}

TEST_F(FileTest, ReadsFilesThatSayTheyAreEmpty) {
  EXPECT_FALSE(read_all("/proc/self/stat")->empty());
}

TEST_F(FileTest, MakesDirectoriesWithTheirParents) {
  const std::string path = join_path(folder_, "x/y/z");
  ASSERT_TRUE(make_directories(path));
  ASSERT_TRUE(make_directories(path));
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
}

TEST_F(FileTest, AFileIsNotADirectory) {
  const std::string path = join_path(folder_, "a");
  ASSERT_TRUE(write_atomic(path, ""));
  EXPECT_FALSE(make_directories(path));
  EXPECT_FALSE(make_directories(join_path(path, "b")));
}

TEST_F(FileTest, RemovingTwiceIsFine) {
  const std::string path = join_path(folder_, "a");
  ASSERT_TRUE(write_atomic(path, ""));
  EXPECT_TRUE(remove_file(path));
  EXPECT_TRUE(remove_file(path));
}

TEST(Path, JoinsAndClimbs) {
  EXPECT_EQ(join_path("a", "b"), "a/b");
  EXPECT_EQ(join_path("a/", "b"), "a/b");
  EXPECT_EQ(parent_path("/a/b"), "/a");
  EXPECT_EQ(parent_path("/a"), "/");
  EXPECT_EQ(parent_path("/"), "/");
  EXPECT_EQ(parent_path("a"), ".");
  EXPECT_EQ(parent_path("a/b/"), "a");
}

}  // namespace
}  // namespace mete::base
