// SPDX-License-Identifier: Apache-2.0
// See engine.h: commits, and what becomes of a turn that finds no room. Inputs that can wait are
// refused, so that the room that was set aside is there for ends and cancels.
#include <algorithm>
#include <type_traits>
#include <utility>

#include "engine/engine.h"

namespace mete::engine {

namespace {

// The approximate size of one more event of any kind.
constexpr std::uint64_t kEventBytes = 1 << 10;
// After a withdrawn turn no other turn is tried in vain for a while: each loads the state, which
// takes seconds with many jobs. It may take a twentieth of the time.
constexpr seam::Milliseconds kFullPause{1'000};
constexpr int kPausePerWithdrawal = 20;

}  // namespace

bool can_wait(const core::Input& input) {
  return std::visit(
      [](const auto& in) {
        using In = std::decay_t<decltype(in)>;
        return std::is_same_v<In, core::Submit> || std::is_same_v<In, core::Requeue> ||
               std::is_same_v<In, core::Hold> || std::is_same_v<In, core::Release> ||
               std::is_same_v<In, core::SetPriority> || std::is_same_v<In, core::Drain> ||
               std::is_same_v<In, core::SetQuota> || std::is_same_v<In, core::Reserve> ||
               std::is_same_v<In, core::Unreserve> || std::is_same_v<In, core::Foretold> ||
               std::is_same_v<In, core::ParkJob> || std::is_same_v<In, core::UnparkJob> ||
               std::is_same_v<In, core::StartSweep> || std::is_same_v<In, core::ChangeSweep> ||
               std::is_same_v<In, core::TrialReport>;
      },
      input);
}

bool Engine::has_room_for(const Asked& asked) {
  if (full_) return false;
  std::uint64_t bytes = kEventBytes;
  for (const auto& [hash, data] : asked.blobs)
    if (!blobs_.contains(hash)) bytes += data.size();
  short_ = !store_.has_room(batch_bytes_ + bytes);
  if (short_) return false;
  batch_bytes_ += bytes;
  return true;
}

// Without room beside the ballast the next grant would find the disk full once more.
bool Engine::has_room_again() {
  return clock_.monotonic() >= full_until_ && store_.restore_ballast() &&
         store_.has_room(kEventBytes);
}

bool Engine::has_room_to_grant() {
  if (full_) return false;
  short_ = !store_.has_room(batch_bytes_ + kEventBytes);
  return !short_;
}

Result<void> Engine::commit_store() {
  const seam::Nanoseconds begun = clock_.monotonic();
  Result<void> done = store_.commit();
  health_.commits.add(clock_.monotonic() - begun);
  return done;
}

Result<Engine::Kept> Engine::commit() {
  if (!uncommitted_) return Kept::kAll;
  // The cost of a snapshot grows with the number of jobs and of trials.
  if (since_snapshot_ >= options_.snapshot_every &&
      since_snapshot_ >= state_.jobs().size() + state_.sweeps().trials())
    put_snapshot();
  Result<void> done = commit_store();
  if (!done && done.error().code == ErrorCode::kExhausted) {
    if (!std::exchange(full_, true)) return Kept::kNoRoom;
    // The ballast is for this: ends are still recorded.
    if (store_.free_ballast()) {
      full_until_ = {};  // the return of the ballast is enough
      done = commit_store();
    }
    if (!done && done.error().code == ErrorCode::kExhausted) return Kept::kQueued;
  }
  if (!done) return std::move(done).error();
  uncommitted_ = false;
  if (full_ && has_room_again()) full_ = false;
  return Kept::kAll;
}

// This turn's events found no room: the engine returns to the state before it, as after a kill and
// a restart. What other daemons were told of it is taken back.
Result<void> Engine::withdraw() {
  const seam::Nanoseconds begun = clock_.monotonic();
  const std::set<core::JobId> touched = std::exchange(touched_, {});
  store_.withdraw();
  uncommitted_ = false;
  unsaid_.clear();
  fresh_.clear();
  over_.clear();
  sight_.reset();
  if (Result<void> r = load(); !r) return r;
  for (const core::JobId id : touched) {
    const core::Job* job = state_.find(id);
    if (job != nullptr && state_.active().contains(id)) {
      (void)launcher_.reserve(id, core::held_now(*job));
      continue;
    }
    launcher_.forget(id);
    if (job != nullptr) touched_.insert(id);  // act() watches the runner of a waiting run again
  }
  const seam::Nanoseconds now = clock_.monotonic();
  full_until_ = now + std::max<seam::Nanoseconds>(kFullPause, kPausePerWithdrawal * (now - begun));
  grants_due_ = true;
  ++version_;
  return {};
}

}  // namespace mete::engine
