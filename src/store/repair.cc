// SPDX-License-Identifier: Apache-2.0
// See repair.h. The database is read in several ways, since any part of it may be the damaged one:
// with its log as SQLite reads it, with all of its log, without its log, with a header that is
// known to be right. Every row that is whole by its own checksum is taken from any of these.
#include "store/repair.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/content_hash.h"
#include "base/fd.h"
#include "base/file.h"
#include "seam/store.h"
#include "store/files.h"
#include "store/mark.h"
#include "store/rows.h"
#include "store/schema.h"
#include "store/sqlite_store.h"

namespace mete::store {

namespace {

constexpr std::size_t kMaxLog = 4ull << 30;
constexpr const char* kEvent = "SELECT seq, at_ms, type, job, data, ";

struct Found {
  std::map<std::uint64_t, seam::StoredEvent> events;
  std::map<std::uint64_t, std::string> snapshots;  // by the number of their event
  std::set<std::string> contents;                  // named by any event or snapshot
  std::set<std::string> whole;                     // those that are copied
  std::string identity;
  std::optional<Error> failed;  // the new database could not be written
};

// Reads rows until there are no more, or until one cannot be read; then from the other end.
template <typename Row>
void each_row(Connection& connection, const std::string& select, Row row) {
  for (const char* order : {" ASC", " DESC"}) {
    Result<Statement> statement = connection.prepare(select + order);
    if (!statement) return;
    for (;;) {
      const Result<bool> there = statement->step();
      if (!there) break;
      if (!*there) return;
      row(*statement);
    }
  }
}

void take_events(Connection& connection, bool sums, std::uint64_t up_to, Found& found) {
  const auto take = [&](const Statement& row) {
    seam::StoredEvent event{static_cast<std::uint64_t>(row.number(0)), row.number(1), row.text(2),
                            row.text(3), row.text(4)};
    if (event.seq < 1 || (sums && row.number(5) != sum_of(event))) return;
    const std::uint64_t seq = event.seq;
    found.events.emplace(seq, std::move(event));
  };
  const std::string select = std::string(kEvent) + (sums ? "sum" : "0") + " FROM events ";
  each_row(connection, select + "ORDER BY seq", take);
  // Between two unreadable pages: each row by its number.
  Result<Statement> one = connection.prepare(select + "WHERE seq = ?");
  if (!one || found.events.empty()) return;
  up_to = std::max(up_to, found.events.rbegin()->first);
  for (std::uint64_t seq = found.events.begin()->first; seq <= up_to; ++seq) {
    if (found.events.contains(seq)) continue;
    const ResetAtEnd reset(*one);
    one->bind(1, static_cast<std::int64_t>(seq));
    if (const Result<bool> there = one->step(); there && *there) take(*one);
  }
}

void take_snapshots(Connection& connection, bool sums, Found& found) {
  if (sums) {
    const Result<std::vector<SnapshotHead>> heads = snapshot_heads(connection);
    if (!heads) return;
    for (const SnapshotHead& head : *heads)
      if (Result<seam::Snapshot> snapshot = load_snapshot(connection, head))
        found.snapshots.emplace(snapshot->seq, std::move(snapshot->data));
    return;
  }
  each_row(connection, "SELECT seq, data FROM snapshots ORDER BY seq", [&](const Statement& row) {
    found.snapshots.emplace(static_cast<std::uint64_t>(row.number(0)), row.text(1));
  });
}

void take_contents(Connection& connection, Connection& into, Found& found) {
  Result<Statement> insert = into.prepare("INSERT OR IGNORE INTO blobs (hash, data) VALUES (?, ?)");
  if (!insert) return;
  each_row(connection, "SELECT hash, data FROM blobs NOT INDEXED ORDER BY rowid",
           [&](const Statement& row) {
             const std::string hash = row.text(0), data = row.blob(1);
             found.contents.insert(hash);
             if (found.whole.contains(hash) || base::content_hash(data) != hash) return;
             insert->bind(1, hash);
             insert->bind_blob(2, data);
             Result<void> kept = insert->run();
             if (kept)
               found.whole.insert(hash);
             else
               found.failed = std::move(kept).error();
           });
}

// The fields of SQLite's header that never change in our databases.
std::string with_known_header(std::string page) {
  const auto put = [&](std::size_t at, std::string_view bytes) {
    page.replace(at, bytes.size(), bytes);
  };
  using std::string_view_literals::operator""sv;
  put(0, "SQLite format 3\0\x10\0\2\2\0\x40\x20\x20"sv);
  put(44, "\0\0\0\4"sv);
  put(56, "\0\0\0\1"sv);
  put(60, "\0\0\0\3"sv);
  put(68, "mete"sv);
  return page;
}

class Repair {
 public:
  Repair(std::string folder, std::string time, RepairedAt at)
      : folder_(std::move(folder)),
        time_(std::move(time)),
        at_(at),
        database_(base::join_path(folder_, "meted.db")),
        scratch_(base::join_path(folder_, "repair.tmp")),
        fresh_path_(base::join_path(folder_, "meted.db.repaired")) {}
  ~Repair() {
    std::error_code ignored;
    std::filesystem::remove_all(scratch_, ignored);
    (void)unlink(fresh_path_.c_str());
    (void)unlink((fresh_path_ + "-journal").c_str());
  }
  Repair(const Repair&) = delete;
  Repair& operator=(const Repair&) = delete;

