// SPDX-License-Identifier: Apache-2.0
// The rows of version 3 with their checksums: what the checksum of an event covers, how a snapshot
// is split into rows, and the check of all of them when a database is opened. Reads and writes
// through a connection; opens nothing. docs/formats/store.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "seam/store.h"
#include "store/connection.h"
#include "store/mark.h"

namespace mete::store {

// The size of one row; a row of SQLite holds 10^9 bytes at most, and has to be in memory as a
// whole.
inline constexpr std::size_t kPartBytes = 1 << 20;

// The value of the column `sum` of an event.
std::int64_t sum_of(const seam::StoredEvent& event);

// The columns seq, at_ms, type, job, data, sum of a row, from `first` on. nullopt: the checksum
// does not match.
std::optional<seam::StoredEvent> event_in(const Statement& row, int first = 0);

// Two snapshots are kept: the newest, and the previous one in case the newest is damaged.
struct SnapshotHead {
  int slot = 0;  // 0 or 1
  std::uint64_t seq = 0;
  std::int64_t parts = 0;
  std::int64_t bytes = 0;
  std::int64_t sum = 0;  // over the number of its event and the checksums of its parts
};
// The newest first.
Result<std::vector<SnapshotHead>> snapshot_heads(Connection& connection);
// corrupt: it is not as written.
Result<seam::Snapshot> load_snapshot(Connection& connection, const SnapshotHead& head);
// Replaces the older one of two, inside the caller's transaction.
Result<void> put_snapshot(Connection& connection, const seam::Snapshot& snapshot);

// What a database holds: events first..last, where first is last + 1 if there are none.
struct Bounds {
  std::uint64_t first = 1, last = 0;
  std::uint64_t snapshot = 0, older_snapshot = 0;  // 0: none, or of no event
  std::string identity;
};
// Reads every event and both snapshots. corrupt: something is not as written, is missing, or was
// reported as stored (`mark`) and is not there.
Result<Bounds> verify(Connection& connection, const std::optional<MarkContent>& mark);

// "FILE is damaged", with the evidence and a hint.
Error damaged(Connection& connection, std::string what);

}  // namespace mete::store
