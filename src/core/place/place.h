// SPDX-License-Identifier: Apache-2.0
// Where a request goes: a pure function from (pool, request, policy) to a placement, a reason to
// wait, or a reason why it can never be. No I/O, no clock; ties break by card index, so that the
// same pool and request always mean the same cards.
//
// The rules, whatever the policy:
//  - A share (8G, 40%, 100%) needs that much grantable memory on each of its cards.
//  - A whole card needs no other grant, claim or promise on it, and no more memory of others than a
//    display server takes (foreign_allowance). It gets all the rest, cut to 2 MiB.
//  - A card that lets one process at a time use it has one grant at a time, and no second process.
//  - Cards that are unusable (MIG, prohibited) are left out, as `mete cap` leaves them out: with
//    too few cards then, it can never be. Lost, drained and long unread cards are waited for.
//  - --procs N divides the grant evenly, as torchrun's users expect: process i uses card i % cards,
//    so each card has N / cards processes, and its share is divided between those (part_of). N must
//    be a multiple of the number of cards. A part that cannot hold one context and kLeastUse is
//    refused. A single process is not measured: it may be one that never makes a context.
//  - A parked job does nothing on its card: a whole card may be given beside what it left there.
//  - Beside jobs that can be parked a mover takes a context. It is counted from the first of them
//  on,
//    and what a fraction of such a card is, is a fraction of the rest.
//  - --or-cpu turns a wait into a placement without cards; what can never be stays an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "core/job/job.h"
#include "core/place/wait.h"
#include "core/request/resolve.h"

namespace mete::core {

// A card as placement sees it.
struct PoolCard {
  Card card;  // its capacity is what could be granted if it were empty
  bool lost = false;
  bool drained = false;
  // Why nothing can be granted here at the moment, apart from the above: "split into MIG slices",
  // "compute mode is prohibited". Empty: all is well.
  std::string unusable;
  // The driver lets one process at a time use it: then one grant at a time.
  bool one_process = false;
  std::vector<Holder> holders;   // our own grants
  std::vector<Outside> claimed;  // by other daemons on this machine
  // Held by processes outside mete, and by jobs beyond their grants, as last read.
  std::vector<Outside> foreign;
  // The last reading is too old to know what others hold (the driver does not answer).
  bool stale = false;
  Bytes context;  // what a process's first context costs here, reserve included; zero: not known
  Bytes kept;     // for a job further ahead in line (hold.h)
  // What a mover takes here, or would, and whether there is one. It is no part of `foreign`.
  Bytes mover;
  bool mover_runs = false;

  // capacity − granted − claimed − kept − foreign; zero when that is negative, or when nothing can
  // be granted at all (lost, drained, unusable, stale, held whole, or taken by its one process).
  Bytes grantable() const;
  bool operator==(const PoolCard&) const = default;
};

// Foreign memory up to which a card still counts as free for one job alone, since a display server
// runs on many machines: 512 MiB, or 1/32 of a large card.
Bytes foreign_allowance(Bytes capacity);

struct Pool {
  std::vector<PoolCard> cards;  // by index
  bool operator==(const Pool&) const = default;
};

// The cards of a grant as the machine has them; a card that has vanished is left out.
std::vector<Card> cards_of(const std::vector<GrantedCard>& grant, const Pool& pool);

// Which of the cards with room: the lowest index, the least room left after it, or the most. Where
// nothing would be left (whole cards) best-fit takes the smallest cards and spread the largest.
// Several cards are seen in index order, unless --devices says otherwise.
enum class Policy { kFirstFit, kBestFit, kSpread };
std::string_view to_string(Policy policy);
Result<Policy> parse_policy(std::string_view text);

// Cards in the order in which the program shall see them; empty: no GPU (asked for, or --or-cpu).
struct Placement {
  std::vector<GrantedCard> cards;
  bool operator==(const Placement&) const = default;
};

// Wait: no room now. Error: never (infeasible), or bad words.
using Decision = std::variant<Placement, Wait, Error>;

Decision place(const Pool& pool, const Request& request, Policy policy);
// The same without the reasons, which take longer than the decision: nullopt for a wait or an
// error.
std::optional<Placement> place_now(const Pool& pool, const Request& request, Policy policy);

// Whether there could ever be room, however long one waits: place()'s error if not.
Result<void> can_ever(const Pool& pool, const Request& request);

// What each process of --procs has of the share on one card, of as many cards as were granted: cut
// to 2 MiB, so that the parts never add up to more than the share. procs is a multiple of cards.
Bytes part_of(Bytes share, std::uint32_t procs, std::size_t cards);
// The least that a part must have besides a context.
inline constexpr Bytes kLeastUse = Bytes::from_mib(64);

// The same pool after a grant. The job is `who`'s; bytes and `whole` are the cards'. A card that is
// not in the pool (any more) is passed over.
void add_grant(Pool& pool, const Holder& who, const std::vector<GrantedCard>& cards);

// Whether a parked job could have its grant again, on its own cards. A drained card may have it.
bool may_return(const Pool& pool, JobId id, const std::vector<GrantedCard>& grant);

}  // namespace mete::core
