// SPDX-License-Identifier: Apache-2.0
#include "core/order/reservation.h"

namespace mete::core {

bool in_the_way(const Reservation& reservation, const std::string& user, WallTime now,
                std::optional<WallTime> until) {
  if (reservation.user == user || reservation.until <= now) return false;
  return reservation.from <= now || !until || *until > reservation.from;
}

void keep_reserved(Pool& pool, const std::vector<Reservation>& reservations,
                   const std::string& user, WallTime now, std::optional<WallTime> until) {
  for (const Reservation& reservation : reservations) {
    if (!in_the_way(reservation, user, now, until)) continue;
    for (const GrantedCard& reserved : reservation.cards)
      for (PoolCard& card : pool.cards)
        if (card.card.uuid == reserved.uuid)
          card.claimed.push_back({reservation.user + "'s reservation " +
                                      std::to_string(reservation.id) + " until " +
                                      to_string(reservation.until),
                                  reserved.whole ? card.card.capacity : reserved.bytes});
  }
}

}  // namespace mete::core