  Result<Repaired> run(std::string why) {
    done_.why = std::move(why);
    if (Result<std::optional<MarkContent>> mark = read_mark(folder_)) mark_ = *std::move(mark);
    if (Result<void> r = make_fresh(); !r) return std::move(r).error();
    if (Result<void> r = look_everywhere(); !r) return std::move(r).error();
    if (Result<void> r = write_rows(); !r) return std::move(r).error();
    if (Result<void> r = put_in_place(); !r) return std::move(r).error();
    return done_;
  }

 private:
  Result<void> make_fresh() {
    (void)unlink(fresh_path_.c_str());
    if (Result<Fd> file = base::open_fd(fresh_path_, O_WRONLY | O_CREAT | O_EXCL, 0600); !file)
      return std::move(file).error();
    Result<Connection> connection = Connection::open(fresh_path_);
    if (!connection) return std::move(connection).error();
    fresh_.emplace(*std::move(connection));
    if (Result<void> r = migrate(*fresh_); !r) return r;
    return fresh_->run("BEGIN IMMEDIATE");
  }

  // The scratch folder has the database under a second name, which is only read.
  Result<void> look_everywhere() {
    std::error_code ignored;
    std::filesystem::remove_all(scratch_, ignored);
    if (mkdir(scratch_.c_str(), 0700) != 0) return Error::from_errno("make " + scratch_, errno);
    const Result<std::string> log = base::read_all(database_ + "-wal", kMaxLog);
    if (log && !log->empty()) {
      look(*log, Header::kAsItIs);
      look(with_new_checksums(*log), Header::kAsItIs);
    }
    look("", Header::kAsItIs);
    if (found_.events.empty() && found_.snapshots.empty())
      look(log ? with_new_checksums(*log) : "", Header::kKnown);
    if (found_.failed) return *found_.failed;
    return {};
  }

