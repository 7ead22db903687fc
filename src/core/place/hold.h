// SPDX-License-Identifier: Apache-2.0
// Nobody starves: while the first job in line waits for a large share, small ones behind it could
// take every byte that becomes free. hold_for() returns the pool as those behind it may see it.
//
// The share (or the whole card) is kept on the cards on which the waiting request would run
// soonest: those where the least has to be given up by others; of cards with room already, those
// that the policy prefers; then by index. Everything else stays for those behind, also what such a
// card has beyond the share. For one that asks how much is free (--where) all of the card is kept.
//
// Why that is enough: what is missing on a kept card cannot grow by our own grants, since they find
// its memory kept. Another card may come to need less; then that one is kept instead. So the least
// that is missing never grows, and shrinks whenever a job there ends.
//
// Nothing is kept when the request can never be, needs no card, or cannot run before a lost,
// drained or unread card is back: that can take days, and others would wait for nothing.
#pragma once

#include "core/place/place.h"

namespace mete::core {

Pool hold_for(const Pool& pool, const Request& waiting, Policy policy);

}  // namespace mete::core
