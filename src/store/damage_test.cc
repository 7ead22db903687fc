// SPDX-License-Identifier: Apache-2.0
// One flipped bit anywhere: it is found, or it changes nothing. Repair then brings back a store
// that opens, with everything that was whole. Bits are flipped in the database, in its log and in
// their headers.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>

#include "base/content_hash.h"
#include "store/repair.h"
#include "store/test/disk.h"

namespace mete::store {
namespace {

constexpr std::uint64_t kEvents = 400;

class DamageTest : public StoreTest {
 protected:
  using Files = std::map<std::string, std::string>;
  static constexpr const char* kNames[] = {"meted.db", "meted.db-wal", "meted.mark"};

  // What a killed daemon leaves: some of it in the database, some in the log.
  void make() {
    contents_ = {std::string("PATH=/bin\0HOME=/root\0", 21), std::string(20'000, 'c')};
    const std::unique_ptr<SqliteStore> store = open({.keep_events = 1'000, .checkpoint_pages = 30});
    std::uint64_t last = 0;
    while (last < kEvents) {
      last = append_more(*store, last, 4);
      if (last == 100) store->put_snapshot({100, std::string(70'000, 'o')});
      if (last == 8)
        for (const std::string& data : contents_) store->put_blob(base::content_hash(data), data);
      if (last == 300) store->put_snapshot({300, std::string(90'000, 'n')});
      ASSERT_TRUE(store->commit());
    }
    for (const char* name : kNames) files_[name] = read(name);
    ASSERT_GT(files_["meted.db-wal"].size(), 0u);
    ASSERT_EQ(last, kEvents);
  }
  std::string read(const std::string& name) const {
    std::ifstream in(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  void put(const Files& files) {
    for (const char* name : kNames) (void)unlink(path(name).c_str());
    for (const auto& [name, data] : files) {
      std::ofstream(path(name), std::ios::binary) << data;
      ASSERT_EQ(chmod(path(name).c_str(), 0600), 0);
    }
  }
  Files flipped(const std::string& name, std::uint64_t bit) const {
    Files files = files_;
    char& byte = files[name][bit / 8];
    byte = static_cast<char>(byte ^ (1 << bit % 8));
    return files;
  }
  // Everything that was reported is there; contents may be refused one by one.
  void expect_all(SqliteStore& store, const std::string& where) {
    EXPECT_EQ(store.last_seq(), kEvents) << where;
    const Result<std::vector<seam::StoredEvent>> events = store.load_events(0, 10'000);
    ASSERT_TRUE(events) << where << events.error().evidence;
    for (const seam::StoredEvent& event : *events) ASSERT_EQ(event, event_of(event.seq)) << where;
    const Result<std::optional<seam::Snapshot>> snapshot = store.load_snapshot();
    ASSERT_TRUE(snapshot) << where;
    ASSERT_TRUE(*snapshot) << where;
    ASSERT_LE(events->front().seq, (*snapshot)->seq + 1) << where;
    EXPECT_EQ((*snapshot)->data,
              (*snapshot)->seq == 300 ? std::string(90'000, 'n') : std::string(70'000, 'o'))
        << where;
    for (const std::string& data : contents_) {
      const Result<std::string> kept = store.load_blob(base::content_hash(data));
      if (kept)
        EXPECT_EQ(*kept, data) << where;
      else
        ++contents_refused_;
    }
  }
  void flip_everywhere(const std::string& name, std::uint64_t stride);

  Files files_;
  std::vector<std::string> contents_;
  int contents_refused_ = 0;
};

void DamageTest::flip_everywhere(const std::string& name, std::uint64_t stride) {
  make();
  int refusals = 0, harmless = 0, repaired_whole = 0;
  for (std::uint64_t bit = 0; bit < files_[name].size() * 8; bit += stride) {
    const std::string where = name + " bit " + std::to_string(bit) + ": ";
    put(flipped(name, bit));
    {
      const Result<std::unique_ptr<SqliteStore>> store = SqliteStore::open(folder_);
      if (store) {
        ++harmless;
        expect_all(**store, where);
        continue;
      }
      ++refusals;
      EXPECT_FALSE(store.error().hint.empty()) << where;
      EXPECT_TRUE(store.error().code == ErrorCode::kCorrupt ||
                  store.error().code == ErrorCode::kUnsupported)
          << where << store.error().message;
    }
    const Files before = flipped(name, bit);
    for (const auto& [file, data] : before) ASSERT_EQ(read(file), data) << where << "left as it is";
    const Result<Repaired> done = repair(folder_, "now");
    ASSERT_TRUE(done) << where << done.error().message << done.error().evidence;
    EXPECT_FALSE(done->was_whole) << where;
    EXPECT_EQ(done->kept + done->lost, kEvents) << where << done->why;
    EXPECT_EQ(read("meted.db.damaged-now"), before.at("meted.db")) << where;
    EXPECT_EQ(read("meted.db.damaged-now-wal"), before.at("meted.db-wal")) << where;
    (void)unlink(path("meted.db.damaged-now").c_str());
    (void)unlink(path("meted.db.damaged-now-wal").c_str());
    const std::unique_ptr<SqliteStore> store = open();
    ASSERT_NE(store, nullptr) << where;
    EXPECT_EQ(store->last_seq(), done->kept + (done->lost > 0)) << where << "store.repaired";
    if (done->lost == 0) {
      ++repaired_whole;
      expect_all(*store, where);
    }
    if (done->kept == 0) continue;
    append_more(*store, store->last_seq(), 1);
    EXPECT_TRUE(store->commit()) << where << "and it goes on";
  }
  EXPECT_GT(refusals, 10);
  EXPECT_GT(repaired_whole, refusals / 2) << "of " << refusals;
  RecordProperty("refusals", refusals);
  RecordProperty("harmless", harmless);
  RecordProperty("repaired_whole", repaired_whole);
}

bool full() { return std::getenv("METE_FULL") != nullptr; }

TEST_F(DamageTest, AFlippedBitInTheLogLosesNothingSilently) {
  flip_everywhere("meted.db-wal", full() ? 1'009 : 16'411);
}

TEST_F(DamageTest, AFlippedBitInTheDatabaseLosesNothingSilently) {
  flip_everywhere("meted.db", full() ? 1'009 : 32'771);
}

// The first bits of each file: its type, its version, its owner.
TEST_F(DamageTest, AFlippedBitInAHeaderLosesNothingSilently) {
  make();
  for (const char* name : {"meted.db", "meted.db-wal"}) {
    for (std::uint64_t bit = 0; bit < 150 * 8; bit += full() ? 1 : 31) {
      const std::string where = std::string(name) + " bit " + std::to_string(bit) + ": ";
      put(flipped(name, bit));
      if (const Result<std::unique_ptr<SqliteStore>> store = SqliteStore::open(folder_)) {
        expect_all(**store, where);
        continue;
      }
      const Result<Repaired> done = repair(folder_, "now");
      ASSERT_TRUE(done) << where << done.error().message << done.error().evidence;
      EXPECT_EQ(done->kept + done->lost, kEvents) << where;
      EXPECT_NE(open(), nullptr) << where;
      (void)unlink(path("meted.db.damaged-now").c_str());
      (void)unlink(path("meted.db.damaged-now-wal").c_str());
    }
  }
}

TEST_F(DamageTest, ALogThatIsGoneIsSaid) {
  make();
  Files files = files_;
  files.erase("meted.db-wal");
  put(files);
  EXPECT_NE(refused().evidence.find("were recorded and are missing"), std::string::npos);
  const Repaired done = repair(folder_, "now").value();
  EXPECT_GT(done.lost, 0u);
  EXPECT_EQ(done.kept + done.lost, kEvents);
  EXPECT_NE(open(), nullptr);
}

TEST_F(DamageTest, WhatIsWholeIsNotRepaired) {
  make();
  EXPECT_TRUE(repair(folder_, "now")->was_whole);
  EXPECT_EQ(size_of(path("meted.db.damaged-now")), 0u);
  const std::unique_ptr<SqliteStore> store = open();
  expect_all(*store, "");
  EXPECT_EQ(contents_refused_, 0);
  EXPECT_EQ(repair(folder_, "now").error().code, ErrorCode::kBusy);
  EXPECT_EQ(repair(path("nowhere"), "now").error().code, ErrorCode::kNotFound);
}

TEST_F(DamageTest, ADamagedContentIsRefusedWhenItIsReadAndGoesWithARepair) {
  make();
  (void)open();
  const std::string& data = contents_[1];
  std::string database = read("meted.db");
  const std::size_t at = database.find(data.substr(0, 3'000));
  ASSERT_NE(at, std::string::npos);
  database[at + 100] ^= 1;
  std::ofstream(path("meted.db"), std::ios::binary) << database;
  {
    const std::unique_ptr<SqliteStore> store = open();
    const Result<std::string> kept = store->load_blob(base::content_hash(data));
    ASSERT_FALSE(kept);
    EXPECT_EQ(kept.error().code, ErrorCode::kCorrupt);
    append_more(*store, kEvents, 1);
    EXPECT_TRUE(store->commit()) << "all else goes on";
  }
  const Repaired done = repair(folder_, "now").value();
  EXPECT_EQ(done.lost_contents, 1u);
  EXPECT_EQ(done.lost, 0u);
  const std::unique_ptr<SqliteStore> store = open();
  EXPECT_EQ(store->load_blob(base::content_hash(data)).error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(store->load_blob(base::content_hash(contents_[0])));
}

TEST_F(DamageTest, LostJobsAreNamed) {
  {
    const std::unique_ptr<SqliteStore> store = open();
    for (std::uint64_t seq = 1; seq <= 20; ++seq)
      store->append({seq, 0, "job.submitted", std::to_string(seq), "{}"});
    ASSERT_TRUE(store->commit());
  }
  run_sql("UPDATE events SET data = '{\"x\":1}' WHERE seq = 15");
  EXPECT_EQ(refused().evidence, "event 15 is not as written");
  const Repaired done = repair(folder_, "now").value();
  EXPECT_EQ(done.kept, 14u);
  EXPECT_EQ(done.lost, 6u);
  EXPECT_EQ(done.lost_jobs, (std::vector<std::string>{"16", "17", "18", "19", "20"}));
}

TEST_F(DamageTest, ASnapshotIsKeptInSmallRows) {
  const std::string large(5 << 20, 's');
  {
    const std::unique_ptr<SqliteStore> store = open();
    append_more(*store, 0, 3);
    store->put_snapshot({3, large});
    ASSERT_TRUE(store->commit());
  }
  EXPECT_EQ(open()->load_snapshot().value(), (seam::Snapshot{3, large}));
  run_sql("DELETE FROM snapshot_parts WHERE part = 2");
  EXPECT_EQ(refused().evidence, "the snapshot of event 3 is not as written");
}

}  // namespace
}  // namespace mete::store
