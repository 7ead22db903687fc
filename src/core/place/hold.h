// SPDX-License-Identifier: Apache-2.0
// Prevents starvation: while the first job in the queue waits for a large share, small jobs behind
// it could take every byte that becomes free. hold_for() returns the pool as jobs behind it may see
// it.
//
// The share (or the whole card) is kept on the cards where the waiting request can run soonest:
// where others have to give up the least; among cards that have room already, those that the policy
// prefers; then by index. Everything else stays available, including what a kept card has beyond
// the share. If the request asks how much is free (--where), all of the card is kept.
//
// Why that is enough: what is missing on a kept card cannot grow through our own grants, since its
// memory is kept. If another card comes to need less, that card is kept instead. So the least that
// is missing never grows, and shrinks whenever a job there ends.
//
// Nothing is kept for a request that can never be satisfied, needs no card, or needs a lost,
// drained or unread card to come back: that can take days, and others would wait for nothing.
#pragma once

#include "core/place/place.h"

namespace mete::core {

Pool hold_for(const Pool& pool, const Request& waiting, Policy policy);

}  // namespace mete::core
