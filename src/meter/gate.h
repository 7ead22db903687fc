// SPDX-License-Identifier: Apache-2.0
// The gate of a parkable process: calls that touch a card's memory pass through it, and while it is
// closed they wait outside. Each thread has a word of its own that says whether it is inside; who
// closes the gate makes every core see that (membarrier) and then looks at all the words. So a
// passage costs two stores and two loads, and there is no moment at which a call is inside unseen.
//
// Threads that wait look at the job's order in the grant file themselves: when it says "run" they
// open the gate, also if the thread that closed it hangs in the driver.
#pragma once

#include <atomic>
#include <cstdint>

#include "meter/state.h"

namespace mete::meter {

// One thread, registered at its first passage.
struct alignas(128) Inside {                      // two lines: processors fetch them in pairs
  static constexpr uint32_t kOutside = 1u << 31;  // 0: nobody's, or of the parent before a fork
  std::atomic<uint32_t> word;                     // kOutside plus how deep it is inside
  std::atomic<int32_t> tid;
};

// What a thread keeps of its own. The last two are of a call whose arguments lie on the stack
// (real.cc), while the thread stands inside once.
struct AtGate {
  Inside* inside;
  void* caller;
  void* kept;
};
extern constinit thread_local AtGate at_gate asm("mete_at_gate");

// The passages that are not simply through an open gate: a thread's first, or a nested one; and one
// that stands inside and finds the gate not open.
Inside* enter_first_or_nested();
void enter_again(Inside* inside);

// Through an open gate, by a thread that is known and stands outside. False: it still does. Whoever
// has entered so leaves so: what is nested in between has left by then.
inline bool enter_quickly(Inside* inside) {
  if (inside->word.load(std::memory_order_relaxed) != Inside::kOutside) [[unlikely]]
    return false;
  inside->word.store(Inside::kOutside + 1, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // the other half is the membarrier
  if (process.gate.load(std::memory_order_acquire) == 0) [[likely]]
    return true;
  inside->word.store(Inside::kOutside, std::memory_order_release);
  return false;
}
inline void leave_quickly(Inside* inside) {
  inside->word.store(Inside::kOutside, std::memory_order_release);
}

// Any other way in: a thread's first, a nested one, one that finds the gate not open.
class Passage {
 public:
  Passage() : inside_(at_gate.inside) {
    if (inside_->word.load(std::memory_order_relaxed) != Inside::kOutside) {
      inside_ = enter_first_or_nested();
      return;
    }
    inside_->word.store(Inside::kOutside + 1, std::memory_order_relaxed);
    enter_again(inside_);
  }
  ~Passage() {
    inside_->word.store(inside_->word.load(std::memory_order_relaxed) - 1,
                        std::memory_order_release);
  }
  Passage(const Passage&) = delete;
  Passage& operator=(const Passage&) = delete;

 private:
  Inside* inside_;
};

// A wait in the middle of a passage: outside the gate, so that parking does not wait for it, and
// in again at the end, when the gate is open. Only where may_leave() says so.
class LeaveGate {
 public:
  LeaveGate();
  ~LeaveGate();
  LeaveGate(const LeaveGate&) = delete;
  LeaveGate& operator=(const LeaveGate&) = delete;

  // Of a parkable process only a thread that stands inside once: the call around a nested passage
  // may be at work on the card, and who does not stand inside is the one that parks.
  static bool may_leave();

 private:
  Inside* inside_;  // nullptr: there is no gate
};

// Before the first passage: whether membarrier is to be had; without it every passage is a slow one
// that orders by itself.
void prepare_gate();

// Closes it for an order; whoever is inside is not waited for.
void shut_gate(uint64_t order_number);
// The same, and waits until nobody is inside. False: the order has changed meanwhile,
// and the gate is open again or will be by whoever comes.
bool close_gate(uint64_t order_number);
// Opens it if it was closed for that order or one before.
void open_gate(uint64_t order_number);

// The job's order as it is now.
uint64_t current_order();
// Sleeps until it is not `word` any more, or about a second.
void wait_for_order(uint64_t word);

}  // namespace mete::meter
