// SPDX-License-Identifier: Apache-2.0
// Whether a card has room for a need now, and if not, what is in the way. Internal to core/place;
// no allocation, since it runs for every card in every decision.
#pragma once

#include "core/place/need.h"

namespace mete::core {

struct Room {
  InTheWay what = InTheWay::kNothing;
  Bytes bytes;    // what would be granted; zero when something is in the way
  Bytes free;     // available to shares now
  Bytes missing;  // others would have to give up this much; zero: there is room
};

// The use of a card, added up. Sums saturate at 2^64 - 1.
struct Used {
  Bytes granted;
  Bytes claimed;
  Bytes kept;
  Bytes foreign;
  Bytes mover;             // of a mover that starts with the first parkable job
  bool whole = false;      // one of our jobs has the card for itself
  bool occupied = false;   // there is a grant that is not parked, a claim or a promise
  Bytes promised() const;  // granted, claimed and kept
  Bytes all() const;
};
Used used_on(const PoolCard& card);

// What a mover will take that does not run yet, once a parkable job comes.
Bytes mover_missing(const PoolCard& card);

// Whether memory that is kept for jobs ahead in the queue counts.
enum class Kept { kCounts, kIgnored };
Room room_on(const PoolCard& card, const Need& need, Kept kept = Kept::kCounts);

}  // namespace mete::core
