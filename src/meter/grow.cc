// SPDX-License-Identifier: Apache-2.0
// See grow.h. Nothing here calls the driver or holds a lock while it waits.
#include "meter/grow.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "abi/account.h"
#include "abi/process.h"
#include "meter/budget.h"
#include "meter/gate.h"

namespace mete::meter {
namespace {

constexpr uint64_t kPatienceNs = 2'000'000'000;
constexpr long kSliceNs = 50'000'000;  // how long a runner can be dead unnoticed

bool grows() { return (process.grant->header.features & abi::kGrowing) != 0; }

abi::GrantCard& words_of(int card) { return process.grant->header.cards[card]; }

// Somebody listens, as far as can be known: a runner in another pid namespace cannot be judged.
bool is_runner_there() {
  const uint64_t runner = process.grant->header.grower.load();
  return runner != 0 && !abi::process_is_gone(runner, process.owner);
}

bool is_answered(int card, uint64_t number) {
  return static_cast<int64_t>(words_of(card).answers.load() - number) >= 0;
}

uint64_t ask(int card, uint64_t wanted) {
  abi::GrantCard& words = words_of(card);
  abi::raise_to(words.wanted_bytes, wanted);
  const uint64_t number = words.asks.fetch_add(1) + 1;
  syscall(SYS_futex, &words.asks, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  return number;
}

// Sleeps a slice, or until something is answered.
void wait_a_little(int card, uint64_t number) {
  abi::Word& answers = words_of(card).answers;
  const uint64_t seen = answers.load();
  if (static_cast<int64_t>(seen - number) >= 0) return;
  const timespec slice{0, kSliceNs};
  syscall(SYS_futex, &answers, FUTEX_WAIT, static_cast<uint32_t>(seen), &slice, nullptr, 0);
}

// One ask and what comes of it.
enum class Outcome { kTaken, kAnswered, kParked, kNobody };
Outcome ask_and_wait(int card, uint64_t units, uint64_t wanted, uint64_t until_ns) {
  CardState& state = process.cards[card];
  const uint64_t order = current_order();
  const uint64_t number = ask(card, wanted);
  // Who has let a whole wait pass in silence is not waited for again before it answers that ask.
  const uint64_t silent = state.unanswered.load();
  const bool patient = silent == 0 || is_answered(card, silent);
  for (;;) {
    if (patient) {
      const LeaveGate outside;
      wait_a_little(card, number);
    }
    // Inside again, and only here anything is taken: a parked process holds no reservation.
    const bool answered = is_answered(card, number);
    if (take_if_free(card, units)) return Outcome::kTaken;
    if (current_order() != order) return Outcome::kParked;
    if (answered) return Outcome::kAnswered;
    if (!patient || !is_runner_there()) return Outcome::kNobody;
    if (abi::monotonic_ns() < until_ns) continue;
    state.unanswered.store(number);
    return Outcome::kNobody;
  }
}

}  // namespace

bool grow_and_take(int card, uint64_t units) {
  if (!grows() || !LeaveGate::may_leave() || !is_runner_there()) return false;
  abi::Account& acct = abi::account(*process.grant, account_of(card));
  const abi::GrantCard& words = words_of(card);
  uint64_t until_ns = abi::monotonic_ns() + kPatienceNs;
  for (;;) {
    const uint64_t wanted = abi::used_bytes(acct) + units * abi::kUnitBytes;
    if (wanted > words.ceiling_bytes) return false;
    switch (ask_and_wait(card, units, wanted, until_ns)) {
      case Outcome::kTaken:
        return true;
      case Outcome::kNobody:
        return false;
      case Outcome::kParked:
        // It lay parked, or was about to: that time is not the runner's.
        until_ns = abi::monotonic_ns() + kPatienceNs;
        break;
      case Outcome::kAnswered:
        // Enough was given and somebody else has taken it, or the answer was to somebody who wants
        // more: once more. Else it was a refusal.
        if (acct.limit_bytes.load() < wanted && words.answered_bytes.load() <= wanted) return false;
        if (abi::monotonic_ns() >= until_ns) return false;
        break;
    }
  }
}

uint64_t shown_bytes(int card) {
  return grows() ? words_of(card).ceiling_bytes : limit_bytes(card);
}

}  // namespace mete::meter
