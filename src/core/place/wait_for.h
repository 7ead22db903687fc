// SPDX-License-Identifier: Apache-2.0
// Finds out why a job waits: for what, why not on each card, and which jobs' end would help.
// Internal to core; called only when there is no room.
#pragma once

#include "core/place/match.h"
#include "core/place/need.h"
#include "core/place/room.h"

namespace mete::core {

// What is in the way on a card that the request is for; kNothing: it has room.
CardWait wait_on(const PoolCard& card, const Need& need, const Room& room);
// Why the request is not for this card. `match` is used if the request has a --where.
CardWait not_asked_for(const PoolCard& card, const Match& match, const Request& request);

Wait wait_for(const Pool& pool, const Request& request, const Needs& needs);

}  // namespace mete::core
