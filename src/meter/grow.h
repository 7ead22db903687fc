// SPDX-License-Identifier: Apache-2.0
// A grant that may grow: what its processes do when an allocation fits under the ceiling and not
// under the limit as it stands. They ask the runner, through the grant file, and wait for its
// answer: 2 s at most in all, not at all when the runner is gone, and outside the gate, so that the
// job can be parked meanwhile. A stream that is being captured does not mind: the driver is not
// called. The words are described in docs/formats/grant.md.
#pragma once

#include <cstdint>

#include "meter/state.h"

namespace mete::meter {

// Asks for room and takes it. Only where the driver has not been asked for anything yet: this
// thread may be parked in here. False: refused, or nobody answered, or the ceiling is too low.
bool grow_and_take(int card, uint64_t units);

// The size of a card as the program sees it: of a growing grant the ceiling.
uint64_t shown_bytes(int card);

}  // namespace mete::meter
