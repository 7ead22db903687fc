// SPDX-License-Identifier: Apache-2.0
#include "core/order/reservation.h"

#include <algorithm>
#include <map>

#include "core/place/room.h"

namespace mete::core {

bool in_the_way(const Reservation& reservation, const std::string& user, WallTime now,
                std::optional<WallTime> until) {
  if (reservation.user == user || reservation.until <= now) return false;
  return reservation.from <= now || !until || *until > reservation.from;
}

void keep_reserved(Pool& pool, const std::vector<Reservation>& reservations,
                   const std::string& user, WallTime now, std::optional<WallTime> until) {
  // What jobs of users with a reservation hold is subtracted from it: by user and position.
  std::map<std::pair<std::string, std::size_t>, Bytes> used;
  const auto unused = [&](const Reservation& reservation, std::size_t at, Bytes reserved) {
    const auto [left, added] = used.try_emplace({reservation.user, at});
    if (added)
      for (const Holder& holder : pool.cards[at].holders)
        if (holder.user == reservation.user) left->second = left->second.plus(holder.bytes);
    const Bytes taken = std::min(left->second, reserved);
    left->second -= taken;
    return reserved - taken;
  };
  for (const Reservation& reservation : reservations) {
    const bool own = reservation.user == user && reservation.from <= now && reservation.until > now;
    if (!own && !in_the_way(reservation, user, now, until)) continue;
    for (const GrantedCard& reserved : reservation.cards)
      for (std::size_t at = 0; at < pool.cards.size(); ++at) {
        PoolCard& card = pool.cards[at];
        if (card.card.uuid != reserved.uuid) continue;
        const Bytes bytes =
            unused(reservation, at, reserved.whole ? card.card.capacity : reserved.bytes);
        if (own)
          card.kept = card.kept.minus(bytes);
        else if (!bytes.is_zero())
          card.claimed.push_back({"",
                                  bytes,
                                  {},
                                  reservation.user,
                                  {},
                                  Outside::Reserved{reservation.id, reservation.until}});
      }
  }
}

}  // namespace mete::core
