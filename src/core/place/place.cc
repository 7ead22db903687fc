// SPDX-License-Identifier: Apache-2.0
// See place.h. need.h has what a request needs, room.h whether a card has room, policy.h which of
// the cards with room to take, and wait_for.h why a request waits.
#include "core/place/place.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/place/need.h"
#include "core/place/policy.h"
#include "core/place/room.h"
#include "core/place/wait_for.h"

namespace mete::core {

namespace {

// nullopt: no room.
std::optional<Placement> placed(const Pool& pool, const Needs& needs, Policy policy) {
  if (needs.wanted == 0) return needs.machine_not_now ? std::nullopt : std::optional(Placement{});
  std::vector<Fit> fits;
  fits.reserve(needs.cards.size());
  for (const Need& need : needs.cards) {
    const PoolCard& card = pool.cards[need.at];
    const Room room = room_on(card, need);
    if (room.what != InTheWay::kNothing) continue;
    const Bytes left = need.whole ? Bytes() : room.free - room.bytes;
    fits.push_back({need.at, card.card.index, room.bytes, left, need.most});
  }
  if (fits.size() < needs.wanted) return std::nullopt;
  if (!needs.named) choose(policy, fits, needs.wanted);
  const bool whole = std::holds_alternative<WholeCard>(needs.gpu.memory);
  Placement placement;
  placement.cards.reserve(fits.size());
  const bool grows = std::holds_alternative<Growing>(needs.gpu.memory);
  for (const Fit& fit : fits) {
    GrantedCard card{fit.index, pool.cards[fit.at].card.uuid, fit.bytes, whole};
    if (grows) card.least = fit.bytes, card.most = fit.most;
    placement.cards.push_back(std::move(card));
  }
  return placement;
}

// --or-cpu on a machine without cards is a placement without cards. A request that is too large for
// the cards that exist is still an error.
bool goes_without(const Pool& pool, const Request& request, const Error& error) {
  if (!request.or_cpu || error.code != ErrorCode::kInfeasible) return false;
  return std::all_of(pool.cards.begin(), pool.cards.end(),
                     [](const PoolCard& card) { return !card.unusable.empty(); });
}

}  // namespace

Result<void> can_ever(const Pool& pool, const Request& request) {
  const Result<Needs> needs = needs_of(pool, request);
  if (!needs && !goes_without(pool, request, needs.error())) return needs.error();
  return {};
}

Decision place(const Pool& pool, const Request& request, Policy policy) {
  Result<Needs> needs = needs_of(pool, request);
  if (!needs) {
    if (goes_without(pool, request, needs.error())) return Placement{};
    return std::move(needs).error();
  }
  if (std::optional<Placement> placement = placed(pool, *needs, policy))
    return *std::move(placement);
  if (request.or_cpu) return Placement{};
  return wait_for(pool, request, *needs);
}

std::optional<Placement> place_now(const Pool& pool, const Request& request, Policy policy) {
  const Result<Needs> needs = needs_of(pool, request);
  if (!needs)
    return goes_without(pool, request, needs.error()) ? std::optional(Placement{}) : std::nullopt;
  std::optional<Placement> placement = placed(pool, *needs, policy);
  if (!placement && request.or_cpu) return Placement{};
  return placement;
}

void add_grant(Pool& pool, const Holder& who, const std::vector<GrantedCard>& cards) {
  for (const GrantedCard& granted : cards)
    for (PoolCard& card : pool.cards)
      if (card.card.uuid == granted.uuid)
        card.holders.push_back({who.job, who.user, who.name, granted.bytes, granted.whole,
                                who.parked, who.parkable, who.ends_at});
}

bool may_return(const Pool& pool, JobId id, const std::vector<GrantedCard>& grant) {
  return std::all_of(grant.begin(), grant.end(), [&](const GrantedCard& granted) {
    for (const PoolCard& card : pool.cards) {
      if (card.card.uuid != granted.uuid) continue;
      PoolCard without = card;
      without.drained = false;
      std::erase_if(without.holders, [id](const Holder& holder) { return holder.job == id; });
      std::erase_if(without.foreign, [id](const Outside& outside) { return outside.job == id; });
      return room_on(without, {0, granted.whole, granted.bytes}).what == InTheWay::kNothing;
    }
    return false;
  });
}

}  // namespace mete::core
