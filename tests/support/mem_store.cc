// SPDX-License-Identifier: Apache-2.0
// See mem_store.h.
#include "tests/support/mem_store.h"

#include <iterator>
#include <utility>

#include "base/assert.h"

namespace mete::tests {

Result<std::optional<seam::Snapshot>> MemStore::load_snapshot() { return snapshot_; }

Result<std::vector<seam::StoredEvent>> MemStore::load_events(std::uint64_t after_seq,
                                                             std::size_t limit) {
  std::vector<seam::StoredEvent> found;
  for (std::size_t i = after_seq; i < events_.size() && found.size() < limit; ++i)
    found.push_back(events_[i]);  // event n is at n-1
  return found;
}

void MemStore::append(seam::StoredEvent event) {
  METE_ASSERT(event.seq == events_.size() + queued_.size() + 1);
  queued_.push_back(std::move(event));
}

void MemStore::put_snapshot(seam::Snapshot snapshot) {
  METE_ASSERT(snapshot.seq <= events_.size() + queued_.size());
  queued_snapshot_ = std::move(snapshot);
}

Result<void> MemStore::commit() {
  if (queued_.empty() && !queued_snapshot_) return {};
  std::move(queued_.begin(), queued_.end(), std::back_inserter(events_));
  queued_.clear();
  if (queued_snapshot_) snapshot_ = std::exchange(queued_snapshot_, std::nullopt);
  ++commits_;
  return {};
}

void MemStore::forget_uncommitted() {
  queued_.clear();
  queued_snapshot_.reset();
}

void FaultyStore::fail_commit(std::size_t nth, Error error, Left left) {
  METE_ASSERT(nth >= 1);
  METE_ASSERT(error.code != ErrorCode::kExhausted || left == Left::kNothing);
  fault_ = Fault{nth, std::move(error), left};
}

void FaultyStore::set_full(std::size_t ballast_commits) {
  full_ = true;
  ballast_commits_ = ballast_commits;
}

void FaultyStore::set_room() { full_ = false; }

void FaultyStore::crash() {
  forget_uncommitted();
  broken_.reset();
}

Result<void> FaultyStore::commit() {
  if (broken_) return *broken_;
  if (fault_ && --fault_->nth == 0) {
    Fault fault = *std::exchange(fault_, std::nullopt);
    if (fault.left == Left::kAll) (void)MemStore::commit();
    if (fault.error.code != ErrorCode::kExhausted) broken_ = fault.error;
    return std::move(fault.error);
  }
  if (full_) {
    if (ballast_ || ballast_commits_ == 0) return Error::exhausted("the disk is full");
    --ballast_commits_;
  }
  return MemStore::commit();
}

bool FaultyStore::free_ballast() { return std::exchange(ballast_, false); }

bool FaultyStore::restore_ballast() {
  if (!full_) ballast_ = true;
  return ballast_;
}

}  // namespace mete::tests
