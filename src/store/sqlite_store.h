// SPDX-License-Identifier: Apache-2.0
// The store on SQLite: FOLDER/meted.db, one transaction and one sync for each commit
// (docs/adr/0007-store.md, docs/formats/store.md). One process at a time, one thread; never waits
// for a lock. Reads from the disk only what is asked for; holds in memory what is queued and at
// most about 1 MiB of pages.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "seam/store.h"
#include "store/backup.h"
#include "store/connection.h"
#include "store/files.h"
#include "store/mark.h"
#include "store/rows.h"

namespace mete::store {

struct SqliteOptions {
  // Events that a snapshot covers are kept up to this number, for `mete events --from`.
  std::uint64_t keep_events = 100'000;
  // The log is copied into the database once it has this many pages of 4 KiB. Half the ballast: on
  // a full disk the log must leave some of that for the database to grow.
  int checkpoint_pages = 128;
  // An upper bound on the database, beyond which the disk counts as full; 0: the disk's own limit.
  int max_pages = 0;
};

class SqliteStore final : public seam::Store {
 public:
  // Makes folder and file if missing, and upgrades an older file to our version. A refused file is
  // left as it is: denied (not ours only), busy (another process has it), corrupt, unsupported (a
  // newer version), exhausted, io.
  static Result<std::unique_ptr<SqliteStore>> open(const std::string& folder,
                                                   SqliteOptions options = {});
  ~SqliteStore() override;

  Result<std::optional<seam::Snapshot>> load_snapshot() override;
  Result<std::vector<seam::StoredEvent>> load_events(std::uint64_t after_seq,
                                                     std::size_t limit) override;
  // The next number, without gaps, from 1.
  void append(seam::StoredEvent event) override;
  // For the last appended event or an earlier one, and not older than the last snapshot.
  void put_snapshot(seam::Snapshot snapshot) override;
  void put_blob(std::string hash, std::string data) override;
  Result<std::string> load_blob(const std::string& hash) override;
  void keep_blobs(std::vector<std::string> hashes) override;
  // After io or corrupt every further commit fails with the same Error.
  Result<void> commit() override;
  void withdraw() override;
  bool has_room(std::uint64_t bytes) override;
  bool free_ballast() override { return ballast_.free(); }
  bool restore_ballast() override;

  // Begins a copy of all that is on the disk; the store outlives it (store/backup.h).
  Result<std::unique_ptr<Backup>> begin_backup(const std::string& path) {
    return Backup::begin(connection_, path);
  }

  const std::string& identity() const { return bounds_.identity; }
  // The last event that is on the disk; 0: none yet.
  std::uint64_t last_seq() const { return bounds_.last; }

 private:
  SqliteStore(Connection connection, const Files& files, SqliteOptions options);
  Result<void> prepare(const Files& files);
  Result<void> set_up();
  Result<void> prepare_statements();
  Result<void> check(const Files& files);
  Result<void> open_mark();
  Result<void> write(const std::optional<seam::Snapshot>& snapshot);
  Result<void> write_blobs();
  Result<void> write_events();
  Result<void> write_snapshot(const seam::Snapshot& snapshot);
  Result<void> delete_other_blobs();
  Result<void> checkpoint(int mode);
  std::uint64_t first_kept(const seam::Snapshot& snapshot) const;
  Result<void> check_in_place();
  std::uint64_t older_with(const seam::Snapshot& snapshot) const;
  Result<void> broken_by(Error error);

  // Statements are destroyed before the connection is closed: the order of these members matters.
  Connection connection_;
  Statement insert_event_, delete_events_, select_events_;
  Statement insert_blob_, delete_blob_, select_blob_, select_hashes_;
  Ballast ballast_;
  Mark mark_;
  std::string folder_;
  SqliteOptions options_;
  int log_pages_ = 0;  // reported by SQLite after each commit

  Bounds bounds_;  // what is on the disk
  std::vector<seam::StoredEvent> queued_;
  std::optional<seam::Snapshot> queued_snapshot_;
  std::map<std::string, std::string> queued_blobs_;
  std::optional<std::set<std::string>> kept_blobs_;  // with the next snapshot all others are
                                                     // dropped
  std::optional<Error> broken_;
};

}  // namespace mete::store
