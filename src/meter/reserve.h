// SPDX-License-Identifier: Apache-2.0
// The reserve of this process on a card, from its first context there to the end of its last. The
// sampler may give back the part that the driver has not taken (abi/reserve.h). Code that relies on
// all of it, or that charges more than the card holds, keeps it first.
#pragma once

#include <cstdint>

#include "meter/state.h"

namespace mete::meter {

inline constexpr uint64_t kReserveUnits = abi::units_for(abi::kReserveBytes);

// Under the lock: the whole reserve has just been charged.
void begin_reserve(int card);
// Under the lock: ends the reserve. Returns the part that is still charged, for the caller to give
// back.
uint64_t end_reserve(int card);

// From here on nothing of the reserve is lent. A charge for memory that the card holds only later,
// or no longer, would pass for room.
void close_reserve(int card);
// Closes the reserve and takes back what was lent. False: there is no room for that.
bool keep_reserve(int card);

}  // namespace mete::meter
