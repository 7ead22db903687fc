// SPDX-License-Identifier: Apache-2.0
// See rest.h.
#include "core/order/rest.h"

#include <algorithm>

#include "core/place/room.h"

namespace mete::core {

std::uint32_t cpus_needed(const PassInput& input, const Kind& kind) {
  const std::uint32_t wanted = cpus_of(kind.request, kind.detached);
  return input.rules->cpus ? std::min(wanted, *input.rules->cpus) : wanted;
}

Rest::Rest(const PassInput& input) : input_(input), pool_(input.pool), spare_(pool_) {
  if (!input.rules->cpus) return;
  std::uint64_t taken = 0;
  for (const Running& running : input.running) taken += running.cpus;
  cpus_ = static_cast<std::uint32_t>(*input.rules->cpus -
                                     std::min<std::uint64_t>(taken, *input.rules->cpus));
}

void Rest::changed() {
  spare_ = Spare(pool_);
  seen_.clear();
}

void Rest::give(const Holder& holder, const std::vector<GrantedCard>& cards, std::uint32_t cpus) {
  if (cpus_ != kNoLimit) cpus_ -= std::min(cpus, cpus_);
  if (cards.empty()) return;
  add_grant(pool_, holder, cards);
  changed();
}

void Rest::give_back(const Holder& holder, const std::vector<GrantedCard>& cards,
                     std::uint32_t cpus) {
  remove_grant(pool_, holder.job);
  give(holder, cards, cpus);
}

void Rest::keep(const std::vector<Bytes>& bytes, std::uint32_t cpus) {
  if (cpus_ != kNoLimit) cpus_ -= std::min(cpus, cpus_);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    pool_.cards[i].kept = pool_.cards[i].kept.plus(bytes[i]);
  changed();
}

const Pool& Rest::seen(const Kind& kind) {
  if (input_.reservations.empty()) return pool_;
  const std::optional<WallTime> ends = ends_if_started(input_, kind);
  std::vector<std::uint64_t> matter;
  for (const Reservation& reservation : input_.reservations) {
    if (in_the_way(reservation, kind.user, input_.now, ends)) matter.push_back(2 * reservation.id);
    if (reservation.user == kind.user) matter.push_back(2 * reservation.id + 1);
  }
  const auto [found, added] = seen_.try_emplace(std::move(matter));
  if (added) {
    found->second = pool_;
    keep_reserved(found->second, input_.reservations, kind.user, input_.now, ends);
  }
  return found->second;
}

bool Rest::may_have(const Kind& kind) const {
  const auto own = [&](const Reservation& each) { return each.user == kind.user; };
  return std::any_of(input_.reservations.begin(), input_.reservations.end(), own) ||
         spare_.may_have(kind.request);
}

std::optional<Placement> Rest::place(const Kind& kind) {
  if (!may_have(kind)) return std::nullopt;
  return place_now(seen(kind), kind.request, input_.policy);
}

}  // namespace mete::core
