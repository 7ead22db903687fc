// SPDX-License-Identifier: Apache-2.0
// Whether a card has room for a need now, and if not, what is in the way. Inside of core/place; no
// allocation, since this is asked for every card and every decision.
#pragma once

#include "core/place/need.h"

namespace mete::core {

struct Room {
  InTheWay what = InTheWay::kNothing;
  Bytes bytes;    // what would be granted; zero when something is in the way
  Bytes free;     // what could be granted to shares now
  Bytes missing;  // how much would have to be given up by others; zero when there is room
};

// Who is on a card, added up. Sums stop at 2^64 - 1, as does a card that was never read right.
struct Used {
  Bytes granted;
  Bytes claimed;
  Bytes kept;
  Bytes foreign;
  Bytes mover;             // that will be started beside a job that can be parked
  bool whole = false;      // one of ours has it for himself
  bool occupied = false;   // somebody who is not parked has a grant, a claim or a promise
  Bytes promised() const;  // granted, claimed and kept
  Bytes all() const;
};
Used used_on(const PoolCard& card);

// What a mover will take that is not there yet, once a job comes that can be parked.
Bytes mover_missing(const PoolCard& card);

// Whether what is kept for jobs ahead in line counts.
enum class Kept { kCounts, kIgnored };
Room room_on(const PoolCard& card, const Need& need, Kept kept = Kept::kCounts);

}  // namespace mete::core
