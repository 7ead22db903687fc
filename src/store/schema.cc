// SPDX-License-Identifier: Apache-2.0
// See schema.h.
#include "store/schema.h"

#include <string>

namespace mete::store {

namespace {

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
  // Killed between making the file and the first step: nothing in it yet.
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
    return Error::corrupt(file + " has no version").with_hint("put a copy back, or move it away");
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
    if (done) done = transaction->commit();
    if (!done) {
      return std::move(done).error().within("bring the store to version " +
                                            std::to_string(step.to));
    }
  }
  return {};
}

}  // namespace mete::store
