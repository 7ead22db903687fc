// SPDX-License-Identifier: Apache-2.0
// See claims_keeper.h. promised_ holds what our jobs have, and hold_all() publishes it. reserve()
// publishes what a job gets beyond that as an attempt (trying_) and asks the book for a verdict;
// conclude() acts on the verdict: ours, taken, or ask again after a pause. One attempt at a time;
// settled_ tells the engine when the next one may be made.
#include "daemon/claims_keeper.h"

#include <unistd.h>

namespace mete::daemon {

using node::ClaimBook;
using node::Verdict;

namespace {

// What `wanted` has on each card in addition to `had`.
std::vector<core::GrantedCard> beyond(const std::vector<core::GrantedCard>& had,
                                      const std::vector<core::GrantedCard>& wanted) {
  std::vector<core::GrantedCard> more;
  for (core::GrantedCard card : wanted) {
    bool has_whole = false;
    for (const core::GrantedCard& before : had) {
      if (before.uuid != card.uuid) continue;
      card.bytes = card.bytes.minus(before.bytes);
      has_whole = before.whole;
    }
    if (!card.bytes.is_zero() || (card.whole && !has_whole)) more.push_back(std::move(card));
  }
  return more;
}

}  // namespace

std::vector<node::Claim> ClaimsKeeper::claims_of(core::JobId job, const Promise& promise) const {
  std::vector<node::Claim> claims;
  for (const core::GrantedCard& card : promise.cards)
    claims.push_back({card.uuid, card.bytes, card.whole, true, promise.runner, to_string(job)});
  return claims;
}

void ClaimsKeeper::see(const core::Pool& machine) {
  room_.clear();
  for (const core::PoolCard& card : machine.cards) {
    Bytes room = card.card.capacity;
    for (const core::Outside& foreign : card.foreign) room = room.minus(foreign.bytes);
    room_.push_back({card.card.uuid, room});
  }
}

std::vector<node::OtherClaim> ClaimsKeeper::others() {
  if (!book_) return {};
  (void)book_->refresh();
  Result<std::vector<node::OtherClaim>> others = book_->others();
  // An error passes: another daemon's file cannot be read at the moment, and its last claims still
  // hold.
  if (others) last_others_ = *std::move(others);
  return last_others_;
}

bool ClaimsKeeper::reserve(core::JobId job, const std::vector<core::GrantedCard>& cards,
                           std::optional<core::ProcessRef> runner) {
  Promise promise{cards, runner};
  if (!book_ || cards.empty()) return true;
  if (!begun_) {
    promised_[job] = std::move(promise);
    return true;
  }
  Promise more = promise;  // what the job gets beyond its promise: it was parked, or has grown
  if (const auto had = promised_.find(job); had != promised_.end()) {
    if (had->second.cards == cards) return true;
    more.cards = beyond(had->second.cards, cards);
    if (more.cards.empty()) {
      had->second = std::move(promise);
      hold_all();
      return true;
    }
  }
  if (trying_) return false;  // one attempt at a time; its end calls settled_
  trying_.emplace(job, std::move(promise));
  asks_ = 0;
  return conclude(book_->try_for(claims_of(job, more), room_));
}

bool ClaimsKeeper::conclude(const Result<Verdict>& verdict) {
  if (!verdict) {  // our claim cannot be published, or another cannot be read: never guess
    trouble_ = verdict.error().message;
    (void)book_->give_up();
    trying_.reset();
    ask_later(1'000, false);
    return false;
  }
  trouble_.clear();
  switch (*verdict) {
    case Verdict::kMine: {
      const bool had = promised_.contains(trying_->first);
      promised_[trying_->first] = trying_->second;
      trying_.reset();
      if (had) hold_all();  // replaces the old promise and the addition
      return true;
    }
    case Verdict::kTaken:
      trying_.reset();
      return false;
    case Verdict::kLater:
      trying_.reset();
      ask_later(ClaimBook::kLaterMs, false);
      return false;
    case Verdict::kAskAgain:
      if (++asks_ > ClaimBook::kMaxAsks) {
        (void)book_->give_up();
        trying_.reset();
        ask_later(ClaimBook::kLaterMs, false);
      } else {
        ask_later(ClaimBook::kAskAgainMs, true);
      }
      return false;
  }
  return false;
}

void ClaimsKeeper::ask_later(int delay_ms, bool ask_again) {
  loop_.after(seam::Milliseconds(delay_ms), [this, ask_again] {
    if (ask_again && trying_) (void)conclude(book_->ask_again());
    if (!trying_) settled_();
  });
}

void ClaimsKeeper::release(core::JobId job) {
  if (promised_.erase(job) == 0 || !book_ || !begun_) return;
  // hold_all() withdraws the attempt under way: the engine asks again when settled_ is called.
  const bool was_trying = trying_.has_value();
  trying_.reset();
  hold_all();
  if (was_trying) ask_later(ClaimBook::kAskAgainMs, false);
}

void ClaimsKeeper::runs(core::JobId job, core::ProcessRef runner) {
  const auto found = promised_.find(job);
  if (found == promised_.end() || found->second.runner == runner) return;
  found->second.runner = runner;
  if (!found->second.cards.empty()) hold_all();
}

void ClaimsKeeper::keep_only(const std::function<bool(core::JobId)>& wanted) {
  std::vector<core::JobId> old;
  for (const auto& [job, promise] : promised_)
    if (!wanted(job)) old.push_back(job);
  for (const core::JobId job : old) release(job);
}

void ClaimsKeeper::begin() {
  begun_ = true;
  hold_all();
}

// Errors leave the file as it was: other daemons then see too much claimed, never too little.
void ClaimsKeeper::hold_all() {
  if (!book_) return;
  std::vector<node::Claim> all;
  for (const auto& [id, promise] : promised_)
    for (node::Claim& claim : claims_of(id, promise)) all.push_back(std::move(claim));
  (void)book_->hold(std::move(all));
}

}  // namespace mete::daemon
