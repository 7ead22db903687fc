// SPDX-License-Identifier: Apache-2.0
// See rows.h. Every row has a checksum over all its columns; a snapshot has one over the checksums
// of its parts. verify() reads all events and both snapshots in order, checks each checksum and
// that no number is missing, and compares the last event with the mark. A snapshot is written into
// the slot of the older of two, in parts of kPartBytes.
#include "store/rows.h"

#include <algorithm>
#include <string_view>

#include "base/checksum.h"
#include "base/file.h"

namespace mete::store {

namespace {

std::uint64_t sum_of_numbers(std::initializer_list<std::uint64_t> numbers, std::uint64_t seed = 0) {
  std::string bytes;
  for (const std::uint64_t number : numbers)
    for (int shift = 0; shift < 64; shift += 8) bytes.push_back(static_cast<char>(number >> shift));
  return base::checksum(bytes, seed);
}

std::uint64_t unsigned_of(std::int64_t value) { return static_cast<std::uint64_t>(value); }

std::uint64_t sum_of_part(std::uint64_t seq, std::int64_t part, std::string_view data) {
  return base::checksum(data, sum_of_numbers({seq, unsigned_of(part)}));
}

// Parts of one slot are adjacent, and behind those of the other slot.
std::int64_t key_of(int slot, std::int64_t part) {
  return (static_cast<std::int64_t>(slot) << 32) + part;
}

std::string range(std::uint64_t first, std::uint64_t last) {
  return "events " + std::to_string(first) + " to " + std::to_string(last);
}

Result<std::string> identity_of(Connection& connection) {
  Result<Statement> row = connection.prepare("SELECT id FROM identity");
  if (!row) return std::move(row).error();
  const Result<bool> there = row->step();
  if (!there) return there.error();
  if (!*there || row->text(0).size() != 32) return damaged(connection, "its identity is not there");
  return row->text(0);
}

Result<void> verify_events(Connection& connection, Bounds& bounds) {
  Result<Statement> row =
      connection.prepare("SELECT seq, at_ms, type, job, data, sum FROM events ORDER BY seq");
  if (!row) return std::move(row).error();
  for (bool begun = false;; begun = true) {
    const Result<bool> there = row->step();
    if (!there) return damaged(connection, "its events cannot be read: " + there.error().message);
    if (!*there) return {};
    const std::optional<seam::StoredEvent> event = event_in(*row);
    if (!event)
      return damaged(connection, "event " + std::to_string(row->number(0)) + " is not as written");
    if (!begun) bounds.first = event->seq;
    if (begun ? event->seq != bounds.last + 1 : event->seq < 1)
      return damaged(connection, "event " + std::to_string(bounds.last + 1) + " is missing");
    bounds.last = event->seq;
  }
}

Result<void> verify_snapshots(Connection& connection, Bounds& bounds) {
  const Result<std::vector<SnapshotHead>> heads = snapshot_heads(connection);
  if (!heads) return heads.error();
  for (const SnapshotHead& head : *heads)
    if (const Result<seam::Snapshot> snapshot = load_snapshot(connection, head); !snapshot)
      return snapshot.error();
  std::int64_t parts = 0;
  for (const SnapshotHead& head : *heads) parts += head.parts;
  const Result<std::int64_t> rows = connection.number("SELECT count(*) FROM snapshot_parts");
  if (!rows) return rows.error();
  if (*rows != parts) return damaged(connection, "a snapshot has rows of no snapshot");
  if (!heads->empty()) bounds.snapshot = bounds.older_snapshot = heads->front().seq;
  if (heads->size() > 1) bounds.older_snapshot = heads->back().seq;
  const bool empty = bounds.last == 0;
  // Every event after a snapshot is there, and the snapshot is not newer than the last event.
  const bool sound =
      empty ? bounds.snapshot == 0
            : bounds.first <= bounds.older_snapshot + 1 && bounds.snapshot <= bounds.last;
  if (!sound)
    return damaged(connection, range(bounds.first, bounds.last) + ", snapshot of " +
                                   std::to_string(bounds.snapshot));
  return {};
}

Result<void> compare(Connection& connection, const Bounds& bounds, const MarkContent& mark) {
  if (mark.database != bounds.identity)
    return damaged(connection, "its mark is of another database: this one was put in its place");
  if (mark.seq <= bounds.last) return {};
  return damaged(connection, range(bounds.last + 1, mark.seq) +
                                 " were recorded and are missing: it is an older copy, or its log "
                                 "is damaged");
}

}  // namespace

Error damaged(Connection& connection, std::string what) {
  const std::string file = sqlite3_db_filename(connection.get(), "main");
  return Error::corrupt(file + " is damaged")
      .with_evidence(std::move(what))
      .with_hint("put a whole copy back, or save what is whole: mete daemon repair --state-dir " +
                 base::parent_path(file));
}

std::int64_t sum_of(const seam::StoredEvent& event) {
  std::uint64_t sum =
      sum_of_numbers({event.seq, unsigned_of(event.at_ms), event.type.size(), event.job.size()});
  for (const std::string* text : {&event.type, &event.job, &event.data})
    sum = base::checksum(*text, sum);
  return static_cast<std::int64_t>(sum);
}

std::optional<seam::StoredEvent> event_in(const Statement& row, int first) {
  seam::StoredEvent event{unsigned_of(row.number(first)), row.number(first + 1),
                          row.text(first + 2), row.text(first + 3), row.text(first + 4)};
  if (row.number(first + 5) != sum_of(event)) return std::nullopt;
  return event;
}

Result<std::vector<SnapshotHead>> snapshot_heads(Connection& connection) {
  Result<Statement> row = connection.prepare(
      "SELECT slot, seq, parts, bytes, sum FROM snapshots ORDER BY seq DESC, slot DESC");
  if (!row) return std::move(row).error();
  std::vector<SnapshotHead> heads;
  for (;;) {
    const Result<bool> there = row->step();
    if (!there) return there.error();
    if (!*there) return heads;
    heads.push_back({static_cast<int>(row->number(0)), unsigned_of(row->number(1)), row->number(2),
                     row->number(3), row->number(4)});
  }
}

Result<seam::Snapshot> load_snapshot(Connection& connection, const SnapshotHead& head) {
  const Error broken = damaged(
      connection, "the snapshot of event " + std::to_string(head.seq) + " is not as written");
  Result<Statement> row = connection.prepare(
      "SELECT part, data, sum FROM snapshot_parts WHERE part >= ? AND part < ? ORDER BY part");
  if (!row) return std::move(row).error();
  row->bind(1, key_of(head.slot, 0));
  row->bind(2, key_of(head.slot + 1, 0));
  seam::Snapshot snapshot{head.seq, {}};
  std::int64_t parts = 0;
  std::uint64_t sum = sum_of_numbers({head.seq});
  for (;; ++parts) {
    const Result<bool> there = row->step();
    if (!there) return broken;
    if (!*there) break;
    const std::string data = row->blob(1);
    const std::uint64_t of_part = sum_of_part(head.seq, parts, data);
    if (row->number(0) != key_of(head.slot, parts) || unsigned_of(row->number(2)) != of_part)
      return broken;
    sum = sum_of_numbers({of_part}, sum);
    snapshot.data += data;
  }
  if (parts != head.parts || static_cast<std::int64_t>(snapshot.data.size()) != head.bytes ||
      unsigned_of(head.sum) != sum)
    return broken;
  return snapshot;
}

Result<void> put_snapshot(Connection& connection, const seam::Snapshot& snapshot) {
  const Result<std::vector<SnapshotHead>> heads = snapshot_heads(connection);
  if (!heads) return heads.error();
  // A snapshot of the same event is replaced: the older one is worth more as the second.
  const bool again = !heads->empty() && heads->front().seq == snapshot.seq;
  int slot = 0;
  if (again) slot = heads->front().slot;
  if (!again && !heads->empty()) slot = 1 - heads->front().slot;
  Result<Statement> remove =
      connection.prepare("DELETE FROM snapshot_parts WHERE part >= ? AND part < ?");
  if (!remove) return std::move(remove).error();
  remove->bind(1, key_of(slot, 0));
  remove->bind(2, key_of(slot + 1, 0));
  if (Result<void> r = remove->run(); !r) return r;
  Result<Statement> insert =
      connection.prepare("INSERT INTO snapshot_parts (part, data, sum) VALUES (?, ?, ?)");
  if (!insert) return std::move(insert).error();
  std::string_view rest = snapshot.data;
  std::int64_t parts = 0;
  std::uint64_t sum = sum_of_numbers({snapshot.seq});
  for (; !rest.empty(); ++parts) {
    const std::string_view data = rest.substr(0, kPartBytes);
    rest.remove_prefix(data.size());
    const std::uint64_t of_part = sum_of_part(snapshot.seq, parts, data);
    insert->bind(1, key_of(slot, parts));
    insert->bind_blob(2, data);
    insert->bind(3, static_cast<std::int64_t>(of_part));
    if (Result<void> r = insert->run(); !r) return r;
    sum = sum_of_numbers({of_part}, sum);
  }
  Result<Statement> head = connection.prepare(
      "INSERT OR REPLACE INTO snapshots (slot, seq, parts, bytes, sum) VALUES (?, ?, ?, ?, ?)");
  if (!head) return std::move(head).error();
  head->bind(1, static_cast<std::int64_t>(slot));
  head->bind(2, static_cast<std::int64_t>(snapshot.seq));
  head->bind(3, parts);
  head->bind(4, static_cast<std::int64_t>(snapshot.data.size()));
  head->bind(5, static_cast<std::int64_t>(sum));
  return head->run();
}

Result<Bounds> verify(Connection& connection, const std::optional<MarkContent>& mark) {
  Result<std::string> identity = identity_of(connection);
  if (!identity) return std::move(identity).error();
  Bounds bounds;
  bounds.identity = *std::move(identity);
  if (Result<void> r = verify_events(connection, bounds); !r) return std::move(r).error();
  if (Result<void> r = verify_snapshots(connection, bounds); !r) return std::move(r).error();
  if (mark)
    if (Result<void> r = compare(connection, bounds, *mark); !r) return std::move(r).error();
  return bounds;
}

}  // namespace mete::store
