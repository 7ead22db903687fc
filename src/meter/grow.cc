// SPDX-License-Identifier: Apache-2.0
// See grow.h. Nothing here calls the driver, and no lock is held while waiting.
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
constexpr long kSliceNs = 50'000'000;  // how long a dead runner can stay unnoticed

bool grows() { return (process.grant->header.features & abi::kGrowing) != 0; }

abi::GrantCard& words_of(int card) { return process.grant->header.cards[card]; }

// True if a runner listens, as far as can be known: the state of a runner in another pid namespace
// cannot be determined.
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

// Sleeps for one slice, or until the runner answers.
void wait_a_little(int card, uint64_t number) {
  abi::Word& answers = words_of(card).answers;
  const uint64_t seen = answers.load();
  if (static_cast<int64_t>(seen - number) >= 0) return;
  const timespec slice{0, kSliceNs};
  syscall(SYS_futex, &answers, FUTEX_WAIT, static_cast<uint32_t>(seen), &slice, nullptr, 0);
}

// Asks once and waits for the outcome.
enum class Outcome { kTaken, kAnswered, kParked, kNobody };
Outcome ask_and_wait(int card, uint64_t units, uint64_t wanted, uint64_t until_ns) {
  CardState& state = process.cards[card];
  const uint64_t order = current_order();
  const uint64_t number = ask(card, wanted);
  // A runner that has let a whole wait pass is not waited for again until it answers that ask.
  const uint64_t silent = state.unanswered.load();
  const bool patient = silent == 0 || is_answered(card, silent);
  for (;;) {
    if (patient) {
      const LeaveGate outside;
      wait_a_little(card, number);
    }
    // Inside the gate again. Units are taken only here, so a parked process holds no reservation.
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
        // The process was parked, or about to be: that time does not count against the runner.
        until_ns = abi::monotonic_ns() + kPatienceNs;
        break;
      case Outcome::kAnswered:
        // Either enough was granted and another process has taken it, or the answer was for a
        // process that wants more: ask again. Otherwise it was a refusal.
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
