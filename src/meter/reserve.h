// SPDX-License-Identifier: Apache-2.0
// The reserve of this process on a card, from the first context there to the end of the last. The
// sampler may give back what the driver has not taken of it (abi/reserve.h); what relies on all of
// it, or makes the books say more than the card holds, keeps it first.
#pragma once

#include <cstdint>

#include "meter/state.h"

namespace mete::meter {

inline constexpr uint64_t kReserveUnits = abi::units_for(abi::kReserveBytes);

// Under the lock: all of it has just been charged.
void begin_reserve(int card);
// Under the lock: it is over. Returns what of it is still charged, for the caller to give back.
uint64_t end_reserve(int card);

// From here on nothing of it is lent; what is charged for memory that the card holds later, or no
// longer, would pass for room.
void close_reserve(int card);
// The same, and what was lent is taken back. False: there is no room for that.
bool keep_reserve(int card);

}  // namespace mete::meter
