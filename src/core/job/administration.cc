// SPDX-License-Identifier: Apache-2.0
// See administration.h.
#include "core/job/administration.h"

#include <utility>

#include "base/assert.h"

namespace mete::core {

void Administration::apply(const QuotaSet& set) {
  if (set.quota == Quota{})
    quotas_.erase(set.user);
  else
    quotas_[set.user] = set.quota;
}

void Administration::apply(const Reserved& reserved) {
  METE_ASSERT(reserved.reservation.id == last_reservation_ + 1);
  last_reservation_ = reserved.reservation.id;
  reservations_.push_back(reserved.reservation);
}

void Administration::apply(const Unreserved& unreserved) {
  std::erase_if(reservations_, [&](const Reservation& known) { return known.id == unreserved.id; });
}

void Administration::restore(std::map<std::string, std::string> drained,
                             std::map<std::string, Quota> quotas,
                             std::vector<Reservation> reservations,
                             std::uint64_t last_reservation) {
  drained_ = std::move(drained);
  quotas_ = std::move(quotas);
  reservations_ = std::move(reservations);
  last_reservation_ = last_reservation;
}

}  // namespace mete::core
