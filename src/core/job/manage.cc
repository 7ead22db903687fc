// SPDX-License-Identifier: Apache-2.0
// See decide.h: what administrators set for the machine: drained cards, quotas, reservations.
#include "base/text.h"
#include "core/job/decide.h"

namespace mete::core {

namespace {

Result<void> only_admins(const Caller& by, const std::string& what) {
  if (by.admin) return {};
  return Error::denied(what + " is for administrators")
      .with_hint("root may, and members of the group that the daemon's configuration names");
}

}  // namespace

Decided Decider::on(const Drain& drain) const {
  if (Result<void> r = only_admins(drain.by, drain.drain ? "mete drain" : "mete undrain"); !r)
    return std::move(r).error();
  std::vector<const PoolCard*> matches;
  for (const PoolCard& card : moment_.machine.cards) {
    const bool whole =
        std::to_string(card.card.index) == drain.card || card.card.uuid == drain.card;
    const bool begins = drain.card.size() >= 6 && card.card.uuid.starts_with(drain.card);
    if (whole || begins) matches.push_back(&card);
  }
  if (matches.size() != 1)
    return Error::not_found(matches.empty()
                                ? "there is no card " + base::quote(drain.card)
                                : base::quote(drain.card) + " is the beginning of several cards")
        .with_hint("mete cards lists them");
  const std::string& uuid = matches.front()->card.uuid;
  if (state_.drained().contains(uuid) == drain.drain) return std::vector<Happened>{};
  if (drain.drain) return std::vector<Happened>{CardDrained{uuid, drain.by.user}};
  return std::vector<Happened>{CardUndrained{uuid}};
}

Decided Decider::on(const SetQuota& quota) const {
  if (Result<void> r = only_admins(quota.by, "a quota"); !r) return std::move(r).error();
  const auto known = state_.quotas().find(quota.user);
  if ((known == state_.quotas().end() ? Quota{} : known->second) == quota.quota)
    return std::vector<Happened>{};
  return std::vector<Happened>{QuotaSet{quota.user, quota.quota}};
}

Decided Decider::on(const Reserve& reserve) const {
  if (Result<void> r = only_admins(reserve.by, "a reservation"); !r) return std::move(r).error();
  if (reserve.user.empty())
    return Error::invalid("a reservation is for somebody").with_hint("say --user NAME");
  if (reserve.until <= reserve.from || reserve.until <= moment_.now)
    return Error::invalid("the reservation is over before it begins")
        .with_evidence("from " + to_string(reserve.from) + " until " + to_string(reserve.until));
  if (reserve.until.ms / 1000 - reserve.from.ms / 1000 > static_cast<std::int64_t>(kMaxTimeS))
    return Error::invalid("a reservation is for ten years at most")
        .with_evidence("this is for " +
                       base::duration_in_words((reserve.until.ms - reserve.from.ms) / 1000));
  if (state_.reservations().size() >= kMaxReservations)
    return Error::exhausted("there are " + std::to_string(kMaxReservations) + " reservations");
  if (Result<void> r = can_ever(moment_.machine, reserve.request); !r) return std::move(r).error();
  // On cards without another reservation in that time; cards with running jobs and drained cards
  // come last.
  Pool pool = moment_.machine;
  for (PoolCard& card : pool.cards) {
    card.claimed.clear();
    card.foreign.clear();
    card.stale = false;
  }
  std::vector<Reservation> overlapping;
  for (const Reservation& other : state_.reservations())
    if (other.from < reserve.until && reserve.from < other.until) overlapping.push_back(other);
  keep_reserved(pool, overlapping, "", reserve.from, reserve.until);
  const Pool with_jobs = state_.with_grants(pool);
  std::optional<Placement> placement = place_now(with_jobs, reserve.request, moment_.policy);
  if (!placement) placement = place_now(pool, reserve.request, moment_.policy);
  if (!placement)
    return Error::exhausted("that much is not free of other reservations then")
        .with_hint("mete reserve lists them");
  if (placement->cards.empty())
    return Error::invalid("a reservation is of cards").with_hint("say --gpu 2, --gpu 40% or 16G");
  return std::vector<Happened>{Reserved{{state_.last_reservation() + 1, reserve.user, reserve.from,
                                         reserve.until, placement->cards, reserve.by.user}}};
}

Decided Decider::on(const Unreserve& unreserve) const {
  for (const Reservation& known : state_.reservations())
    if (known.id == unreserve.id && (unreserve.by.admin || unreserve.by.user == known.user))
      return std::vector<Happened>{Unreserved{known.id}};
  return Error::not_found("there is no reservation " + std::to_string(unreserve.id))
      .with_hint("mete reserve lists them");
}

}  // namespace mete::core
