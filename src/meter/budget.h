// SPDX-License-Identifier: Apache-2.0
// Reserving from the grant and giving back: what every hook does around its driver call. Quantities
// are in units.
#pragma once

#include <cstdint>

#include "meter/state.h"

namespace mete::meter {

// Reserves `units` on a card before the driver is called. If they do not fit, tries to make room
// (dead processes of the job; idle pool and graph memory of this process; reservations of other
// processes that are about to be settled: 10 ms at most; if `may_grow`, asking the runner: 2 s at
// most), then refuses. The reservation counts as unsettled until settle(). A caller that already
// holds something of the driver must not pass `may_grow`: the process could be parked meanwhile.
bool take(int card, uint64_t units, bool may_grow = true);

// take() without making room: for a caller that has an alternative.
bool take_if_free(int card, uint64_t units);

// The driver call of a reservation has returned: it took `used` of the `reserved` units (0 on
// failure, possibly more than reserved).
void settle(int card, uint64_t reserved, uint64_t used);

// Gives back the charges of dead processes of the job, unless this process holds everything. Takes
// at most 5 % of the time, however often it is called.
void notice_deaths(int card);

// Charges what the driver has already taken; gives back what the driver has returned.
void charge_anyway(int card, uint64_t units);
void release(int card, uint64_t units);

// Bytes of this process's account: the current limit (shown_bytes() in grow.h is the size that the
// program sees), and how much of it is charged (excess included).
uint64_t limit_bytes(int card);
uint64_t charged_bytes(int card);

// For a driver that reports "out of memory" although the grant had room. True if a process of this
// job died within the last second: the driver may still be freeing its memory, so the call is worth
// a retry. Sleeps a millisecond; `tries` counts up to 200 ms. False: the refusal stands, and is
// counted.
bool worth_another_try(int* tries);

// Sleeps 50 µs; keeps errno. For short waits on another thread.
void pause_briefly();

// Adds to the units that are charged but not part of NVML's figure for this process.
void note_unseen(int card, int64_t units);

}  // namespace mete::meter
