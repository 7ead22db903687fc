// SPDX-License-Identifier: Apache-2.0
// Cards that are somebody's for a time to come: `mete reserve --gpu 2 --from 18:00 --for 4h --user
// carol`. Which cards is decided when it is made, and stays. A job of somebody else that could
// still run when the time begins sees that memory as taken (keep_reserved); jobs that run there
// already are not ended.
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
  std::string by;  // who made it
  bool operator==(const Reservation&) const = default;
};

// Whether it is in the way of a job of `user` that starts now and ends by `until` (nullopt: nobody
// knows).
bool in_the_way(const Reservation& reservation, const std::string& user, WallTime now,
                std::optional<WallTime> until);

// The pool as a job of `user` may see it that starts now and ends by `until` (nullopt: nobody
// knows): what is reserved for others within that time is claimed by them, less what their jobs
// hold there already. What is reserved for the user now is not kept for anybody further ahead in
// line.
void keep_reserved(Pool& pool, const std::vector<Reservation>& reservations,
                   const std::string& user, WallTime now, std::optional<WallTime> until);

}  // namespace mete::core