  enum class Header { kAsItIs, kKnown };
  void look(const std::string& log, Header header) {
    const std::string path = base::join_path(scratch_, "meted.db");
    (void)unlink(path.c_str());
    (void)unlink((path + "-wal").c_str());
    if (header == Header::kAsItIs) {
      if (link(database_.c_str(), path.c_str()) != 0) return;
    } else {
      std::error_code failed;
      std::filesystem::copy_file(database_, path, failed);
      const Result<Fd> file = base::open_fd(path, O_RDWR | O_NOFOLLOW, 0600);
      std::string page(100, '\0');
      if (failed || !file || pread(file->get(), page.data(), 100, 0) != 100) return;
      page = with_known_header(std::move(page));
      if (pwrite(file->get(), page.data(), 100, 0) != 100) return;
    }
    if (!log.empty() && !base::write_atomic(path + "-wal", log)) return;
    Result<Connection> connection = Connection::open(path);
    if (!connection) return;
    // Closing must not copy the log into the database itself.
    sqlite3_db_config(connection->get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    if (!connection->run("PRAGMA locking_mode = EXCLUSIVE")) return;
    take_all(*connection);
  }

  void take_all(Connection& connection) {
    Result<std::int64_t> version = connection.number("PRAGMA user_version");
    if (!version) return;
    const bool sums = mark_ || *version >= 3;  // only version 3 has a mark
    if (const Result<std::string> id = connection.text("SELECT id FROM identity");
        id && id->size() == 32)
      found_.identity = *id;
    take_events(connection, sums, mark_ ? mark_->seq : 0, found_);
    take_snapshots(connection, sums, found_);
    take_contents(connection, *fresh_, found_);
  }

  // The last event that follows this one without a gap.
  std::uint64_t reach(std::uint64_t seq) const {
    while (found_.events.contains(seq + 1)) ++seq;
    return seq;
  }

  Result<void> write_rows() {
    std::uint64_t base = 0;
    for (const auto& [seq, data] : found_.snapshots)
      if (reach(seq) >= reach(base)) base = seq;
    done_.kept = reach(base);
    std::uint64_t first = base + 1;
    while (found_.events.contains(first - 1)) --first;
    if (first > done_.kept && done_.kept > 0) {
      // Numbers go on from the last event, so there must be one.
      found_.events[done_.kept] = repaired_event(done_.kept, 0);
      first = done_.kept;
    }
    count_what_is_lost();
    std::uint64_t last = done_.kept;
    if (done_.lost > 0) {
      ++last;
      found_.events[last] = repaired_event(last, done_.lost);
    }
    Result<Statement> insert = fresh_->prepare(
        "INSERT INTO events (seq, at_ms, type, job, data, sum) VALUES (?, ?, ?, ?, ?, ?)");
    if (!insert) return std::move(insert).error();
    for (std::uint64_t seq = first; seq <= last; ++seq) {
      const seam::StoredEvent& event = found_.events.at(seq);
      insert->bind(1, static_cast<std::int64_t>(event.seq));
      insert->bind(2, event.at_ms);
      insert->bind(3, event.type);
      insert->bind(4, event.job);
      insert->bind(5, event.data);
      insert->bind(6, sum_of(event));
      if (Result<void> r = insert->run(); !r) return r;
    }
    if (base > 0)
      if (Result<void> r = put_snapshot(*fresh_, {base, found_.snapshots.at(base)}); !r) return r;
    if (Result<void> r = fresh_->run("COMMIT"); !r) return r;
    last_ = last;
    const Result<std::string> identity = fresh_->text("SELECT id FROM identity");
    if (!identity) return identity.error();
    identity_ = *identity;
    fresh_.reset();
    return {};
  }

  // core::Repaired, as wire/event.h writes it.
  seam::StoredEvent repaired_event(std::uint64_t seq, std::uint64_t lost) const {
    return {seq, at_.ms, "store.repaired", "",
            "{\"lost_events\":" + std::to_string(lost) +
                ",\"last_job\":" + std::to_string(lost > 0 ? at_.last_job : 0) + "}"};
  }

  void count_what_is_lost() {
    std::uint64_t last = found_.events.empty() ? 0 : found_.events.rbegin()->first;
    const bool ours = mark_ && (found_.identity.empty() || found_.identity == mark_->database);
    if (ours) last = std::max(last, mark_->seq);
    done_.lost = last > done_.kept ? last - done_.kept : 0;
    done_.lost_contents = found_.contents.size() - found_.whole.size();
    for (const auto& [seq, event] : found_.events)
      if (seq > done_.kept && event.type == "job.submitted") done_.lost_jobs.push_back(event.job);
  }

  // Dying between two of these steps leaves files that the next start refuses and another repair
  // fixes.
  Result<void> put_in_place() {
    std::error_code ignored;
    std::filesystem::remove_all(scratch_, ignored);
    const std::string copy = database_ + ".damaged-" + time_;
    const bool there = link(database_.c_str(), copy.c_str()) == 0;
    if (!there && errno != ENOENT) return Error::from_errno("keep " + copy, errno);
    if (rename((database_ + "-wal").c_str(), (copy + "-wal").c_str()) != 0 && errno != ENOENT)
      return Error::from_errno("keep " + copy + "-wal", errno);
    if (there) done_.copy = copy;
    if (rename(fresh_path_.c_str(), database_.c_str()) != 0)
      return Error::from_errno("rename " + fresh_path_, errno);
    (void)unlink(mark_path(folder_).c_str());
    Mark mark(folder_);
    if (Result<void> r = mark.open({identity_, last_, kSchemaVersion}); !r) return r;
    return base::sync_folder(folder_);
  }

  std::string folder_, time_;
  RepairedAt at_;
  std::string database_, scratch_, fresh_path_;
  std::optional<Connection> fresh_;
  std::optional<MarkContent> mark_;
  std::string identity_;
  std::uint64_t last_ = 0;  // the last event that is written
  Found found_;
  Repaired done_;
};

// A newer mete also writes its version into the mark: if that is ours, the database's version is
// damaged.
bool is_no_damage(const Error& error, const std::string& folder) {
  if (error.code == ErrorCode::kUnsupported) {
    const Result<std::optional<MarkContent>> mark = read_mark(folder);
    return !mark || !*mark || (*mark)->version != kSchemaVersion;
  }
  return error.code == ErrorCode::kBusy || error.code == ErrorCode::kExhausted ||
         error.code == ErrorCode::kDenied;
}

}  // namespace

std::string damage_in_contents(const std::string& database) {
  Result<Connection> connection = Connection::open(database);
  if (!connection) return connection.error().message;
  std::string bad;
  each_row(*connection, "SELECT hash, data FROM blobs NOT INDEXED ORDER BY rowid",
           [&](const Statement& row) {
             if (base::content_hash(row.blob(1)) != row.text(0)) bad = row.text(0);
           });
  return bad.empty() ? "" : "the content " + bad + " is not as written";
}

Result<Repaired> repair(const std::string& folder, const std::string& time, RepairedAt at) {
  struct stat info {};
  const auto there = [&](const char* name) {
    return lstat(base::join_path(folder, name).c_str(), &info) == 0;
  };
  if (!there("meted.db") && !there("meted.mark") && !there("meted.db-wal"))
    return Error::not_found("there is no state in " + folder);
  Result<std::string> real = trusted_folder(folder);
  if (!real) return std::move(real).error();
  std::string why;
  {
    Result<std::unique_ptr<SqliteStore>> store = SqliteStore::open(*real);
    if (!store && is_no_damage(store.error(), *real)) return std::move(store).error();
    if (!store) why = store.error().message + ": " + store.error().evidence;
  }
  if (why.empty()) why = damage_in_contents(base::join_path(*real, "meted.db"));
  if (why.empty()) {
    Repaired whole;
    whole.was_whole = true;
    return whole;
  }
  return Repair(*real, time, at).run(std::move(why));
}

}  // namespace mete::store
