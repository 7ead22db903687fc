// SPDX-License-Identifier: Apache-2.0
// Which cards of a pool --where leaves: now, and at any time. Inside of core/place and core/order.
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "core/place/place.h"

namespace mete::core {

struct Match {
  bool now = false;   // it is true of the card as it is
  bool ever = false;  // it can come to be true as jobs come and go
};
// One for each card of the pool.
std::vector<Match> matches(const Pool& pool, const Query& where);
// Of a job without a GPU: that some card matches; without cards, what is left to ask.
Match machine_matches(const Pool& pool, const Query& where);

// infeasible: what was asked, and what is here.
Error never_matches(const Pool& pool, const Query& where);

// It waits for a card to become free beyond its share: then all of it must be kept for it.
bool asks_for_free(const Request& request);

}  // namespace mete::core
