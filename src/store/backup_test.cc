// SPDX-License-Identifier: Apache-2.0
// Copies of a store in use: whole whatever is committed between the steps, one file, never the
// store itself nor another file, and nothing left of a copy that was not finished.
#include "store/backup.h"

#include <sys/stat.h>

#include <filesystem>
#include <utility>

#include "base/file.h"
#include "store/sqlite_store.h"
#include "store/test/disk.h"

namespace mete::store {
namespace {

class BackupTest : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    target_ = path("copy/meted.db");
    ASSERT_TRUE(base::make_directories(path("copy")).ok());
  }
  std::size_t files() const {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path("copy")))
      count += entry.exists() ? 1 : 0;
    return count;
  }
  void finish(Backup& backup) {
    for (Result<bool> done = backup.step();; done = backup.step()) {
      ASSERT_TRUE(done.ok()) << done.error().message;
      if (*done) break;
    }
    const Result<std::uint64_t> bytes = backup.finish();
    ASSERT_TRUE(bytes.ok()) << bytes.error().message;
    EXPECT_EQ(*bytes, size_of(target_));
  }
  // The copy as a store of its own.
  void expect_copy(std::uint64_t last) {
    EXPECT_EQ(files(), 1u);
    const std::string whole = std::exchange(folder_, path("copy"));
    expect_events(*open(), 1, last);
    folder_ = whole;
  }
  std::string target_;
};

TEST_F(BackupTest, ACopyIsAStoreInOneFile) {
  const std::unique_ptr<SqliteStore> store = open();
  append_more(*store, 0, 10);
  store->put_snapshot({7, "state"});
  ASSERT_TRUE(store->commit());
  Result<std::unique_ptr<Backup>> backup = store->begin_backup(target_);
  ASSERT_TRUE(backup.ok()) << backup.error().message;
  finish(**backup);
  struct stat info {};
  ASSERT_EQ(lstat(target_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  expect_copy(10);
}

TEST_F(BackupTest, WhatIsCommittedMeanwhileIsInIt) {
  const std::unique_ptr<SqliteStore> store = open();
  std::uint64_t last = 0;
  const auto more = [&](std::size_t count) {
    append_more(*store, last, count);
    last += count;
    store->put_blob("h" + std::to_string(last),
                    std::string(3 << 20, static_cast<char>('a' + last % 26)));
    ASSERT_TRUE(store->commit().ok());
  };
  more(200);
  Result<std::unique_ptr<Backup>> backup = store->begin_backup(target_);
  ASSERT_TRUE(backup.ok()) << backup.error().message;
  for (int i = 0; i < 5; ++i) {
    const Result<bool> done = (*backup)->step();
    ASSERT_TRUE(done.ok()) << done.error().message;
    EXPECT_FALSE(*done) << "more is added than a step copies";
    more(50);
  }
  finish(**backup);
  expect_copy(last);
}

TEST_F(BackupTest, AnEarlierCopyIsReplacedOnlyByAWholeOne) {
  const std::unique_ptr<SqliteStore> store = open();
  append_more(*store, 0, 3);
  ASSERT_TRUE(store->commit().ok());
  finish(**store->begin_backup(target_));
  const std::size_t before = size_of(target_);
  append_more(*store, 3, 2);
  ASSERT_TRUE(store->commit().ok());
  {
    Result<std::unique_ptr<Backup>> given_up = store->begin_backup(target_);
    ASSERT_TRUE(given_up.ok());
    ASSERT_TRUE((*given_up)->step().ok());
  }
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(size_of(target_), before);
  finish(**store->begin_backup(target_));
  expect_copy(5);
}

TEST_F(BackupTest, NothingElseIsOverwritten) {
  const std::unique_ptr<SqliteStore> store = open();
  append_more(*store, 0, 1);
  ASSERT_TRUE(store->commit().ok());
  EXPECT_EQ(store->begin_backup(path("meted.db")).error().code, ErrorCode::kInvalid);
  ASSERT_TRUE(base::write_atomic(target_, "a letter").ok());
  EXPECT_EQ(store->begin_backup(target_).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(base::read_all(target_, 100).value(), "a letter");
  EXPECT_EQ(store->begin_backup(path("copy")).error().code, ErrorCode::kInvalid);
  EXPECT_FALSE(store->begin_backup(path("missing/copy.db")).ok());
  append_more(*store, 1, 1);
  EXPECT_TRUE(store->commit().ok()) << "and the store goes on";
}

}  // namespace
}  // namespace mete::store
