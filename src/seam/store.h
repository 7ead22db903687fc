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
  // Events after `seq`, in order, at most `limit`; fewer: there are no more. Old ones that a
  // snapshot covers may be gone: then from the oldest that is kept.
  virtual Result<std::vector<StoredEvent>> load_events(std::uint64_t after_seq,
                                                       std::size_t limit) = 0;

  // Nothing of these is kept before commit() has returned. The next commit has all of them or none.
  // Numbers go up by one, from 1.
  virtual void append(StoredEvent event) = 0;
  // Of the last event appended or an earlier one; 0: of none.
  virtual void put_snapshot(Snapshot snapshot) = 0;
  // Contents that events speak of by their hash (base::content_hash): environments, scripts, long
  // commands. Put again: nothing. Kept like an event: by the next commit.
  virtual void put_blob(std::string hash, std::string data) = 0;
  // not_found: no such content. corrupt: it is not what was put.
  virtual Result<std::string> load_blob(const std::string& hash) = 0;
  // With the next snapshot all others are let go of, but for those that the same commit puts.
  virtual void keep_blobs(std::vector<std::string> hashes) = 0;
  // One sync for everything since the last one. exhausted: the disk is full, nothing of it is kept
  // and all of it stays queued for the next try; io, corrupt: do not go on, whether it was kept is
  // not known. A snapshot that finds no room where the events alone do is dropped, without an
  // error: it is only a shortcut, and the next one does its work.
  virtual Result<void> commit() = 0;

  // What was queued since the last commit is let go of, as if it had never been said.
  virtual void withdraw() = 0;
  // Whether there is room for a commit of so many bytes beside what is set aside. Asked before work
  // is taken in, so that it is refused rather than tried; true says nothing about the commit.
  virtual bool has_room(std::uint64_t bytes) {
    (void)bytes;
    return true;
  }

  // Room set aside for the day the disk is full. After `exhausted`: free it and commit again, then
  // take nothing new in, so that it lasts for the ends of what runs. True: there was some.
  virtual bool free_ballast() { return false; }
  // Asked from time to time. True: it is there again, so the disk has room and all may go on.
  virtual bool restore_ballast() { return true; }
};

}  // namespace mete::seam
