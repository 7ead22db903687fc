// SPDX-License-Identifier: Apache-2.0
// See sqlite_store.h. After a failed sync the kernel may take pages for written that are not, and
// report success when asked again. So nothing is ever retried after an I/O error: the process ends,
// and the next one copies the whole log into the database before it goes on.
#include "store/sqlite_store.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/assert.h"
#include "base/content_hash.h"
#include "store/schema.h"

namespace mete::store {

namespace {

// At most this many are deleted in one commit, so that no commit becomes long; more than arrive
// between two snapshots, so that deletion keeps pace.
constexpr std::uint64_t kMaxPruned = 10'000;
// For the overhead of a commit: pages of the tree, a new log.
constexpr std::uint64_t kRoomForAnything = 256 << 10;
constexpr std::uint64_t kMaxSeq = std::numeric_limits<std::int64_t>::max();

std::int64_t to_sql(std::uint64_t seq) { return static_cast<std::int64_t>(std::min(seq, kMaxSeq)); }

int remember_log_pages(void* pages, sqlite3* /*connection*/, const char* /*name*/, int count) {
  *static_cast<int*>(pages) = count;
  return SQLITE_OK;
}

// While this is on, closing leaves the files as they are; otherwise it copies the log into the
// database and removes it.
void leave_as_is(Connection& connection, bool on) {
  sqlite3_db_config(connection.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, on ? 1 : 0, nullptr);
}

}  // namespace

Result<std::unique_ptr<SqliteStore>> SqliteStore::open(const std::string& folder,
                                                       SqliteOptions options) {
  Result<Files> files = prepare_files(folder);
  if (!files) return std::move(files).error();
  Result<Connection> connection = Connection::open(files->database);
  if (!connection) return std::move(connection).error();
  leave_as_is(*connection, true);
  std::unique_ptr<SqliteStore> store(new SqliteStore(std::move(*connection), *files, options));
  if (Result<void> ready = store->prepare(*files); !ready) return std::move(ready).error();
  leave_as_is(store->connection_, false);
  (void)store->restore_ballast();  // no space for it: the engine tries again
  return store;
}

SqliteStore::SqliteStore(Connection connection, const Files& files, SqliteOptions options)
    : connection_(std::move(connection)),
      ballast_(files.folder),
      mark_(files.folder),
      folder_(files.folder),
      options_(options) {}

SqliteStore::~SqliteStore() = default;

Result<void> SqliteStore::prepare(const Files& files) {
  // Exclusive before anything is read: then the log's index is in our memory and not in a mapped
  // file, which a full disk could turn into SIGBUS, and no other process gets access.
  for (const char* sql :
       {"PRAGMA locking_mode = EXCLUSIVE", "PRAGMA cell_size_check = ON",
        "PRAGMA trusted_schema = OFF", "PRAGMA cache_size = -1024", "PRAGMA synchronous = FULL"})
    if (Result<void> r = connection_.run(sql); !r) return r;
  // Before anything is written: a refused file stays as it is, and can be repaired.
  if (Result<void> r = check(files); !r) return r;
  if (Result<void> r = set_up(); !r) return r;
  // The log of a killed predecessor may be in the kernel's memory only, if it died of a failed
  // sync. In the database, synced, it is safe. Without space for that it is safe enough to go on,
  // and the ends of jobs must be recorded.
  if (Result<void> r = checkpoint(SQLITE_CHECKPOINT_TRUNCATE);
      !r && r.error().code != ErrorCode::kExhausted)
    return r;
  if (Result<void> r = migrate(connection_); !r) return r;
  if (Result<void> r = prepare_statements(); !r) return r;
  if (bounds_.identity.empty()) {  // new, or of an older version
    Result<Bounds> bounds = verify(connection_, std::nullopt);
    if (!bounds) return std::move(bounds).error();
    bounds_ = *std::move(bounds);
  }
  (void)open_mark();  // no space for it: the engine tries again
  return {};
}

Result<void> SqliteStore::check(const Files& files) {
  if (Result<void> r = check_identity(connection_); !r) return r;
  Result<std::optional<MarkContent>> mark = read_mark(files.folder);
  if (!mark) {
    Error error = std::move(mark).error();
    if (error.code == ErrorCode::kCorrupt) error.hint = damaged(connection_, "").hint;
    return error;
  }
  const Result<std::int64_t> version = connection_.number("PRAGMA user_version");
  if (!version) return version.error();
  if (*mark && (*mark)->version != static_cast<std::uint64_t>(*version))
    return damaged(connection_, "its version is " + std::to_string(*version) + ", its mark says " +
                                    std::to_string((*mark)->version));
  Result<std::string> sound = connection_.text("PRAGMA quick_check(1)");
  if (!sound) return std::move(sound).error();
  if (*sound != "ok") return damaged(connection_, *sound);
  if (*version < 3) return {};
  Result<Bounds> bounds = verify(connection_, *mark);
  if (!bounds) return std::move(bounds).error();
  bounds_ = *std::move(bounds);
  return {};
}

Result<void> SqliteStore::set_up() {
  Result<std::string> mode = connection_.text("PRAGMA journal_mode = WAL");
  if (!mode) return std::move(mode).error();
  if (*mode != "wal") {
    return Error::unsupported(std::string("no write-ahead log for ") +
                              sqlite3_db_filename(connection_.get(), "main"))
        .with_evidence("journal mode " + *mode)
        .with_hint("give meted a state folder on a local disk");
  }
  for (const char* sql : {"PRAGMA journal_size_limit = 4194304", "PRAGMA secure_delete = FAST"})
    if (Result<void> r = connection_.run(sql); !r) return r;
  if (options_.max_pages > 0) {
    const std::string sql = "PRAGMA max_page_count = " + std::to_string(options_.max_pages);
    if (Result<void> r = connection_.run(sql.c_str()); !r) return r;
  }
  // Instead of SQLite's own checkpoints, which do not report their failures.
  sqlite3_wal_hook(connection_.get(), remember_log_pages, &log_pages_);
  return {};
}

Result<void> SqliteStore::prepare_statements() {
  const std::pair<Statement*, const char*> wanted[] = {
      {&insert_event_,
       "INSERT INTO events (seq, at_ms, type, job, data, sum) VALUES (?, ?, ?, ?, ?, ?)"},
      {&insert_blob_, "INSERT OR IGNORE INTO blobs (hash, data) VALUES (?, ?)"},
      {&delete_blob_, "DELETE FROM blobs WHERE hash = ?"},
      {&select_blob_, "SELECT data FROM blobs WHERE hash = ?"},
      {&select_hashes_, "SELECT hash FROM blobs"},
      {&delete_events_, "DELETE FROM events WHERE seq < ?"},
      {&select_events_,
       "SELECT seq, at_ms, type, job, data, sum FROM events WHERE seq > ? ORDER BY seq LIMIT ?"},
  };
  for (const auto& [statement, sql] : wanted) {
    Result<Statement> made = connection_.prepare(sql);
    if (!made) return std::move(made).error();
    *statement = std::move(*made);
  }
  return {};
}

Result<std::optional<seam::Snapshot>> SqliteStore::load_snapshot() {
  const Result<std::vector<SnapshotHead>> heads = snapshot_heads(connection_);
  if (!heads) return heads.error();
  if (heads->empty()) return std::optional<seam::Snapshot>();
  Result<seam::Snapshot> snapshot = store::load_snapshot(connection_, heads->front());
  if (!snapshot) return std::move(snapshot).error();
  return std::optional(*std::move(snapshot));
}

Result<std::vector<seam::StoredEvent>> SqliteStore::load_events(std::uint64_t after_seq,
                                                                std::size_t limit) {
  const ResetAtEnd reset(select_events_);
  select_events_.bind(1, to_sql(after_seq));
  select_events_.bind(2, to_sql(limit));
  std::vector<seam::StoredEvent> events;
  std::uint64_t expected = std::max(bounds_.first, after_seq + 1);
  for (;;) {
    Result<bool> row = select_events_.step();
    if (!row) return std::move(row).error();
    if (!*row) return events;
    std::optional<seam::StoredEvent> event = event_in(select_events_);
    if (!event || event->seq != expected) {
      return damaged(connection_, "event " + std::to_string(expected) +
                                      (event ? " is missing" : " is not as written"));
    }
    events.push_back(*std::move(event));
    ++expected;
  }
}

void SqliteStore::append(seam::StoredEvent event) {
  METE_ASSERT(event.seq == bounds_.last + queued_.size() + 1);
  METE_ASSERT(event.seq <= kMaxSeq);
  queued_.push_back(std::move(event));
}

void SqliteStore::put_snapshot(seam::Snapshot snapshot) {
  METE_ASSERT(snapshot.seq <= bounds_.last + queued_.size());
  METE_ASSERT(snapshot.seq >= (queued_snapshot_ ? queued_snapshot_->seq : bounds_.snapshot));
  queued_snapshot_ = std::move(snapshot);
}

void SqliteStore::put_blob(std::string hash, std::string data) {
  queued_blobs_.emplace(std::move(hash), std::move(data));
}

Result<std::string> SqliteStore::load_blob(const std::string& hash) {
  const ResetAtEnd reset(select_blob_);
  select_blob_.bind(1, hash);
  Result<bool> row = select_blob_.step();
  if (!row) return std::move(row).error();
  if (!*row) return Error::not_found("there is no content " + hash);
  std::string data = select_blob_.blob(0);
  if (base::content_hash(data) != hash)
    return damaged(connection_, "the content " + hash + " is not as written");
  return data;
}

void SqliteStore::keep_blobs(std::vector<std::string> hashes) {
  kept_blobs_.emplace(hashes.begin(), hashes.end());
}

Result<void> SqliteStore::commit() {
  if (broken_) return *broken_;
  if (queued_.empty() && queued_blobs_.empty() && !queued_snapshot_) return {};
  if (Result<void> r = check_in_place(); !r) return broken_by(std::move(r).error());
  Result<void> written = write(queued_snapshot_);
  // A snapshot is only an optimisation. A snapshot that cannot be stored must not keep events out.
  const bool may_be_the_snapshot = !written && written.error().code != ErrorCode::kIo &&
                                   written.error().code != ErrorCode::kCorrupt;
  if (may_be_the_snapshot && queued_snapshot_ && !(queued_.empty() && queued_blobs_.empty())) {
    written = write(std::nullopt);
    if (written) {
      queued_snapshot_.reset();
      kept_blobs_.reset();
    }
  }
  if (!written) {
    if (written.error().code == ErrorCode::kExhausted) return written;
    return broken_by(std::move(written).error());
  }
  if (!queued_.empty()) bounds_.last = queued_.back().seq;
  if (queued_snapshot_) {
    const std::uint64_t first = first_kept(*queued_snapshot_);
    bounds_.older_snapshot = older_with(*queued_snapshot_);
    bounds_.snapshot = queued_snapshot_->seq;
    bounds_.first = first;
    kept_blobs_.reset();
  }
  queued_.clear();
  queued_blobs_.clear();
  queued_snapshot_.reset();
  mark_.write(bounds_.last);
  if (log_pages_ < options_.checkpoint_pages) return {};
  Result<void> copied = checkpoint(SQLITE_CHECKPOINT_PASSIVE);
  // No space: everything is safe in the log, and the next commit tries again.
  if (copied || copied.error().code == ErrorCode::kExhausted) return {};
  return broken_by(std::move(copied).error());
}

// Writes to a removed file are lost with the process, and must not be reported as stored.
Result<void> SqliteStore::check_in_place() {
  int moved = 0;
  sqlite3_file_control(connection_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  if (moved == 0) return {};
  return Error::io(std::string(sqlite3_db_filename(connection_.get(), "main")) +
                   " was removed or replaced")
      .with_hint("start again: the next daemon begins with what is there");
}

void SqliteStore::withdraw() {
  queued_.clear();
  queued_blobs_.clear();
  queued_snapshot_.reset();
  kept_blobs_.reset();
}

// The bytes are written into the log, and again when that is copied into the database.
bool SqliteStore::has_room(std::uint64_t bytes) {
  struct statvfs disk {};
  if (statvfs(folder_.c_str(), &disk) != 0) return true;
  const std::uint64_t blocks = geteuid() == 0 ? disk.f_bfree : disk.f_bavail;
  return blocks * disk.f_frsize >= 3 * bytes + kRoomForAnything;
}

Result<void> SqliteStore::open_mark() {
  return mark_.open({bounds_.identity, bounds_.last, kSchemaVersion});
}

bool SqliteStore::restore_ballast() {
  if (!mark_.is_open()) (void)open_mark();
  return ballast_.restore();
}

Result<void> SqliteStore::write(const std::optional<seam::Snapshot>& snapshot) {
  Result<Transaction> transaction = Transaction::begin(connection_);
  if (!transaction) return std::move(transaction).error();
  if (Result<void> r = write_blobs(); !r) return r;
  if (Result<void> r = write_events(); !r) return r;
  if (snapshot)
    if (Result<void> r = write_snapshot(*snapshot); !r) return r;
  return transaction->commit();
}

Result<void> SqliteStore::write_blobs() {
  for (const auto& [hash, data] : queued_blobs_) {
    insert_blob_.bind(1, hash);
    insert_blob_.bind_blob(2, data);
    if (Result<void> r = insert_blob_.run(); !r) return r;
  }
  return {};
}

// Contents put since the list was made belong to events that it does not know.
Result<void> SqliteStore::delete_other_blobs() {
  if (!kept_blobs_) return {};
  std::vector<std::string> others;
  {
    const ResetAtEnd reset(select_hashes_);
    for (;;) {
      Result<bool> row = select_hashes_.step();
      if (!row) return std::move(row).error();
      if (!*row) break;
      std::string hash = select_hashes_.text(0);
      if (!kept_blobs_->contains(hash) && !queued_blobs_.contains(hash))
        others.push_back(std::move(hash));
    }
  }
  for (const std::string& hash : others) {
    delete_blob_.bind(1, hash);
    if (Result<void> r = delete_blob_.run(); !r) return r;
  }
  return {};
}

Result<void> SqliteStore::write_events() {
  for (const seam::StoredEvent& event : queued_) {
    insert_event_.bind(1, to_sql(event.seq));
    insert_event_.bind(2, event.at_ms);
    insert_event_.bind(3, event.type);
    insert_event_.bind(4, event.job);
    insert_event_.bind(5, event.data);
    insert_event_.bind(6, sum_of(event));
    if (Result<void> r = insert_event_.run(); !r) return r;
  }
  return {};
}

Result<void> SqliteStore::write_snapshot(const seam::Snapshot& snapshot) {
  if (Result<void> r = store::put_snapshot(connection_, snapshot); !r) return r;
  delete_events_.bind(1, to_sql(first_kept(snapshot)));
  if (Result<void> r = delete_events_.run(); !r) return r;
  return delete_other_blobs();
}

// The snapshot that is kept besides this one; itself, if there is none.
std::uint64_t SqliteStore::older_with(const seam::Snapshot& snapshot) const {
  if (bounds_.snapshot == 0) return snapshot.seq;
  return snapshot.seq == bounds_.snapshot ? bounds_.older_snapshot : bounds_.snapshot;
}

// The oldest event to keep with this snapshot. Example: events 1..250, snapshots of 180 and 200,
// keep 100: 151 and later stay. Never deletes an event that a kept snapshot does not cover, and
// never all: the next event's number follows the last one.
std::uint64_t SqliteStore::first_kept(const seam::Snapshot& snapshot) const {
  const std::uint64_t last = queued_.empty() ? bounds_.last : queued_.back().seq;
  const std::uint64_t keep = std::max<std::uint64_t>(options_.keep_events, 1);
  const std::uint64_t by_count = last >= keep ? last - keep + 1 : 1;
  return std::clamp(std::min(by_count, older_with(snapshot) + 1), bounds_.first,
                    bounds_.first + kMaxPruned);
}

Result<void> SqliteStore::checkpoint(int mode) {
  const int code = sqlite3_wal_checkpoint_v2(connection_.get(), "main", mode, nullptr, nullptr);
  if (code != SQLITE_OK) return to_error(connection_.get(), code, "copy the log into");
  return {};
}

Result<void> SqliteStore::broken_by(Error error) {
  leave_as_is(connection_, true);
  broken_ = std::move(error);
  return *broken_;
}

}  // namespace mete::store
