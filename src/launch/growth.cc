// SPDX-License-Identifier: Apache-2.0
// See growth.h.
#include "launch/growth.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "abi/account.h"
#include "abi/process.h"
#include "base/assert.h"

namespace mete::launch {

namespace {

abi::AccountId account_of(std::uint32_t card) { return {0, card}; }

// The job's own user can write the file: clamp its values.
Bytes sane(std::uint64_t bytes) {
  return Bytes::from_bytes(std::min(bytes, abi::kMaxUnits * abi::kUnitBytes));
}

}  // namespace

Growth::Growth(abi::Grant& grant)
    : grant_(grant),
      owner_(abi::owner_of(grant, abi::read_self())),
      slot_(abi::claim_slot(grant, abi::read_self(), 0, nullptr, abi::SlotRole::kHelper)) {
  METE_ASSERT((grant.header.features & abi::kGrowing) != 0);
  grant_.header.grower.store(owner_);
}

Growth::~Growth() {
  if (abi::OwnerWord::unpack(owner_).pid != static_cast<std::uint32_t>(getpid())) return;
  std::uint64_t me = owner_;
  (void)grant_.header.grower.compare_exchange_strong(me, 0);
  if (slot_ >= 0) (void)grant_.slots[slot_].owner.compare_exchange_strong(me = owner_, 0);
}

std::optional<Growth::Ask> Growth::asked() {
  for (std::uint32_t c = 0; c < std::min(grant_.header.card_count, abi::kMaxCards); ++c) {
    abi::GrantCard& card = grant_.header.cards[c];
    Open& open = open_[c];
    const std::uint64_t number = card.asks.load();
    if (number == open.number || open.wanted != 0) continue;
    open.number = number;
    // A wish is written before its ask is counted: it is in here, or was taken with an earlier ask.
    open.wanted = std::min(card.wanted_bytes.exchange(0), card.ceiling_bytes);
    if (open.wanted != 0) return Ask{c, sane(open.wanted)};
    answer(c);
  }
  return std::nullopt;
}

void Growth::answer(std::uint32_t card) {
  abi::GrantCard& words = grant_.header.cards[card];
  if (open_[card].wanted != 0) words.answered_bytes.store(open_[card].wanted);
  open_[card].wanted = 0;
  words.answers.store(open_[card].number);
  syscall(SYS_futex, &words.answers, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

Bytes Growth::allow(std::uint32_t card, Bytes limit) {
  const abi::GrantCard& words = grant_.header.cards[card];
  const std::uint64_t wish =
      std::max(std::min(limit.count(), words.ceiling_bytes), words.guarantee_bytes);
  const std::uint64_t before = abi::account(grant_, account_of(card)).limit_bytes.load();
  // Without a slot a limit cannot be lowered exactly, so it is not lowered.
  if (wish == before || (slot_ < 0 && wish < before)) return allowed(card);
  if (slot_ < 0) {
    abi::account(grant_, account_of(card)).limit_bytes.store(wish);
  } else {
    (void)abi::set_limit({grant_, static_cast<std::uint32_t>(slot_)}, account_of(card), wish);
  }
  if (wish > before && open_[card].wanted != 0) answer(card);
  return allowed(card);
}

Bytes Growth::used(std::uint32_t card) const {
  return Bytes::from_bytes(abi::used_bytes(abi::account(grant_, account_of(card))));
}

Bytes Growth::allowed(std::uint32_t card) const {
  return std::max(used(card), sane(abi::account(grant_, account_of(card)).limit_bytes.load()));
}

}  // namespace mete::launch
