// SPDX-License-Identifier: Apache-2.0
// Where a request goes: a pure function from (pool, request, policy) to a placement, a reason to
// wait, or a reason why it can never be. No I/O, no clock; ties break by card index, so that the
// same pool and request always mean the same cards.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "core/job/job.h"
#include "core/request/resolve.h"

namespace mete::core {

// Who has a share of a card.
struct Holder {
  JobId job;
  std::string user;
  std::string name;
  Bytes bytes;
  bool whole = false;
  bool operator==(const Holder&) const = default;
};

// Memory on a card that somebody outside this daemon holds or was promised.
struct Outside {
  std::string who;  // "process 412 of alice", "2 processes of bob", "bob's mete"
  Bytes bytes;
  bool operator==(const Outside&) const = default;
};

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
  std::vector<Outside> foreign;  // held by processes outside mete, as last read
  // The last reading is too old to know what others hold (the driver does not answer).
  bool stale = false;
  Bytes context;  // what a process's first context costs here, reserve included; zero: not known

  // capacity − granted − claimed − foreign; zero when that is negative, or when nothing can be
  // granted at all (lost, drained, unusable, stale, held whole).
  Bytes grantable() const;
  bool operator==(const PoolCard&) const = default;
};

struct Pool {
  std::vector<PoolCard> cards;  // by index
  bool operator==(const Pool&) const = default;
};

enum class Policy { kFirstFit, kBestFit, kSpread };
std::string_view to_string(Policy policy);
Result<Policy> parse_policy(std::string_view text);

// Cards in the order in which the program shall see them; empty: no GPU (asked for, or --or-cpu).
struct Placement {
  std::vector<GrantedCard> cards;
  bool operator==(const Placement&) const = default;
};

// No room now.
struct Wait {
  Reason reason = Reason::kResources;
  // "8 GiB on one card; card 0 has 3.2 GiB free, card 1 is held whole by alice's job 12 (train)".
  std::string text;
  std::vector<JobId> holders;  // whose end would help, those that would be enough first
  bool operator==(const Wait&) const = default;
};

using Decision = std::variant<Placement, Wait, Error>;  // Error: never (infeasible), or bad words

Decision place(const Pool& pool, const Request& request, Policy policy);

// The same pool after a grant.
void add_grant(Pool& pool, const Holder& who, const std::vector<GrantedCard>& cards);

}  // namespace mete::core
