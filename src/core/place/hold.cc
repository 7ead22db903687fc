// SPDX-License-Identifier: Apache-2.0
// See hold.h.
#include "core/place/hold.h"

#include <algorithm>
#include <tuple>

#include "core/place/match.h"
#include "core/place/need.h"
#include "core/place/policy.h"
#include "core/place/room.h"

namespace mete::core {

namespace {

struct Later {
  Bytes missing;
  std::uint32_t index = 0;
  std::size_t at = 0;
};

// The positions of the cards to keep; empty if too few can be expected to have room.
std::vector<std::size_t> soonest(const Pool& pool, const Needs& needs, Policy policy) {
  std::vector<Fit> now;
  std::vector<Later> later;
  for (const Need& need : needs.cards) {
    const PoolCard& card = pool.cards[need.at];
    if (card.lost || card.drained || card.stale) continue;
    const Room room = room_on(card, need);
    if (room.what == InTheWay::kNothing) {
      const Bytes left = need.whole ? Bytes() : room.free - room.bytes;
      now.push_back({need.at, card.card.index, room.bytes, left, need.most});
    } else {
      later.push_back({room.missing, card.card.index, need.at});
    }
  }
  if (now.size() + later.size() < needs.wanted) return {};
  choose(policy, now, std::min(now.size(), needs.wanted));
  std::sort(later.begin(), later.end(), [](const Later& a, const Later& b) {
    return std::tie(a.missing, a.index) < std::tie(b.missing, b.index);
  });
  std::vector<std::size_t> chosen;
  chosen.reserve(needs.wanted);
  for (const Fit& fit : now) chosen.push_back(fit.at);
  for (const Later& card : later)
    if (chosen.size() < needs.wanted) chosen.push_back(card.at);
  return chosen;
}

}  // namespace

Pool hold_for(const Pool& pool, const Request& waiting, Policy policy) {
  Pool held = pool;
  const Result<Needs> needs = needs_of(pool, waiting);
  if (!needs || needs->wanted == 0) return held;
  const std::vector<std::size_t> chosen = soonest(pool, *needs, policy);
  for (const Need& need : needs->cards) {
    if (std::find(chosen.begin(), chosen.end(), need.at) == chosen.end()) continue;
    PoolCard& card = held.cards[need.at];
    card.kept = card.kept.plus(need.whole || asks_for_free(waiting) ? card.card.capacity
                                                                    : need.bytes + need.mover);
  }
  return held;
}

}  // namespace mete::core
