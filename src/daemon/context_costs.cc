// SPDX-License-Identifier: Apache-2.0
// See context_costs.h.
#include "daemon/context_costs.h"

#include "abi/grant.h"
#include "node/probe_cache.h"

namespace mete::daemon {

const std::map<std::string, Bytes>& ContextCosts::of(const node::CardSnapshot& snapshot,
                                                     seam::Nanoseconds now) {
  constexpr Bytes kWith = Bytes::from_bytes(abi::kReserveBytes + abi::kGranuleBytes);
  if (looked_at_ && now - *looked_at_ < kLookPeriod) return costs_;
  looked_at_ = now;
  for (const seam::CardReading& card : snapshot.cards) {
    if (measured_.contains(card.uuid)) continue;
    std::optional<node::ContextCost> cost;
    for (const std::string& file : files_)
      if (!cost)
        cost = node::find_cached(file, {card.uuid, card.type, snapshot.driver.version, false});
    if (cost) measured_.insert(card.uuid);
    costs_[card.uuid] = (cost ? cost->first : kAssumed) + kWith;
  }
  return costs_;
}

}  // namespace mete::daemon
