// SPDX-License-Identifier: Apache-2.0
// How the words of a grant file change: take, give back, and give back for the dead.
//
// Every change of an account goes through one compare-and-swap of its total word. That word names
// the slot that made the change and a sequence number; the slot's intent word, written before, says
// whose charge gets which value. The next process that makes a change first completes that one (it
// may be half done: its maker was killed, or is stopped between two instructions) and then makes
// its own. So:
//   - a kill or a stop at any instruction neither loses nor doubles a byte, and no process
//     waits for another;
//   - the sum of the charges equals the total as soon as the last change is completed;
//   - nothing here calls the driver, allocates, or blocks.
// Threads of one process share a slot: they must hold their process's own lock around change(). The
// points at which a process can die, and what each leaves behind, are listed in
// docs/adr/0004-grant-protocol.md.
#pragma once

#include <cstdint>

#include "abi/grant.h"

namespace mete::abi {

// One actor: a process (or a launcher) with a slot of its own.
struct Actor {
  Grant& grant;
  uint32_t slot;
};

// One budget: a card, and a part of the job.
struct AccountId {
  uint32_t part;
  uint32_t card;
};

inline Account& account(Grant& grant, AccountId id) { return grant.accounts[id.part][id.card]; }
inline Word& intent_word(Grant& grant, uint32_t slot, uint32_t card) {
  return grant.slots[slot].cards[card].intent;
}
inline Word& charge_word(Grant& grant, uint32_t slot, uint32_t card) {
  return grant.slots[slot].cards[card].charge;
}

// Completes the last change of the account, if its maker has not. Returns the total word; while the
// total still has this value, every charge on the account is up to date.
inline uint64_t settled_total(Grant& grant, AccountId id) {
  Word& total = account(grant, id).total;
  for (;;) {
    const uint64_t raw = total.load();
    const TotalWord last = TotalWord::unpack(raw);
    const IntentWord intent = IntentWord::unpack(intent_word(grant, last.slot, id.card).load());
    Word& word = charge_word(grant, intent.target, id.card);
    uint64_t charge = word.load();
    // If the total has changed, `charge` may be out of date: read again. While it is unchanged, the
    // only change that can reach this charge is the one that is completed here.
    if (total.load() != raw) continue;
    // An intent with another number: its maker completed this change before it planned the next.
    if (intent.seq == last.seq && ChargeWord::unpack(charge).seq != last.seq)
      word.compare_exchange_strong(charge, ChargeWord{intent.units, last.seq}.pack());
    return raw;
  }
}

// A sequence number for the next change that cannot be mistaken for an earlier one: neither the one
// in the target's charge, nor one that this actor's intent word already stands for in another
// part's account.
inline uint32_t next_seq(Actor by, AccountId id, uint32_t last_seq, uint32_t charge_seq) {
  for (uint32_t seq = (last_seq + 1) & kSeqMask;; seq = (seq + 1) & kSeqMask) {
    if (seq == charge_seq) continue;
    bool taken = false;
    const uint32_t parts = by.grant.header.part_count;
    for (uint32_t p = 0; parts > 1 && p < parts && p < kMaxParts; ++p) {
      if (p == id.part) continue;
      const TotalWord other = TotalWord::unpack(by.grant.accounts[p][id.card].total.load());
      if (other.slot == by.slot && other.seq == seq) taken = true;
    }
    if (!taken) return seq;
  }
}

inline void raise_to(Word& word, uint64_t value) {
  uint64_t seen = word.load(std::memory_order_relaxed);
  while (seen < value && !word.compare_exchange_weak(seen, value)) {
  }
}

// What a change decided: the new charge of the target, or nothing to do.
struct Decision {
  bool go;
  uint64_t charge_units;
};

// The only way in which an account changes. `decide(total_units, charge_units)` is called with a
// consistent pair, possibly several times, and must have no side effects. Returns its last
// decision.
template <class Decide>
inline Decision change(Actor by, uint32_t target, AccountId id, Decide decide) {
  Account& acct = account(by.grant, id);
  Word& word = charge_word(by.grant, target, id.card);
  for (;;) {
    uint64_t raw = settled_total(by.grant, id);
    const TotalWord total = TotalWord::unpack(raw);
    uint64_t charge_raw = word.load();
    const ChargeWord charge = ChargeWord::unpack(charge_raw);
    const Decision decision = decide(total.units, charge.units);
    if (!decision.go) {
      // A refusal must be based on a consistent pair too.
      if (acct.total.load() != raw) continue;
      return decision;
    }
    const uint32_t seq = next_seq(by, id, total.seq, charge.seq);
    const uint64_t without = total.units > charge.units ? total.units - charge.units : 0;
    const uint64_t units = without + decision.charge_units;
    intent_word(by.grant, by.slot, id.card)
        .store(IntentWord{decision.charge_units, target, seq}.pack());
    if (!acct.total.compare_exchange_strong(raw, TotalWord{units, by.slot, seq}.pack())) continue;
    // Only a helper that completes this change can have changed the charge since it was read.
    word.compare_exchange_strong(charge_raw, ChargeWord{decision.charge_units, seq}.pack());
    raise_to(acct.peak_units, units);
    return decision;
  }
}

// True if `units` more fit under the current limit of the account.
inline bool fits(Account& acct, uint64_t total_units, uint64_t units) {
  const uint64_t sum = total_units + units + acct.excess_units.load(std::memory_order_relaxed);
  return sum <= kMaxUnits && sum * kUnitBytes <= acct.limit_bytes.load(std::memory_order_relaxed);
}

// Charges `units` to the actor if they fit. Always before the driver is called.
inline bool try_take(Actor by, AccountId id, uint64_t units) {
  Account& acct = account(by.grant, id);
  return change(by, by.slot, id,
                [&](uint64_t total, uint64_t charge) {
                  return Decision{fits(acct, total, units), charge + units};
                })
      .go;
}

// Charges what the driver has already taken unasked: never refused, so that the accounts stay true.
inline void take_anyway(Actor by, AccountId id, uint64_t units) {
  if (units == 0) return;
  change(by, by.slot, id, [&](uint64_t total, uint64_t charge) {
    const uint64_t room = total < kMaxUnits ? kMaxUnits - total : 0;
    return Decision{true, charge + (units < room ? units : room)};
  });
}

inline void give_back(Actor by, AccountId id, uint64_t units) {
  if (units == 0) return;
  change(by, by.slot, id, [&](uint64_t, uint64_t charge) {
    return Decision{true, charge > units ? charge - units : 0};
  });
}

// Lowers the charge of a slot whose owner `dead` is gone to `keep` units. Does nothing if the slot
// has another owner by now: the owner is read after the charge and before the total is swapped, and
// a charge can become another owner's only through a change of that total.
inline void lower_for_dead(Actor by, uint32_t slot, uint64_t dead, AccountId id, uint64_t keep) {
  change(by, slot, id, [&](uint64_t, uint64_t charge) {
    const bool still = by.grant.slots[slot].owner.load() == dead;
    return Decision{still && charge > keep, keep};
  });
}

// The bytes that are compared with the account's limit.
inline uint64_t used_bytes(Account& acct) {
  const uint64_t excess = acct.excess_units.load(std::memory_order_relaxed);
  const uint64_t units = TotalWord::unpack(acct.total.load()).units;
  return (excess < kMaxUnits - units ? units + excess : kMaxUnits) * kUnitBytes;
}

// Moves the limit of an account, exactly: a reservation that was decided by the old limit is
// counted in the result, or has to be decided again. For that, the total is swapped for one with an
// equal charge and another number, so that the swap of every process that has read the old limit
// fails. A kill in between leaves the new limit and true accounts. Returns the larger of the limit
// and what is used: no reservation takes the account beyond that until the limit moves again.
inline uint64_t set_limit(Actor by, AccountId id, uint64_t bytes) {
  Account& acct = account(by.grant, id);
  acct.limit_bytes.store(bytes);
  change(by, by.slot, id, [](uint64_t, uint64_t charge) { return Decision{true, charge}; });
  const uint64_t used = used_bytes(acct);
  return used > bytes ? used : bytes;
}

inline uint64_t charged_units(Grant& grant, uint32_t slot, uint32_t card) {
  return ChargeWord::unpack(charge_word(grant, slot, card).load()).units;
}

inline uint64_t total_units(Grant& grant, AccountId id) {
  return TotalWord::unpack(account(grant, id).total.load()).units;
}

}  // namespace mete::abi
