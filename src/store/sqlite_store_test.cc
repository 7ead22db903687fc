// SPDX-License-Identifier: Apache-2.0
// What only the real store promises: modes of its files, one process at a time, one sync for each
// commit, bounded deletion, a small log and small memory, and removed files. The common contract is
// contract_test.cc. Syncs are counted by test/disk.h.
#include "store/sqlite_store.h"

#include <sys/stat.h>

#include "store/test/disk.h"

namespace mete::store {
namespace {

class SqliteStoreTest : public StoreTest {};

TEST_F(SqliteStoreTest, FolderAndFilesAreForTheirOwnerAlone) {
  folder_ = path("new/state");
  const std::unique_ptr<SqliteStore> store = open();
  append_more(*store, 0, 1);
  ASSERT_TRUE(store->commit());
  const auto mode = [](const std::string& name) {
    struct stat info {};
    EXPECT_EQ(lstat(name.c_str(), &info), 0) << name;
    return info.st_mode & 07777;
  };
  EXPECT_EQ(mode(folder_), 0700u);
  for (const char* name : {"meted.db", "meted.db-wal", "meted.mark", "ballast"})
    EXPECT_EQ(mode(path(name)), 0600u) << name;
  EXPECT_EQ(size_of(path("meted.db-shm")), 0u) << "a mapped file could be a SIGBUS";
}

TEST_F(SqliteStoreTest, KeepsAnyBytes) {
  constexpr char kStrange[] = "nul \0 quote ' euro \xe2\x82\xac broken \xff\xfe end";
  const std::string strange(kStrange, sizeof kStrange - 1);
  const seam::StoredEvent event{1, -5, "", "", strange};
  {
    const std::unique_ptr<SqliteStore> store = open();
    store->append(event);
    store->put_snapshot({1, strange});
    ASSERT_TRUE(store->commit());
  }
  const std::unique_ptr<SqliteStore> store = open();
  EXPECT_EQ(store->load_events(0, 10).value(), std::vector{event});
  EXPECT_EQ(store->load_snapshot().value(), (seam::Snapshot{1, strange}));
}

TEST_F(SqliteStoreTest, CleanEndLeavesNoLog) {
  {
    const std::unique_ptr<SqliteStore> store = open();
    append_more(*store, 0, 10);
    ASSERT_TRUE(store->commit());
    EXPECT_GT(size_of(path("meted.db-wal")), 0u);
  }
  EXPECT_EQ(size_of(path("meted.db-wal")), 0u);
  expect_events(*open(), 1, 10);
}

TEST_F(SqliteStoreTest, OnlyOneAtATime) {
  const std::unique_ptr<SqliteStore> first = open();
  EXPECT_EQ(refused().code, ErrorCode::kBusy);
  append_more(*first, 0, 1);
  EXPECT_TRUE(first->commit()) << "the first one does not notice";
}

TEST_F(SqliteStoreTest, NothingIsKeptInAFileThatWasRemoved) {
  const std::unique_ptr<SqliteStore> store = open();
  append_more(*store, 0, 1);
  ASSERT_TRUE(store->commit());
  ASSERT_EQ(rename(path("meted.db").c_str(), path("away").c_str()), 0);
  append_more(*store, 1, 1);
  EXPECT_EQ(store->commit().error().code, ErrorCode::kIo);
  copy_file(path("away"), path("meted.db"));
  EXPECT_EQ(store->commit().error().code, ErrorCode::kIo) << "another file is not that file";
}

TEST_F(SqliteStoreTest, OneSyncForEachCommit) {
  const std::unique_ptr<SqliteStore> store = open();
  std::uint64_t last = append_more(*store, 0, 1);
  ASSERT_TRUE(store->commit());  // makes the log: a few more
  for (const std::uint64_t batch : {1, 10, 100}) {
    last = append_more(*store, last, batch);
    disk.syncs = 0;
    ASSERT_TRUE(store->commit());
    EXPECT_EQ(disk.syncs, 1) << batch;
    ASSERT_TRUE(store->commit());
    EXPECT_EQ(disk.syncs, 1) << "nothing to keep, nothing to sync";
  }
}

TEST_F(SqliteStoreTest, OldEventsGoOnceASnapshotCoversThem) {
  const std::unique_ptr<SqliteStore> store = open({.keep_events = 100});
  append_more(*store, 0, 250);
  ASSERT_TRUE(store->commit());
  expect_events(*store, 1, 250);
  store->put_snapshot({200, "at 200"});
  ASSERT_TRUE(store->commit());
  expect_events(*store, 151, 250);
  append_more(*store, 250, 150);
  store->put_snapshot({210, "at 210"});
  ASSERT_TRUE(store->commit());
  expect_events(*store, 201, 400);
  EXPECT_EQ(store->load_events(5, 2).value().front(), event_of(201)) << "from the oldest kept one";
  store->put_snapshot({220, "at 220"});
  ASSERT_TRUE(store->commit());
  expect_events(*store, 211, 400);
}

TEST_F(SqliteStoreTest, TheLastEventStaysSoThatNumbersGoOn) {
  {
    const std::unique_ptr<SqliteStore> store = open({.keep_events = 0});
    append_more(*store, 0, 5);
    store->put_snapshot({5, "all"});
    ASSERT_TRUE(store->commit());
  }
  const std::unique_ptr<SqliteStore> store = open();
  expect_events(*store, 5, 5);
  append_more(*store, 5, 1);
  EXPECT_TRUE(store->commit());
}

TEST_F(SqliteStoreTest, OneCommitDeletesABoundedNumber) {
  const std::unique_ptr<SqliteStore> store = open({.keep_events = 10});
  append_more(*store, 0, 25'000);
  store->put_snapshot({25'000, ""});
  ASSERT_TRUE(store->commit());
  expect_events(*store, 10'001, 25'000);
  for (int i = 0; i < 2; ++i) {
    store->put_snapshot({25'000, ""});
    ASSERT_TRUE(store->commit());
  }
  expect_events(*store, 24'991, 25'000);
}

TEST_F(SqliteStoreTest, LogAndMemoryStaySmall) {
  const std::unique_ptr<SqliteStore> store = open({.keep_events = 2'000});
  std::uint64_t last = 0, largest = 0;
  for (int i = 0; i < 200; ++i) {
    last = append_more(*store, last, 100);
    if (i % 10 == 9) store->put_snapshot({last, std::string(1 << 20, 's')});
    ASSERT_TRUE(store->commit());
    largest = std::max(largest, size_of(path("meted.db-wal")));
  }
  // Half a MiB until it is copied, the largest commit on top of that (snapshot and deletions).
  EXPECT_LE(largest, 4u << 20);
  EXPECT_LE(size_of(path("meted.db")), 8u << 20) << "deleted pages are used again";
  EXPECT_LE(sqlite3_memory_used(), 3 << 20);
}

TEST_F(SqliteStoreTest, MissingEventIsCorruption) {
  {
    const std::unique_ptr<SqliteStore> store = open();
    append_more(*store, 0, 10);
    store->put_snapshot({4, ""});
    ASSERT_TRUE(store->commit());
  }
  run_sql("DELETE FROM events WHERE seq = 7");
  {
    const Error error = refused();
    EXPECT_EQ(error.code, ErrorCode::kCorrupt);
    EXPECT_EQ(error.evidence, "event 7 is missing");
    EXPECT_NE(error.message.find("meted.db"), std::string::npos);
    EXPECT_NE(error.hint.find("mete daemon repair --state-dir " + folder_), std::string::npos);
  }
  run_sql("DELETE FROM events WHERE seq < 7");
  EXPECT_EQ(refused().code, ErrorCode::kCorrupt) << "5 and 6 are not in the snapshot either";
}

}  // namespace
}  // namespace mete::store
