// SPDX-License-Identifier: Apache-2.0
// Disks that are full or fail: nothing that was committed is lost, nothing half-written is visible,
// and after a full disk the same commit succeeds once there is room. The disk is a layer under
// SQLite that fails on demand.
#include "store/test/disk.h"

#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>

#include "base/content_hash.h"

namespace mete::store {
namespace {

class DiskTest : public StoreTest {
 protected:
  void TearDown() override {
    disk = {};
    if (mounted_) umount2(folder_.c_str(), MNT_DETACH);
  }
  bool mount_small_disk(const char* size) {
    mounted_ = mount("mete-test", folder_.c_str(), "tmpfs", 0, size) == 0;
    EXPECT_TRUE(!mounted_ || chmod(folder_.c_str(), 0700) == 0);
    return mounted_;
  }
  bool mounted_ = false;
};

TEST_F(DiskTest, FullDatabaseIsExhaustedAndAllStaysQueued) {
  const std::unique_ptr<SqliteStore> store = open({.keep_events = 10, .max_pages = 20});
  std::uint64_t last = 0;
  Result<void> done;
  while ((done = store->commit())) {
    expect_events(*store, 1, last);
    ASSERT_LT(last, 2'000u) << "20 pages do not fill up";
    last = append_more(*store, last, 10);
  }
  EXPECT_EQ(done.error().code, ErrorCode::kExhausted);
  EXPECT_NE(done.error().message.find("meted.db"), std::string::npos);
  EXPECT_FALSE(done.error().hint.empty());
  expect_events(*store, 1, last - 10);
  EXPECT_EQ(store->commit().error().code, ErrorCode::kExhausted);
  last = append_more(*store, last, 1);
  // The deletions that come with a snapshot make room within the same commit's database, but only
  // after the events have found none.
  store->put_snapshot({last - 11, "small"});
  EXPECT_EQ(store->commit().error().code, ErrorCode::kExhausted);
  expect_events(*store, 1, last - 11);
}

TEST_F(DiskTest, SnapshotWithoutRoomDoesNotKeepEventsOut) {
  const std::unique_ptr<SqliteStore> store = open({.max_pages = 20});
  append_more(*store, 0, 5);
  store->put_snapshot({5, std::string(1 << 20, 's')});
  ASSERT_TRUE(store->commit());
  expect_events(*store, 1, 5);
  EXPECT_EQ(store->load_snapshot().value(), std::nullopt);
  store->put_snapshot({5, std::string(1 << 20, 's')});
  EXPECT_EQ(store->commit().error().code, ErrorCode::kExhausted) << "nothing else was kept";
  store->put_snapshot({5, "small"});
  EXPECT_TRUE(store->commit());
}

TEST_F(DiskTest, ContentWithoutRoomKeepsItsEventsOut) {
  const std::unique_ptr<SqliteStore> store = open({.max_pages = 20});
  append_more(*store, 0, 2);
  ASSERT_TRUE(store->commit());
  append_more(*store, 2, 1);
  const std::string data(1 << 20, 'b');
  store->put_blob(base::content_hash(data), data);
  EXPECT_EQ(store->commit().error().code, ErrorCode::kExhausted);
  expect_events(*store, 1, 2);
  EXPECT_EQ(store->load_blob(base::content_hash(data)).error().code, ErrorCode::kNotFound);
  store->put_snapshot({2, "{}"});
  EXPECT_EQ(store->commit().error().code, ErrorCode::kExhausted) << "all of it is still queued";
}

// Each write of a few commits with checkpoints between them finds no room in turn.
TEST_F(DiskTest, WriteThatFindsNoRoomAnywhereIsOvercome) {
  const SqliteOptions options{.keep_events = 20, .checkpoint_pages = 8};
  for (const int error : {ENOSPC, EDQUOT, EFBIG}) {
    std::unique_ptr<SqliteStore> store = open(options);
    std::uint64_t last = store->last_seq();
    int refusals = 0;
    for (int writes = 0; writes < 60; ++writes) {
      last = append_more(*store, last, 15);
      if (writes % 3 == 0) store->put_snapshot({last, std::string(6'000, 's')});
      disk.writes_left = writes % 30;
      disk.write_error = error;
      Result<void> done = store->commit();
      disk.writes_left = -1;
      if (!done) {
        ASSERT_EQ(done.error().code, ErrorCode::kExhausted) << done.error().evidence;
        EXPECT_EQ(store->last_seq(), last - 15);
        ++refusals;
        done = store->commit();
      }
      ASSERT_TRUE(done) << done.error().message << done.error().evidence;
      EXPECT_EQ(store->last_seq(), last);
    }
    EXPECT_GT(refusals, 10);
    store.reset();
    store = open(options);
    expect_events(*store, last - store->load_events(0, 10'000).value().size() + 1, last);
  }
}

TEST_F(DiskTest, FailedWriteIsFinalUntilTheNextStart) {
  int failures = 0;
  std::uint64_t last = 0;
  for (int writes = 0; writes < 30; ++writes) {
    std::unique_ptr<SqliteStore> store = open({.checkpoint_pages = 4});
    ASSERT_NE(store, nullptr);
    ASSERT_GE(store->last_seq(), last);
    last = append_more(*store, store->last_seq(), 20);
    disk.writes_left = writes;
    disk.write_error = EIO;
    const Result<void> done = store->commit();
    disk.writes_left = -1;
    if (done) continue;
    ++failures;
    EXPECT_EQ(done.error().code, ErrorCode::kIo);
    disk.writes = disk.syncs = 0;
    EXPECT_EQ(store->commit().error(), done.error());
    store.reset();
    EXPECT_EQ(disk.writes + disk.syncs, 0) << "nothing is tried again";
    last -= 20;
  }
  EXPECT_GT(failures, 5);
  std::unique_ptr<SqliteStore> store = open();
  expect_events(*store, 1, store->last_seq());
}

// After a failed sync the kernel takes the lost pages for written: the next sync proves nothing.
TEST_F(DiskTest, FailedSyncIsFinalUntilTheNextStart) {
  std::uint64_t least = 0;
  for (const int error : {EIO, ENOSPC}) {
    for (int syncs = 0; syncs < 4; ++syncs) {
      std::unique_ptr<SqliteStore> store = open({.checkpoint_pages = 1});
      ASSERT_NE(store, nullptr);
      ASSERT_GE(store->last_seq(), least) << "what a commit reported stays";
      least = store->last_seq();
      append_more(*store, least, 20);
      disk.syncs_left = syncs;
      disk.sync_error = error;
      const Result<void> done = store->commit();
      const bool reached = disk.syncs_left == -1;
      disk.syncs_left = -1;
      if (!reached) {
        EXPECT_TRUE(done);
        continue;
      }
      ASSERT_FALSE(done) << syncs;
      EXPECT_EQ(done.error().code, ErrorCode::kIo) << done.error().evidence;
      EXPECT_EQ(store->commit().error().code, ErrorCode::kIo);
      store.reset();
      const bool commits_left = size_of(path("meted.db-wal")) > 4096;
      disk.syncs = 0;
      store = open();
      ASSERT_NE(store, nullptr);
      EXPECT_TRUE(disk.syncs > 0 || !commits_left) << "the log is made safe first";
    }
  }
}

// ulimit -f: what was written is valid, and the ends of jobs may still find room.
TEST_F(DiskTest, FileSizeLimitIsAFullDisk) {
  const pid_t child = fork();
  if (child == 0) {
    std::unique_ptr<SqliteStore> store = open();
    (void)signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{256 << 10, 256 << 10};
    if (!store || setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(2);
    for (std::uint64_t last = 0; last < 100'000;) {
      last = append_more(*store, last, 10);
      if (const Result<void> done = store->commit(); !done)
        _exit(done.error().code == ErrorCode::kExhausted ? 0 : 3);
    }
    _exit(4);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  const std::unique_ptr<SqliteStore> store = open();
  EXPECT_GT(store->last_seq(), 0u);
  expect_events(*store, 1, store->last_seq());
}

TEST_F(DiskTest, OnAFullDiskTheBallastHoldsTheEndsOfAThousandJobs) {
  if (!mount_small_disk("size=6m"))
    GTEST_SKIP() << "cannot mount a small disk: " << std::strerror(errno);
  std::unique_ptr<SqliteStore> store = open();
  ASSERT_NE(store, nullptr);
  std::uint64_t last = append_more(*store, 0, 50);
  ASSERT_TRUE(store->commit());
  {
    std::ofstream filler(path("filler"), std::ios::binary);
    const std::string block(4096, 'f');
    while (filler.write(block.data(), 4096).flush()) continue;
  }
  Result<void> done;
  for (int i = 0; i < 1'000 && done; ++i) {
    last = append_more(*store, last, 10);
    done = store->commit();
  }
  ASSERT_FALSE(done) << "the disk is full";
  ASSERT_EQ(done.error().code, ErrorCode::kExhausted);
  EXPECT_EQ(store->last_seq(), last - 10);
  EXPECT_TRUE(store->free_ballast());
  ASSERT_TRUE(store->commit());
  for (int job = 0; job < 1'000; ++job) {
    last = append_more(*store, last, 1);
    done = store->commit();
    ASSERT_TRUE(done) << job << ": " << done.error().evidence;
  }
  EXPECT_FALSE(store->restore_ballast()) << "there is no room for it any more";
  store.reset();
  store = open();
  ASSERT_NE(store, nullptr) << "it starts on a full disk too";
  expect_events(*store, 1, last);
  last = append_more(*store, last, 1);
  EXPECT_TRUE(store->commit());
  EXPECT_FALSE(store->restore_ballast());

  ASSERT_EQ(unlink(path("filler").c_str()), 0);
  EXPECT_TRUE(store->restore_ballast());
  last = append_more(*store, last, 100);
  EXPECT_TRUE(store->commit());
  expect_events(*store, 1, last);
}

}  // namespace
}  // namespace mete::store
