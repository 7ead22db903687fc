// SPDX-License-Identifier: Apache-2.0
// The park thread of a process. It sleeps on the job's order in the grant file, closes the gate,
// waits for the card to come to rest, gives the chunks to the movers and takes them back
// (abi/park.h).
#pragma once

#include "abi/park.h"

namespace mete::meter {

// Whether this process uses the gate: its launcher has set METE_PARKABLE=1. Read when the driver is
// loaded, before there is a grant.
bool gates_wanted();

// Called with the slot of this process: starts its park thread, with the gate closed if the job is
// being parked. After this its memory is in chunks.
void listen_for_orders();

// Starts a thread of the meter, which blocks all signals.
bool start_thread(void* (*main)(void*));

// Counts one obstacle more, or less, to parking this process.
void note_obstacle(abi::ParkReason reason, int change);

}  // namespace mete::meter
