// SPDX-License-Identifier: Apache-2.0
// Taking from the grant and giving back: what every hook does around its driver call. Quantities in
// units.
#pragma once

#include <cstdint>

#include "meter/state.h"

namespace mete::meter {

// Reserves `units` on a card before the driver is asked. When they do not fit, tries what can make
// room (the dead of the job, this process's idle pool and graph memory, a neighbour's reservation
// about to be settled: 10 ms at most; if `may_grow`, asking the runner: 2 s at most), then refuses.
// The reservation counts as unsettled until settle(). A caller that has something of the driver's
// already must not let it grow: it could be parked with that in hand.
bool take(int card, uint64_t units, bool may_grow = true);

// The same without trying: for a caller that has something else to fall back on.
bool take_if_free(int card, uint64_t units);

// The driver call of a reservation has returned: `used` of the `reserved` units were really taken
// (0 on failure, maybe more than reserved when the driver surprised us).
void settle(int card, uint64_t reserved, uint64_t used);

// Gives back what the dead of the job held, if anybody else holds anything. Bounded to a small part
// of the time, however often it is called.
void notice_deaths(int card);

// Charges what the driver has already taken, and gives back what it has returned.
void charge_anyway(int card, uint64_t units);
void release(int card, uint64_t units);

// Bytes of this process's account: the limit as it stands (shown_bytes() in grow.h is what the
// program is told), and how much of it is charged (excess included).
uint64_t limit_bytes(int card);
uint64_t charged_bytes(int card);

// The driver says "out of memory" although the cap had room. True if a process of this job died
// within the last second: its memory may be on its way back, and the driver deserves another try.
// Sleeps a millisecond; `tries` counts up to 200 ms. False: the refusal stands, and is counted.
bool worth_another_try(int* tries);

// Sleeps 50 µs; keeps errno. For short waits on another thread.
void pause_briefly();

// Charged, but not part of NVML's figure for this process.
void note_unseen(int card, int64_t units);

}  // namespace mete::meter
