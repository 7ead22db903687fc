// SPDX-License-Identifier: Apache-2.0
// See mem_store.h.
#include "tests/support/mem_store.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/assert.h"

namespace mete::tests {

Result<std::optional<seam::Snapshot>> MemStore::load_snapshot() {
  ++loads_;
  return snapshot_;
}

Result<std::vector<seam::StoredEvent>> MemStore::load_events(std::uint64_t after_seq,
                                                             std::size_t limit) {
  std::vector<seam::StoredEvent> found;
  const std::size_t first = after_seq > gone_ ? after_seq - gone_ : 0;
  for (std::size_t i = first; i < events_.size() && found.size() < limit; ++i)
    found.push_back(events_[i]);
  return found;
}

void MemStore::append(seam::StoredEvent event) {
  METE_ASSERT(event.seq == last_committed() + queued_.size() + 1);
  queued_.push_back(std::move(event));
}

void MemStore::put_snapshot(seam::Snapshot snapshot) {
  METE_ASSERT(snapshot.seq <= last_committed() + queued_.size());
  queued_snapshot_ = std::move(snapshot);
}

void MemStore::put_blob(std::string hash, std::string data) {
  queued_blobs_.emplace(std::move(hash), std::move(data));
}

Result<std::string> MemStore::load_blob(const std::string& hash) {
  const auto found = blobs_.find(hash);
  if (found == blobs_.end()) return Error::not_found("there is no content " + hash);
  return found->second;
}

void MemStore::keep_blobs(std::vector<std::string> hashes) {
  kept_blobs_.emplace(hashes.begin(), hashes.end());
}

Result<void> MemStore::commit() {
  if (queued_.empty() && !queued_snapshot_ && queued_blobs_.empty()) return {};
  std::move(queued_.begin(), queued_.end(), std::back_inserter(events_));
  queued_.clear();
  if (queued_snapshot_) {
    snapshot_ = std::exchange(queued_snapshot_, std::nullopt);
    if (kept_blobs_)
      std::erase_if(blobs_,
                    [this](const auto& blob) { return !kept_blobs_->contains(blob.first); });
    kept_blobs_.reset();
  }
  blobs_.merge(queued_blobs_);
  queued_blobs_.clear();
  ++commits_;
  return {};
}

void MemStore::forget_uncommitted() {
  queued_.clear();
  queued_snapshot_.reset();
  queued_blobs_.clear();
  kept_blobs_.reset();
}

void MemStore::lose_after(std::uint64_t seq) {
  if (snapshot_) seq = std::max(seq, snapshot_->seq);
  while (!events_.empty() && events_.back().seq > seq) events_.pop_back();
}

void MemStore::let_go(std::size_t kept) {
  if (!snapshot_ || snapshot_->seq <= gone_) return;
  const std::size_t covered = snapshot_->seq - gone_;
  const std::size_t old = std::min(covered, events_.size() - std::min(kept, events_.size()));
  events_.erase(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(old));
  gone_ += old;
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
