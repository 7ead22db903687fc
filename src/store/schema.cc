// SPDX-License-Identifier: Apache-2.0
// See schema.h. Each step is SQL plus an optional function, run in one transaction with the new
// user_version; migrate() takes every step above the version of the file. check_identity()
// recognises our file by its application id before anything is written.
#include "store/schema.h"

#include <string>

#include "store/rows.h"

namespace mete::store {

namespace {

// The checksum of an event for SQL: seq, at_ms, type, job, data.
void event_sum(sqlite3_context* context, int /*count*/, sqlite3_value** values) {
  const auto text = [&](int at) {
    const auto* bytes = static_cast<const char*>(sqlite3_value_blob(values[at]));
    const int size = sqlite3_value_bytes(values[at]);
    return bytes == nullptr ? std::string() : std::string(bytes, static_cast<std::size_t>(size));
  };
  const seam::StoredEvent event{static_cast<std::uint64_t>(sqlite3_value_int64(values[0])),
                                sqlite3_value_int64(values[1]), text(2), text(3), text(4)};
  sqlite3_result_int64(context, sum_of(event));
}

// Adds checksums to existing rows, and splits the snapshot into rows.
Result<void> to_version_3(Connection& connection) {
  const int code = sqlite3_create_function_v2(connection.get(), "mete_event_sum", 5, SQLITE_UTF8,
                                              nullptr, event_sum, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return to_error(connection.get(), code, "use");
  if (Result<void> r =
          connection.run("UPDATE events SET sum = mete_event_sum(seq, at_ms, type, job, data)");
      !r)
    return r;
  Result<Statement> row =
      connection.prepare("SELECT seq, data FROM old_snapshots ORDER BY seq DESC LIMIT 1");
  if (!row) return std::move(row).error();
  const Result<bool> there = row->step();
  if (!there) return there.error();
  if (*there) {
    const seam::Snapshot snapshot{static_cast<std::uint64_t>(row->number(0)), row->text(1)};
    row->reset();
    if (Result<void> r = put_snapshot(connection, snapshot); !r) return r;
  }
  row->reset();
  return connection.run("DROP TABLE old_snapshots");
}

constexpr Step kSteps[] = {
    {1, R"(
CREATE TABLE events (
  seq INTEGER PRIMARY KEY,
  at_ms INTEGER NOT NULL,
  type TEXT NOT NULL,
  job TEXT NOT NULL,
  data TEXT NOT NULL
) STRICT;
CREATE TABLE snapshots (
  seq INTEGER PRIMARY KEY,
  data TEXT NOT NULL
) STRICT;
)"},
    {2, R"(
CREATE TABLE blobs (
  hash TEXT PRIMARY KEY,
  data BLOB NOT NULL
) STRICT;
)"},
    {3, R"(
ALTER TABLE events ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE snapshots RENAME TO old_snapshots;
CREATE TABLE snapshots (
  slot INTEGER PRIMARY KEY,
  seq INTEGER NOT NULL,
  parts INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  sum INTEGER NOT NULL
) STRICT;
CREATE TABLE snapshot_parts (
  part INTEGER PRIMARY KEY,
  data BLOB NOT NULL,
  sum INTEGER NOT NULL
) STRICT;
CREATE TABLE identity (
  id TEXT NOT NULL
) STRICT;
INSERT INTO identity VALUES (lower(hex(randomblob(16))));
)",
     to_version_3},
};
static_assert(std::size(kSteps) == kSchemaVersion);

std::string file_of(Connection& connection) {
  return sqlite3_db_filename(connection.get(), "main");
}

}  // namespace

std::span<const Step> schema_steps() { return kSteps; }

Result<void> check_identity(Connection& connection, int newest) {
  Result<std::int64_t> application = connection.number("PRAGMA application_id");
  if (!application) return std::move(application).error();
  Result<std::int64_t> version = connection.number("PRAGMA user_version");
  if (!version) return std::move(version).error();
  // Killed between making the file and the first step: it is still empty.
  if (*application == 0 && *version == 0) {
    Result<std::int64_t> tables = connection.number("SELECT count(*) FROM sqlite_schema");
    if (!tables) return std::move(tables).error();
    if (*tables == 0) return {};
  }
  const std::string file = file_of(connection);
  if (*application != kApplicationId) {
    return Error::corrupt(file + " is another program's database")
        .with_evidence("application id " + std::to_string(*application) + ", ours is " +
                       std::to_string(kApplicationId))
        .with_hint("move it away, or give meted another state folder");
  }
  if (*version > newest) {
    return Error::unsupported(file + " was written by a newer mete")
        .with_evidence("its version is " + std::to_string(*version) + ", this mete knows up to " +
                       std::to_string(newest))
        .with_hint(
            "install that mete or a newer one, or move the file away to begin with an "
            "empty one");
  }
  if (*version < 1) {
    return damaged(connection, "it has no version");
  }
  return {};
}

Result<void> migrate(Connection& connection, std::span<const Step> steps) {
  Result<std::int64_t> version = connection.number("PRAGMA user_version");
  if (!version) return std::move(version).error();
  for (const Step& step : steps) {
    if (step.to <= *version) continue;
    Result<Transaction> transaction = Transaction::begin(connection);
    if (!transaction) return std::move(transaction).error();
    const std::string sql = std::string(step.sql) +
                            "PRAGMA application_id = " + std::to_string(kApplicationId) +
                            "; PRAGMA user_version = " + std::to_string(step.to) + ";";
    Result<void> done = connection.run(sql.c_str());
    if (done && step.then != nullptr) done = step.then(connection);
    if (done) done = transaction->commit();
    if (!done) {
      return std::move(done).error().within("bring the store to version " +
                                            std::to_string(step.to));
    }
  }
  return {};
}

}  // namespace mete::store
