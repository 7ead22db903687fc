// SPDX-License-Identifier: Apache-2.0
// Where a request goes: a pure function from (pool, request, policy) to a placement, a reason to
// wait, or an error if it can never be satisfied. No I/O, no clock; ties break by card index, so
// that equal pools and requests give equal cards.
//
// The rules, whatever the policy:
//  - A share (8G, 40%, 100%) needs that much grantable memory on each of its cards.
//  - A whole card needs no other grant, claim or promise on it, and no more memory of others than a
//    display server takes (foreign_allowance). It gets all the rest, cut to 2 MiB.
//  - A card that lets one process at a time use it has one grant at a time, and no second process.
//  - Cards that are unusable (MIG, prohibited) are left out, as `mete cap` leaves them out: if too
//    few are left, the request is infeasible. Lost, drained and long unread cards are waited for.
//  - --procs N divides the grant evenly, as torchrun does: process i uses card i % cards, so each
//    card has N / cards processes, and its share is divided between them (part_of). N must be a
//    multiple of the number of cards. A part that cannot hold one context and kLeastUse is refused,
//    except for a single process, which may never make a context.
//  - A parked job is idle on its card: a whole card may be granted beside what it left there.
//  - A mover, which takes a context, runs beside jobs that can be parked. It is counted from the
//    first such job on, and a fraction of such a card is a fraction of the rest.
//  - --or-cpu turns a wait into a placement without cards; an infeasible request stays an error.
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

struct PoolCard {
  Card card;  // its capacity is what could be granted if it were empty
  bool lost = false;
  bool drained = false;
  // Why nothing can be granted here now, apart from the above: "split into MIG slices", "compute
  // mode is prohibited". Empty: usable.
  std::string unusable;
  // The driver lets one process at a time use the card, so it has one grant at a time.
  bool one_process = false;
  std::vector<Holder> holders;   // our own grants
  std::vector<Outside> claimed;  // by other daemons on this machine
  // Memory of processes outside mete, and of jobs beyond their grants, as last read.
  std::vector<Outside> foreign;
  // The last reading is too old to know what others hold (the driver does not answer).
  bool stale = false;
  Bytes context;  // of a process's first context, reserve included; zero: unknown
  Bytes kept;     // for a job further ahead in the queue (hold.h)
  // What a mover takes here, or would, and whether there is one. Not part of `foreign`.
  Bytes mover;
  bool mover_runs = false;

  // capacity − granted − claimed − kept − foreign; zero if that is negative, or if nothing can be
  // granted (lost, drained, unusable, stale, held whole, or used by its one process).
  Bytes grantable() const;
  bool operator==(const PoolCard&) const = default;
};

// A card with this much foreign memory still counts as free for a whole-card job, since many
// machines run a display server: 512 MiB, or 1/32 of a large card.
Bytes foreign_allowance(Bytes capacity);

struct Pool {
  std::vector<PoolCard> cards;  // by index
  bool operator==(const Pool&) const = default;
};

// The cards of a grant; a card that has vanished is left out.
std::vector<Card> cards_of(const std::vector<GrantedCard>& grant, const Pool& pool);

// Which of the cards with room to take: the lowest index, the least room left afterwards, or the
// most. Where nothing would be left (whole cards) best-fit takes the smallest cards and spread the
// largest. A program sees its cards in index order, unless --devices says otherwise.
enum class Policy { kFirstFit, kBestFit, kSpread };
std::string_view to_string(Policy policy);
Result<Policy> parse_policy(std::string_view text);

// Cards in the order in which the program sees them; empty: no GPU (none asked for, or --or-cpu).
struct Placement {
  std::vector<GrantedCard> cards;
  bool operator==(const Placement&) const = default;
};

// Wait: no room now. Error: infeasible, or an invalid request.
using Decision = std::variant<Placement, Wait, Error>;

Decision place(const Pool& pool, const Request& request, Policy policy);
// place() without the reasons, which take longer than the decision: nullopt for a wait or an error.
std::optional<Placement> place_now(const Pool& pool, const Request& request, Policy policy);

// Whether there could ever be room: place()'s error if not.
Result<void> can_ever(const Pool& pool, const Request& request);

// What each process of --procs has of the share on one of `cards` granted cards: cut to 2 MiB, so
// that the parts never add up to more than the share. procs is a multiple of cards.
Bytes part_of(Bytes share, std::uint32_t procs, std::size_t cards);
// The least that a part must have in addition to a context.
inline constexpr Bytes kLeastUse = Bytes::from_mib(64);

// Adds a grant to the pool. `who` has the job, `cards` bytes and `whole`. A card that is not in the
// pool (any more) is skipped.
void add_grant(Pool& pool, const Holder& who, const std::vector<GrantedCard>& cards);

// Whether a parked job could have its grant again, on its own cards. They may be drained.
bool may_return(const Pool& pool, JobId id, const std::vector<GrantedCard>& grant);

}  // namespace mete::core
