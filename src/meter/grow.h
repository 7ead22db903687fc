// SPDX-License-Identifier: Apache-2.0
// A grant that may grow: what its processes do when an allocation fits under the ceiling but not
// under the current limit. They ask the runner through the grant file and wait for its answer: 2 s
// at most in all, not at all when the runner is gone, and outside the gate, so that the job can be
// parked meanwhile. This is safe while a stream is being captured, since the driver is not called.
// docs/formats/grant.md describes the words.
#pragma once

#include <cstdint>

#include "meter/state.h"

namespace mete::meter {

// Asks for room and takes it. Only before the driver has been called for the allocation: this
// thread may be parked in here. False: refused, or no answer, or the ceiling is too low.
bool grow_and_take(int card, uint64_t units);

// The size of a card as the program sees it: the ceiling if the grant may grow.
uint64_t shown_bytes(int card);

}  // namespace mete::meter
