// SPDX-License-Identifier: Apache-2.0
// Stores without a disk. MemStore keeps what was committed and forgets the rest when its process
// "dies"; FaultyStore is one whose commits fail on demand. Both keep the contract of seam/store.h
// (src/store/contract_test.cc runs it on them and on the real one).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "seam/store.h"

namespace mete::tests {

class MemStore : public seam::Store {
 public:
  Result<std::optional<seam::Snapshot>> load_snapshot() override;
  Result<std::vector<seam::StoredEvent>> load_events(std::uint64_t after_seq,
                                                     std::size_t limit) override;
  void append(seam::StoredEvent event) override;
  void put_snapshot(seam::Snapshot snapshot) override;
  void put_blob(std::string hash, std::string data) override;
  Result<std::string> load_blob(const std::string& hash) override;
  void keep_blobs(std::vector<std::string> hashes) override;
  Result<void> commit() override;
  void withdraw() override { forget_uncommitted(); }

  // The process died: uncommitted events are gone, committed ones are still there.
  void forget_uncommitted();

  // The disk was wrong when it reported these as stored.
  void lose_after(std::uint64_t seq);

  // Drops events that the snapshot covers, except the last `kept`.
  void let_go(std::size_t kept);

  // The events that were not dropped.
  const std::vector<seam::StoredEvent>& committed() const { return events_; }
  std::uint64_t last_committed() const { return gone_ + events_.size(); }
  const std::map<std::string, std::string>& blobs() const { return blobs_; }
  const std::optional<seam::Snapshot>& snapshot() const { return snapshot_; }
  std::size_t queued() const { return queued_.size(); }
  // Commits that stored anything.
  std::size_t commits() const { return commits_; }
  // How often everything was loaded.
  std::size_t loads() const { return loads_; }

 private:
  std::uint64_t gone_ = 0;  // the number of events before the kept ones
  std::vector<seam::StoredEvent> events_, queued_;
  std::optional<seam::Snapshot> snapshot_, queued_snapshot_;
  std::map<std::string, std::string> blobs_, queued_blobs_;
  std::optional<std::set<std::string>> kept_blobs_;  // with the next snapshot
  std::size_t commits_ = 0;
  std::size_t loads_ = 0;
};

class FaultyStore : public MemStore {
 public:
  // What a failed commit has left on the disk. After an I/O error both are possible; exhausted:
  // nothing.
  enum class Left { kNothing, kAll };

  // The nth commit from now on (1: the next) fails, once.
  void fail_commit(std::size_t nth, Error error, Left left = Left::kNothing);
  // From now on every commit is `exhausted`. Once the ballast is freed there is room for
  // `ballast_commits` more.
  void set_full(std::size_t ballast_commits = 1000);
  void set_room();
  // There is no room for new work, which the store reports before it is tried.
  void set_short(bool is) { short_ = is; }
  bool has_ballast() const { return ballast_; }
  // The process died and was started again: unsynced data is gone, and so is the error.
  void crash();

  Result<void> commit() override;
  bool has_room(std::uint64_t /*bytes*/) override { return !short_; }
  bool free_ballast() override;
  bool restore_ballast() override;

 private:
  struct Fault {
    std::size_t nth = 0;
    Error error;
    Left left = Left::kNothing;
  };
  std::optional<Fault> fault_;
  std::optional<Error> broken_;  // after io and corrupt nothing more is stored, as in the real one
  bool full_ = false;
  bool short_ = false;
  bool ballast_ = true;
  std::size_t ballast_commits_ = 0;
};

}  // namespace mete::tests
