// SPDX-License-Identifier: Apache-2.0
// See room.h.
#include "core/place/room.h"

#include <algorithm>

namespace mete::core {

namespace {

// A card that one process at a time may use is taken by any grant and by a foreign process. The
// driver does not count a display server, so its memory is ignored.
bool taken_by_one(const PoolCard& card, const Used& used) {
  return card.one_process && (used.occupied || !card.holders.empty() ||
                              used.foreign > foreign_allowance(card.card.capacity));
}

Room in_the_way(InTheWay what, Bytes free, Bytes missing) { return {what, Bytes(), free, missing}; }

Room room_whole(const PoolCard& card, const Need& need, const Used& used) {
  const Bytes capacity = card.card.capacity;
  const bool foreign_is_much = used.foreign > foreign_allowance(capacity);
  const Bytes free = capacity.minus(used.all());
  if (used.occupied) {
    const Bytes missing = used.promised().plus(foreign_is_much ? used.foreign : Bytes());
    return in_the_way(InTheWay::kNotAlone, free, missing);
  }
  // Only parked jobs are there, with what they could not move away.
  const Bytes bytes = free.minus(need.mover).round_down(kGranule);
  if (foreign_is_much || bytes < need.bytes)
    return in_the_way(InTheWay::kForeign, free, used.foreign);
  return {InTheWay::kNothing, bytes, free, Bytes()};
}

}  // namespace

Bytes Used::promised() const { return granted.plus(claimed).plus(kept); }
Bytes Used::all() const { return promised().plus(foreign).plus(mover); }

Bytes mover_missing(const PoolCard& card) {
  const bool expected = std::any_of(card.holders.begin(), card.holders.end(),
                                    [](const Holder& holder) { return holder.parkable; });
  return card.mover_runs || expected ? Bytes() : card.mover;
}

std::vector<Card> cards_of(const std::vector<GrantedCard>& grant, const Pool& pool) {
  std::vector<Card> cards;
  for (const GrantedCard& granted : grant)
    for (const PoolCard& card : pool.cards)
      if (card.card.uuid == granted.uuid) cards.push_back(card.card);
  return cards;
}

Bytes foreign_allowance(Bytes capacity) {
  return std::max(Bytes::from_mib(512), Bytes::from_bytes(capacity.count() / 32));
}

Used used_on(const PoolCard& card) {
  Used used;
  for (const Holder& holder : card.holders) {
    used.granted = used.granted.plus(holder.bytes);
    used.whole = used.whole || holder.whole;
    used.occupied = used.occupied || !holder.parked;
    if (holder.parkable) used.mover = card.mover;
  }
  if (card.mover_runs) used.mover = card.mover;
  for (const Outside& claim : card.claimed) used.claimed = used.claimed.plus(claim.bytes);
  for (const Outside& other : card.foreign) used.foreign = used.foreign.plus(other.bytes);
  used.kept = card.kept;
  used.occupied = used.occupied || !card.claimed.empty() || !card.kept.is_zero();
  return used;
}

namespace {

Room room_whatever_is_asked(const PoolCard& card, const Need& need, Kept kept) {
  if (card.lost) return in_the_way(InTheWay::kLost, Bytes(), Bytes());
  if (card.drained) return in_the_way(InTheWay::kDrained, Bytes(), Bytes());
  if (card.stale) return in_the_way(InTheWay::kStale, Bytes(), Bytes());
  Used used = used_on(card);
  if (kept == Kept::kIgnored) {
    PoolCard without = card;
    without.kept = Bytes();
    used = used_on(without);
  }
  if (used.whole) return in_the_way(InTheWay::kHeldWhole, Bytes(), used.promised());
  if (taken_by_one(card, used)) return in_the_way(InTheWay::kOneProcess, Bytes(), used.all());
  if (need.whole) return room_whole(card, need, used);
  const Bytes free = card.card.capacity.minus(used.all());
  const Bytes needed = need.bytes.plus(need.mover);
  if (free >= needed) return {InTheWay::kNothing, need.bytes, free, Bytes()};
  // used + need - capacity, since `used` alone may exceed the card.
  const Bytes missing = used.all().plus(needed).minus(card.card.capacity);
  return in_the_way(InTheWay::kTooFull, free, missing);
}

}  // namespace

Room room_on(const PoolCard& card, const Need& need, Kept kept) {
  const Room room = room_whatever_is_asked(card, need, kept);
  if (room.what != InTheWay::kNothing || !need.not_now) return room;
  return in_the_way(InTheWay::kWhere, room.free, used_on(card).all());
}

Bytes PoolCard::grantable() const {
  if (lost || drained || stale || !unusable.empty()) return Bytes();
  const Used used = used_on(*this);
  if (used.whole || taken_by_one(*this, used)) return Bytes();
  return card.capacity.minus(used.all());
}

}  // namespace mete::core
