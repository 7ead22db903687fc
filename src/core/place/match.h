// SPDX-License-Identifier: Apache-2.0
// Which cards of a pool --where selects: now, and at any time. Internal to core/place and
// core/order.
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "core/place/place.h"

namespace mete::core {

struct Match {
  bool now = false;   // true of the card now
  bool ever = false;  // may become true as jobs come and go
};
// One for each card of the pool.
std::vector<Match> matches(const Pool& pool, const Query& where);
// For a job without a GPU: whether some card matches; without cards, whether the machine does.
Match machine_matches(const Pool& pool, const Query& where);

// infeasible: the query, and what the machine has.
Error never_matches(const Pool& pool, const Query& where);

// The request waits for more of a card to be free than its share: all of the card must be kept for
// it.
bool asks_for_free(const Request& request);

}  // namespace mete::core
