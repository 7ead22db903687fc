// SPDX-License-Identifier: Apache-2.0
// What must outlive us: a log of events and a snapshot of their result. The store knows bytes and
// numbers, not the meaning of events. Real: store's SqliteStore. Tests: a store in memory that
// forgets what was not committed.
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
  // Events after `seq`, in order, at most `limit`; fewer: there are no more. Old ones that a
  // snapshot covers may be gone: then from the oldest that is kept.
  virtual Result<std::vector<StoredEvent>> load_events(std::uint64_t after_seq,
                                                       std::size_t limit) = 0;

  // Nothing of this is stored before commit() has returned. The next commit has all of it or none.
  // Numbers go up by one, from 1.
  virtual void append(StoredEvent event) = 0;
  // For the last appended event or an earlier one; 0: for none.
  virtual void put_snapshot(Snapshot snapshot) = 0;
  // Contents that events refer to by their hash (base::content_hash): environments, scripts, long
  // commands. Idempotent. Stored like an event: by the next commit.
  virtual void put_blob(std::string hash, std::string data) = 0;
  // not_found: no such content. corrupt: it is not what was put.
  virtual Result<std::string> load_blob(const std::string& hash) = 0;
  // With the next snapshot all others are dropped, except those that the same commit puts.
  virtual void keep_blobs(std::vector<std::string> hashes) = 0;
  // One sync for everything since the last one. exhausted: the disk is full, nothing of it is
  // stored and all of it stays queued for the next attempt; io, corrupt: do not go on, it is
  // unknown whether it was stored. A snapshot that finds no room where the events alone do is
  // dropped, without an error: it is only an optimisation, and the next one does its work.
  virtual Result<void> commit() = 0;

  // Drops what was queued since the last commit, as if it had never been appended.
  virtual void withdraw() = 0;
  // Whether there is room for a commit of this many bytes beside the ballast. Asked before work is
  // accepted, so that it is refused rather than tried; true does not guarantee the commit.
  virtual bool has_room(std::uint64_t bytes) {
    (void)bytes;
    return true;
  }

  // Space set aside for a full disk. After `exhausted`: free it and commit again, then accept
  // nothing new, so that it lasts for the ends of running jobs. True: there was some.
  virtual bool free_ballast() { return false; }
  // Called from time to time. True: it is there again, so the disk has room and everything may go
  // on.
  virtual bool restore_ballast() { return true; }
};

}  // namespace mete::seam
