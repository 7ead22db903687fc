// SPDX-License-Identifier: Apache-2.0
// See reserve.h.
#include "meter/reserve.h"

#include "abi/reserve.h"
#include "meter/budget.h"

namespace mete::meter {
namespace {

abi::SlotCard& words_of(int card) { return process.grant->slots[my_slot()].cards[card]; }

// Under the lock.
void close_locked(int card) {
  CardState& state = process.cards[card];
  if (!state.lendable) return;
  state.lendable = false;
  state.reserve_left = abi::close_reserve(words_of(card));
  if (state.reserve_left == kReserveUnits) state.keeps_reserve.store(true);
}

}  // namespace

void begin_reserve(int card) {
  CardState& state = process.cards[card];
  state.reserved = true;
  state.lendable = true;
  abi::open_reserve(words_of(card), kReserveUnits);
}

uint64_t end_reserve(int card) {
  CardState& state = process.cards[card];
  close_locked(card);
  state.reserved = false;
  state.keeps_reserve.store(false);
  return state.reserve_left;
}

void close_reserve(int card) {
  if (process.cards[card].keeps_reserve.load(std::memory_order_relaxed)) return;
  Locked locked(process.lock);
  close_locked(card);
}

bool keep_reserve(int card) {
  CardState& state = process.cards[card];
  if (state.keeps_reserve.load(std::memory_order_relaxed)) return true;
  uint64_t missing = 0;
  {
    Locked locked(process.lock);
    if (!state.reserved) return true;
    close_locked(card);
    missing = kReserveUnits - state.reserve_left;
  }
  if (missing == 0) return true;
  if (!take_if_free(card, missing)) return false;
  uint64_t used = 0;
  {
    // Another thread may have taken it back meanwhile, or ended the context.
    Locked locked(process.lock);
    if (state.reserved && !state.lendable && state.reserve_left + missing == kReserveUnits) {
      used = missing;
      state.reserve_left = kReserveUnits;
      state.keeps_reserve.store(true);
    }
  }
  settle(card, missing, used);
  return true;
}

}  // namespace mete::meter
