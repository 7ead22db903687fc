// SPDX-License-Identifier: Apache-2.0
// The reserve of a process: charged with its first context on a card, for what the driver takes
// unasked. Once the readings show that the driver has not taken it, the sampler gives back the part
// that is not needed, while the process runs and without its help (docs/adr/0020-lent-reserves.md).
//
// The word says how much of the reserve is still charged, while it may be lent. The owner opens and
// closes it, and gives back what was left; the sampler takes from it:
//   1. units out of the word: from here on no other process gives these back
//   2. these units out of the charge, if the slot still has this owner
// A sampler that stands between the two steps may do the second at any time, whatever the owner has
// done meanwhile. A sampler that is killed there leaves its units charged until the owner ends: too
// much, never too little.
#pragma once

#include <cstdint>

#include "abi/account.h"
#include "abi/grant.h"

namespace mete::abi {

inline uint64_t pending_units(const SlotCard& card) {
  return PendingWord::unpack(card.pending.load()).units;
}

// How much of an open reserve was given back.
inline uint64_t lent_units(const SlotCard& card) {
  constexpr uint64_t kAll = units_for(kReserveBytes);
  const PendingWord word = PendingWord::unpack(card.pending.load());
  return word.open && word.left < kAll ? kAll - word.left : 0;
}

// By the owner: `units` are charged, and may be lent from here on.
inline void open_reserve(SlotCard& card, uint64_t units) {
  uint64_t raw = card.pending.load();
  PendingWord word{};
  do {
    word = PendingWord::unpack(raw);
    word.open = true;
    word.left = static_cast<uint32_t>(units);
  } while (!card.pending.compare_exchange_weak(raw, word.pack()));
}

// By the owner: from here on nothing more is lent. Returns what was left, which the owner gives
// back.
inline uint64_t close_reserve(SlotCard& card) {
  uint64_t raw = card.pending.load();
  for (;;) {
    const PendingWord word = PendingWord::unpack(raw);
    if (card.pending.compare_exchange_weak(raw, PendingWord{false, 0, word.units}.pack()))
      return word.left;
  }
}

// By the sampler: takes `units` of the reserve of a living process out of its charge. False: the
// process has closed the reserve, or has less than that left, or has a call inside the driver. The
// owner is checked as in lower_for_dead().
inline bool lend_reserve(Actor by, uint32_t slot, uint64_t owner, AccountId id, uint64_t units) {
  Slot& target = by.grant.slots[slot];
  Word& pending = target.cards[id.card].pending;
  uint64_t raw = pending.load();
  PendingWord word{};
  do {
    word = PendingWord::unpack(raw);
    if (!word.open || word.units != 0 || word.left < units) return false;
    word.left -= static_cast<uint32_t>(units);
  } while (!pending.compare_exchange_weak(raw, word.pack()));
  return change(by, slot, id,
                [&](uint64_t, uint64_t charge) {
                  const bool still = target.owner.load() == owner;
                  return Decision{still && charge >= units, charge - units};
                })
      .go;
}

}  // namespace mete::abi
