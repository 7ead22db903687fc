// SPDX-License-Identifier: Apache-2.0
// What must outlive us: a log of events and a snapshot of what they came to. The store knows bytes
// and numbers; what an event means is nobody's business here. Real: store's SqliteStore. Tests: a
// store in memory that forgets what was not committed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace mete::seam {

struct StoredEvent {
  std::uint64_t seq = 0;
  std::int64_t at_ms = 0;
  std::string type;  // "job.started"
  std::string job;   // "12"; empty: not about a job
  std::string data;  // JSON
  bool operator==(const StoredEvent&) const = default;
};

struct Snapshot {
  std::uint64_t seq = 0;  // the last event in it
  std::string data;       // JSON
  bool operator==(const Snapshot&) const = default;
};

struct Store {
  virtual ~Store() = default;

  // The newest snapshot, if there is one.
  virtual Result<std::optional<Snapshot>> load_snapshot() = 0;
  // Events after `seq`, in order, at most `limit`; fewer: there are no more.
  virtual Result<std::vector<StoredEvent>> load_events(std::uint64_t after_seq,
                                                       std::size_t limit) = 0;

  // Nothing of these is kept before commit() has returned. The next commit has all of them or none.
  virtual void append(StoredEvent event) = 0;
  virtual void put_snapshot(Snapshot snapshot) = 0;
  // One sync for everything since the last one. exhausted: the disk is full, nothing of it is kept
  // and all of it stays queued for the next try; io, corrupt: do not go on.
  virtual Result<void> commit() = 0;

  // Room that was put aside for the end of jobs: given up when the disk is full, taken again when
  // there is room. False: there is none to give, or no room to take.
  virtual bool free_ballast() { return false; }
  virtual bool restore_ballast() { return true; }
};

}  // namespace mete::seam
