// SPDX-License-Identifier: Apache-2.0
#include "store/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "store/test/disk.h"

namespace mete::store {
namespace {

class FilesTest : public StoreTest {
 protected:
  void make_store() {
    const std::unique_ptr<SqliteStore> store = open();
    append_more(*store, 0, 3);
    ASSERT_TRUE(store->commit());
  }
};

TEST_F(FilesTest, SymbolicLinkIsRefused) {
  make_store();
  ASSERT_EQ(rename(path("meted.db").c_str(), path("real.db").c_str()), 0);
  ASSERT_EQ(symlink("real.db", path("meted.db").c_str()), 0);
  const Error error = refused();
  EXPECT_EQ(error.code, ErrorCode::kDenied);
  EXPECT_NE(error.evidence.find("is a symbolic link"), std::string::npos);
}

TEST_F(FilesTest, StateFolderBehindASymbolicLinkIsFine) {
  make_store();
  ASSERT_EQ(symlink(folder_.c_str(), path("link").c_str()), 0);
  EXPECT_TRUE(SqliteStore::open(path("link")));
}

TEST_F(FilesTest, WritableByOthersIsRefusedAndReadableIsMended) {
  make_store();
  ASSERT_EQ(chmod(path("meted.db").c_str(), 0620), 0);
  EXPECT_EQ(refused().code, ErrorCode::kDenied);
  ASSERT_EQ(chmod(path("meted.db").c_str(), 0644), 0);
  EXPECT_NE(open(), nullptr);
  struct stat info {};
  ASSERT_EQ(stat(path("meted.db").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ASSERT_EQ(chmod(folder_.c_str(), 0777), 0);
  EXPECT_EQ(refused().code, ErrorCode::kDenied);
}

TEST_F(FilesTest, SecondNameAndFolderInItsPlaceAreRefused) {
  make_store();
  ASSERT_EQ(link(path("meted.db").c_str(), path("other").c_str()), 0);
  EXPECT_EQ(refused().code, ErrorCode::kDenied);
  ASSERT_EQ(unlink(path("meted.db").c_str()), 0);
  ASSERT_EQ(mkdir(path("meted.db").c_str(), 0700), 0);
  EXPECT_EQ(refused().code, ErrorCode::kDenied);
}

TEST_F(FilesTest, SomebodyElsesFileIsRefused) {
  make_store();
  if (chown(path("meted.db").c_str(), 1, 1) != 0) GTEST_SKIP() << "needs root to give a file away";
  EXPECT_EQ(refused().code, ErrorCode::kDenied);
  ASSERT_EQ(chown(path("meted.db").c_str(), geteuid(), 0), 0);
  ASSERT_EQ(chown(folder_.c_str(), 1, 1), 0);
  EXPECT_EQ(refused().code, ErrorCode::kDenied);
}

TEST_F(FilesTest, LogWithoutItsDatabaseIsNotThrownAway) {
  std::ofstream(path("meted.db-wal")) << "something that was committed";
  EXPECT_EQ(refused().code, ErrorCode::kCorrupt);
  EXPECT_EQ(size_of(path("meted.db")), 0u);
  EXPECT_GT(size_of(path("meted.db-wal")), 0u);
}

TEST_F(FilesTest, BallastTakesUpRealRoom) {
  Ballast ballast(folder_);
  EXPECT_FALSE(ballast.free());
  ASSERT_TRUE(ballast.restore());
  ASSERT_TRUE(ballast.restore()) << "again does no harm";
  struct stat info {};
  ASSERT_EQ(stat(path("ballast").c_str(), &info), 0);
  EXPECT_EQ(info.st_size, Ballast::kBytes);
  EXPECT_GE(info.st_blocks * 512, Ballast::kBytes);
  EXPECT_TRUE(ballast.free());
  EXPECT_NE(access(path("ballast").c_str(), F_OK), 0);
}

}  // namespace
}  // namespace mete::store
