// SPDX-License-Identifier: Apache-2.0
// Cards that are reserved for a user for some time: `mete reserve --gpu 2 --from 18:00 --for 4h
// --user carol`. The cards are chosen when the reservation is made, and stay. A job of another user
// that could still run when the time begins sees that memory as taken (keep_reserved); jobs that
// run there already are not ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "core/place/place.h"

namespace mete::core {

struct Reservation {
  std::uint64_t id = 0;
  std::string user;  // whose jobs may have it
  WallTime from;
  WallTime until;
  std::vector<GrantedCard> cards;
  std::string by;  // the administrator who made it
  bool operator==(const Reservation&) const = default;
};

// Whether the reservation is in the way of a job of `user` that starts now and ends by `until`
// (nullopt: unknown).
bool in_the_way(const Reservation& reservation, const std::string& user, WallTime now,
                std::optional<WallTime> until);

// The pool as seen by a job of `user` that starts now and ends by `until` (nullopt: unknown):
// memory that is reserved for others in that time is claimed, less what their jobs hold there
// already. What is reserved for the user now is not kept for a job further ahead in the queue.
void keep_reserved(Pool& pool, const std::vector<Reservation>& reservations,
                   const std::string& user, WallTime now, std::optional<WallTime> until);

}  // namespace mete::core
