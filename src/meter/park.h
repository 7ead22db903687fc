// SPDX-License-Identifier: Apache-2.0
// The park thread of a process: asleep on the job's order in the grant file, it closes the gate,
// lets the card come to rest, gives the chunks to the movers and takes them back (abi/park.h).
#pragma once

#include "abi/park.h"

namespace mete::meter {

// Whether this process goes through the gate: its launcher said METE_PARKABLE=1. Asked when the
// driver is loaded, before there is a grant.
bool gates_wanted();

// With the slot of this process: starts its thread, and begins with the gate closed if the job is
// being parked. After this its memory is in chunks.
void listen_for_orders();

// A thread of ours, which takes none of the program's signals.
bool start_thread(void* (*main)(void*));

// Something more, or less, stands in the way of parking this process.
void note_obstacle(abi::ParkReason reason, int change);

}  // namespace mete::meter
