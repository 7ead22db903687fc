// SPDX-License-Identifier: Apache-2.0
// Versions of the store: samples of every released version load and are upgraded, newer and foreign
// files are refused and left alone, damaged ones are found, and each step is taken once, all or
// nothing. Samples are in tests/data/store.
#include "store/schema.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string_view>

#include "base/content_hash.h"
#include "store/test/disk.h"

namespace mete::store {
namespace {

class SchemaTest : public StoreTest {
 protected:
  void make_store(std::uint64_t events = 3) {
    const std::unique_ptr<SqliteStore> store = open();
    append_more(*store, 0, events);
    ASSERT_TRUE(store->commit());
  }
  void take_sample(const std::string& name) {
    const char* source = std::getenv("METE_SOURCE_DIR");
    ASSERT_NE(source, nullptr) << "set METE_SOURCE_DIR to the source tree";
    copy_file(std::string(source) + "/tests/data/store/" + name, path("meted.db"));
    ASSERT_GT(size_of(path("meted.db")), 0u);
  }
  void overwrite(std::uint64_t offset, std::string_view bytes) {
    std::fstream file(path("meted.db"), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(offset));
    file << bytes;
  }
};

// Written by the first version and never again: users have such files.
TEST_F(SchemaTest, TheSampleOfVersion1Loads) {
  take_sample("v1.db");
  const std::unique_ptr<SqliteStore> store = open();
  ASSERT_NE(store, nullptr);
  const std::vector<seam::StoredEvent> expected = {
      {1, 1794733200000, "job.submitted", "1", R"({"id":"1","command":["python","train.py"]})"},
      {2, 1794733200012, "job.granted", "1",
       R"({"id":"1","cards":[{"uuid":"GPU-5e4d8069-ca64-5466-a499-634a7163d8aa"}]})"},
      {3, 1794733200040, "job.started", "1", R"({"id":"1"})"},
      {4, 1794733260000, "card.lost", "", R"({"uuid":"GPU-5e4d8069-ca64-5466-a499-634a7163d8aa"})"},
      {5, 1794733261500, "job.ended", "1", R"({"id":"1","outcome":"lost"})"},
  };
  EXPECT_EQ(store->load_events(0, 100).value(), expected);
  EXPECT_EQ(store->load_snapshot().value(), (seam::Snapshot{3, R"({"jobs":[{"id":"1"}]})"}));
  store->append(event_of(6));
  store->put_blob(base::content_hash("content"), "content");
  EXPECT_TRUE(store->commit()) << "and can be written";
  EXPECT_EQ(store->load_blob(base::content_hash("content")).value(), "content");
}

TEST_F(SchemaTest, TheSampleOfVersion2Loads) {
  take_sample("v2.db");
  const std::unique_ptr<SqliteStore> store = open();
  ASSERT_NE(store, nullptr);
  const std::vector<seam::StoredEvent> events = store->load_events(0, 100).value();
  ASSERT_EQ(events.size(), 7u);
  EXPECT_EQ(events.front().type, "machine.booted");
  EXPECT_EQ(events.back(), (seam::StoredEvent{7, 1794733200040, "job.held", "1_2",
                                              R"({"id":"1_2","attempt":1})"}));
  EXPECT_EQ(store->load_snapshot().value()->seq, 4u);
  const std::string environment("HOME=/home/alice\0PATH=/usr/bin:/bin\0", 36);
  EXPECT_EQ(store->load_blob(base::content_hash(environment)).value(), environment);
  store->append(event_of(8));
  EXPECT_TRUE(store->commit()) << "and can be written";
}

TEST_F(SchemaTest, TheSampleOfVersion3Loads) {
  take_sample("v3.db");
  const std::unique_ptr<SqliteStore> store = open();
  ASSERT_NE(store, nullptr);
  const std::vector<seam::StoredEvent> events = store->load_events(0, 100).value();
  ASSERT_EQ(events.size(), 9u);
  EXPECT_EQ(events.back().type, "job.held");
  EXPECT_EQ(store->load_snapshot().value()->seq, 6u);
  EXPECT_EQ(store->load_snapshot().value()->data.find("{\"schema\":\"mete.state/2\""), 0u);
  std::string command = "python";
  command += std::string("\0sum.py\0", 8) + std::string(6'000, '7') + '\0';
  EXPECT_EQ(store->load_blob(base::content_hash(command)).value(), command);
  store->append(event_of(10));
  EXPECT_TRUE(store->commit()) << "and can be written";
}

// Rows without checksums get them.
TEST_F(SchemaTest, AnOlderOneIsMadeWhole) {
  for (const char* name : {"v1.db", "v2.db"}) {
    take_sample(name);
    (void)unlink(path("meted.mark").c_str());
    std::vector<seam::StoredEvent> before;
    std::optional<seam::Snapshot> snapshot;
    {
      const std::unique_ptr<SqliteStore> store = open();
      ASSERT_NE(store, nullptr);
      before = store->load_events(0, 100).value();
      snapshot = store->load_snapshot().value();
      ASSERT_TRUE(snapshot);
    }
    EXPECT_GT(size_of(path("meted.mark")), 0u);
    const std::unique_ptr<SqliteStore> store = open();
    ASSERT_NE(store, nullptr);
    EXPECT_EQ(store->load_events(0, 100).value(), before);
    EXPECT_EQ(store->load_snapshot().value(), snapshot);
  }
}

TEST_F(SchemaTest, HeaderSaysWhoseAndWhichVersion) {
  make_store();
  std::ifstream file(path("meted.db"), std::ios::binary);
  std::string header(100, '\0');
  file.read(header.data(), 100);
  EXPECT_EQ(header.substr(68, 4), "mete");
  EXPECT_EQ(header.substr(60, 4), std::string("\0\0\0\3", 4));
}

TEST_F(SchemaTest, NewerVersionIsRefusedAndLeftAlone) {
  make_store();
  run_sql("PRAGMA user_version = 7; CREATE TABLE later (x)");
  const Error error = refused();
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_EQ(error.evidence, "its version is 7, this mete knows up to 3");
  EXPECT_NE(error.message.find(path("meted.db")), std::string::npos);
  EXPECT_FALSE(error.hint.empty());
  run_sql("SELECT x FROM later");
}

TEST_F(SchemaTest, AnotherProgramsDatabaseIsRefused) {
  copy_file("/dev/null", path("meted.db"));
  run_sql("CREATE TABLE bookmarks (x); PRAGMA user_version = 1");
  EXPECT_EQ(refused().code, ErrorCode::kCorrupt);
  run_sql("PRAGMA application_id = 12");
  const Error error = refused();
  EXPECT_EQ(error.code, ErrorCode::kCorrupt);
  EXPECT_NE(error.message.find("another program's"), std::string::npos);
  run_sql("SELECT x FROM bookmarks");
}

TEST_F(SchemaTest, WhatIsNoDatabaseIsRefused) {
  for (const std::string& text :
       {std::string("hello"), std::string(8192, 'x'), std::string(8192, '\0')}) {
    std::ofstream(path("meted.db"), std::ios::binary | std::ios::trunc) << text;
    const Error error = refused();
    EXPECT_EQ(error.code, ErrorCode::kCorrupt) << text.size();
    EXPECT_NE(error.message.find(path("meted.db")), std::string::npos);
    EXPECT_FALSE(error.hint.empty());
    EXPECT_EQ(size_of(path("meted.db")), text.size());
  }
}

TEST_F(SchemaTest, OursWithoutItsTablesIsRefused) {
  make_store();
  run_sql("DROP TABLE snapshot_parts");
  EXPECT_EQ(refused().code, ErrorCode::kCorrupt);
}

TEST_F(SchemaTest, TruncatedDatabaseIsRefusedOrFoundWhenRead) {
  make_store(2'000);
  const std::uint64_t whole = size_of(path("meted.db"));
  for (const std::uint64_t bytes : {whole - 4096, whole / 2, std::uint64_t{5000}}) {
    copy_file(path("meted.db"), path("meted.db"), bytes);
    Result<std::unique_ptr<SqliteStore>> store = SqliteStore::open(folder_);
    if (!store) {
      EXPECT_EQ(store.error().code, ErrorCode::kCorrupt) << bytes;
      continue;
    }
    const Result<std::vector<seam::StoredEvent>> events = (*store)->load_events(0, 10'000);
    ASSERT_FALSE(events) << bytes;
    EXPECT_EQ(events.error().code, ErrorCode::kCorrupt) << bytes;
  }
}

TEST_F(SchemaTest, TheWholeDatabaseIsCheckedAlsoAfterACleanEnd) {
  make_store(2'000);
  // In the middle of the events.
  overwrite(size_of(path("meted.db")) / 8192 * 4096, std::string(200, '\xee'));
  EXPECT_EQ(refused().code, ErrorCode::kCorrupt);
}

TEST_F(SchemaTest, KilledWhileMakingTheFileStartsAnew) {
  copy_file("/dev/null", path("meted.db"));  // before SQLite had it
  make_store();
  ASSERT_EQ(unlink(path("meted.db").c_str()), 0);
  ASSERT_EQ(unlink(path("meted.mark").c_str()), 0);
  copy_file("/dev/null", path("meted.db"));
  run_sql("PRAGMA journal_mode = WAL");  // before the first step
  make_store();
  expect_events(*open(), 1, 3);
}

TEST_F(SchemaTest, StepsAreTakenOnceEachAllOrNothing) {
  make_store();
  Result<Connection> connection = Connection::open(path("meted.db"));
  ASSERT_TRUE(connection);
  const std::vector<Step> steps = {
      schema_steps()[0],
      schema_steps()[1],
      schema_steps()[2],
      {4, "ALTER TABLE events ADD COLUMN host TEXT NOT NULL DEFAULT '';"},
      {5, "CREATE TABLE half (x); INSERT INTO nowhere VALUES (1);"},
  };
  const Result<void> failed = migrate(*connection, steps);
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message.find("version 5"), std::string::npos);
  EXPECT_EQ(connection->number("PRAGMA user_version").value(), 4);
  EXPECT_EQ(connection->number("SELECT count(*) FROM events WHERE host = ''").value(), 3);
  EXPECT_EQ(connection->number("SELECT count(*) FROM sqlite_schema WHERE name = 'half'").value(),
            0);
  EXPECT_TRUE(migrate(*connection, std::span(steps).first(4))) << "nothing is left to do";
}

}  // namespace
}  // namespace mete::store
