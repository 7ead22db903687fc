// SPDX-License-Identifier: Apache-2.0
// For the tests of the store: a folder of its own, events whose bytes follow from their number, and
// a disk that fails on demand (SQLite's writes; syncs of files, not of folders).
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "store/sqlite_store.h"

namespace mete::store {

struct DiskFaults {
  int writes_left = -1;  // then every write fails; -1: no write fails
  int write_error = 0;
  int syncs_left = -1;  // then one sync fails
  int sync_error = 0;
  int writes = 0, syncs = 0;  // seen so far
};
extern DiskFaults disk;

seam::StoredEvent event_of(std::uint64_t seq);
// Appends `count` events after the last one and returns the new last one's number.
std::uint64_t append_more(SqliteStore& store, std::uint64_t last, std::uint64_t count);
std::uint64_t size_of(const std::string& path);
void copy_file(const std::string& from, const std::string& to, std::uint64_t bytes = ~0ull);

class StoreTest : public testing::Test {
 protected:
  StoreTest();
  ~StoreTest() override;

  std::unique_ptr<SqliteStore> open(SqliteOptions options = {});
  // The Error of an open that must fail.
  Error refused();
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  // Events from the oldest kept one to `last`, each with the bytes of its number.
  void expect_events(SqliteStore& store, std::uint64_t first, std::uint64_t last);
  // SQL on the closed database, bypassing the store.
  void run_sql(const char* sql);

  std::string folder_;
};

}  // namespace mete::store
