// SPDX-License-Identifier: Apache-2.0
// Every hook reserves through take(). The fast path is one attempt in the grant file under the
// process's lock. If there is no room, take_slowly() frees what it can, in this order: the charges
// of dead processes, exports that no process holds any more, idle pool and graph memory of this
// process. Then it waits for reservations of other processes that may come back, and last asks the
// runner for a larger grant. pending() counts the units whose driver call has not returned yet.
#include "meter/budget.h"

#include <errno.h>
#include <time.h>

#include "abi/process.h"
#include "abi/reserve.h"
#include "meter/grow.h"
#include "meter/pool.h"
#include "meter/share.h"

namespace mete::meter {
namespace {

constexpr uint64_t kWaitNs = 10'000'000;
constexpr uint64_t kRecentDeathNs = 1'000'000'000;

abi::Actor me() { return {*process.grant, static_cast<uint32_t>(my_slot())}; }

// Only its units are added and subtracted; the other bits of the word stay unchanged.
abi::Word& pending(int card) { return process.grant->slots[my_slot()].cards[card].pending; }

// A reservation counts as pending once it is made, not while it is attempted: other processes wait
// for units that may come back, never for units that were not granted.
bool try_once(int card, uint64_t units) {
  Locked locked(process.lock);
  if (!abi::try_take(me(), account_of(card), units)) return false;
  pending(card).fetch_add(units);
  return true;
}

// Gives back the charges of dead processes and evaluates NVML's readings again. The look into /proc
// takes microseconds for each living process, so the lock is not held during it.
void reap(int card) {
  abi::Grant& grant = *process.grant;
  for (uint32_t s = 0; s < abi::slot_count(grant); ++s) {
    const uint64_t owner = grant.slots[s].owner.load();
    if (static_cast<int>(s) == my_slot() || !abi::is_gone(grant, s, owner, viewer())) continue;
    Locked locked(process.lock);
    abi::reap_slot(me(), s, owner, viewer());
  }
  abi::recompute_excess(grant, account_of(card));
}

// Units that are reserved for calls still in the driver. Some of them will come back.
uint64_t all_pending(int card) {
  uint64_t sum = 0;
  for (uint32_t s = 0; s < abi::slot_count(*process.grant); ++s) {
    abi::Slot& slot = process.grant->slots[s];
    if (slot.owner.load() != 0 && slot.part.load() == process.part)
      sum += abi::pending_units(slot.cards[card]);
  }
  return sum;
}

bool take_slowly(int card, uint64_t units, bool may_grow) {
  reap(card);
  collect_exports();
  if (try_once(card, units)) return true;
  if (trim_own(card) && try_once(card, units)) return true;
  // Another process may have reserved more than its call will need. Wait for it only if that could
  // make enough room.
  abi::Account& acct = abi::account(*process.grant, account_of(card));
  const uint64_t start = abi::monotonic_ns();
  for (;;) {
    const uint64_t unsettled = all_pending(card);
    if (unsettled == 0) break;
    const uint64_t total = abi::total_units(*process.grant, account_of(card));
    if (!abi::fits(acct, total > unsettled ? total - unsettled : 0, units)) break;
    if (abi::monotonic_ns() - start > kWaitNs) break;
    abi::sleep_quietly(50'000);
    if (try_once(card, units)) return true;
  }
  if (try_once(card, units) || (may_grow && grow_and_take(card, units))) return true;
  acct.refusals.fetch_add(1);
  return false;
}

}  // namespace

bool take_if_free(int card, uint64_t units) {
  if (units > abi::kMaxUnits || my_slot() < 0) return false;
  return try_once(card, units);
}

bool take(int card, uint64_t units, bool may_grow) {
  if (my_slot() < 0) return false;
  if (units > abi::kMaxUnits) {
    abi::account(*process.grant, account_of(card)).refusals.fetch_add(1);
    return false;
  }
  if (try_once(card, units)) return true;
  const int saved = errno;
  const bool taken = take_slowly(card, units, may_grow);
  errno = saved;
  return taken;
}

void settle(int card, uint64_t reserved, uint64_t used) {
  if ((reserved == 0 && used == 0) || my_slot() < 0) return;
  if (reserved != used) {
    Locked locked(process.lock);
    if (reserved > used)
      abi::give_back(me(), account_of(card), reserved - used);
    else
      abi::take_anyway(me(), account_of(card), used - reserved);
  }
  pending(card).fetch_sub(reserved);
}

void charge_anyway(int card, uint64_t units) {
  if (units == 0 || my_slot() < 0) return;
  Locked locked(process.lock);
  abi::take_anyway(me(), account_of(card), units);
}

void release(int card, uint64_t units) {
  if (units == 0 || my_slot() < 0) return;
  Locked locked(process.lock);
  abi::give_back(me(), account_of(card), units);
}

void notice_deaths(int card) {
  if (my_slot() < 0) return;
  const auto own = static_cast<uint32_t>(my_slot());
  if (abi::total_units(*process.grant, account_of(card)) ==
      abi::charged_units(*process.grant, own, static_cast<uint32_t>(card)))
    return;  // no other process holds anything
  const uint64_t start = abi::monotonic_ns();
  if (start < process.next_look_ns.load(std::memory_order_relaxed)) return;
  const int saved = errno;
  reap(card);
  collect_exports();
  errno = saved;
  // The next look comes after twenty times the duration of this one, so that a program that asks in
  // a loop spends at most 5 % of its time here.
  const uint64_t end = abi::monotonic_ns();
  process.next_look_ns.store(end + (end - start) * 20, std::memory_order_relaxed);
}

uint64_t limit_bytes(int card) {
  return abi::account(*process.grant, account_of(card)).limit_bytes.load(std::memory_order_relaxed);
}

uint64_t charged_bytes(int card) {
  abi::Account& acct = abi::account(*process.grant, account_of(card));
  return (abi::total_units(*process.grant, account_of(card)) + acct.excess_units.load()) *
         abi::kUnitBytes;
}

bool worth_another_try(int* tries) {
  abi::Word& refusals = process.grant->header.driver_refusals;
  if (*tries >= 200) {
    refusals.fetch_add(1);
    return false;
  }
  if (*tries == 0 && my_slot() >= 0) {
    // The grant may have had room without the bytes of the dead process, so that no reap has
    // happened yet.
    for (uint32_t c = 0; c < process.grant->header.card_count; ++c) reap(static_cast<int>(c));
  }
  const uint64_t died = process.grant->header.last_reap_ns.load();
  if (died == 0 || abi::monotonic_ns() - died > kRecentDeathNs) {
    refusals.fetch_add(1);
    return false;
  }
  ++*tries;
  const int saved = errno;
  abi::sleep_quietly(1'000'000);
  errno = saved;
  return true;
}

void pause_briefly() {
  const int saved = errno;
  abi::sleep_quietly(50'000);
  errno = saved;
}

void note_unseen(int card, int64_t units) {
  if (my_slot() >= 0)
    process.grant->slots[my_slot()].cards[card].unseen_units.fetch_add(
        static_cast<uint64_t>(units));
}

}  // namespace mete::meter
