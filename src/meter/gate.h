// SPDX-License-Identifier: Apache-2.0
// The gate of a parkable process. Calls that touch the memory of a card pass through it, and wait
// outside while it is closed. Each thread has a word of its own that says whether the thread is
// inside. The thread that closes the gate makes every core see that (membarrier) and then reads all
// words. So a passage costs two stores and two loads, and no call is ever inside unseen.
//
// Waiting threads read the job's order in the grant file themselves: when it says "run" they open
// the gate, even if the thread that closed it hangs in the driver.
#pragma once

#include <atomic>
#include <cstdint>

#include "meter/state.h"

namespace mete::meter {

// One thread, registered at its first passage.
struct alignas(128) Inside {                      // two lines: processors fetch them in pairs
  static constexpr uint32_t kOutside = 1u << 31;  // 0: unused, or of the parent before a fork
  std::atomic<uint32_t> word;                     // kOutside plus the nesting depth
  std::atomic<int32_t> tid;
};

// State of one thread. The last two members belong to a call whose arguments lie on the stack
// (real.cc), while the thread is inside once.
struct AtGate {
  Inside* inside;
  void* caller;
  void* kept;
};
extern constinit thread_local AtGate at_gate asm("mete_at_gate");

// The slow passages: the first of a thread, a nested one, and one that finds the gate not open
// after it has entered.
Inside* enter_first_or_nested();
void enter_again(Inside* inside);

// Enters through an open gate, if the thread is registered and outside. False: it is still outside.
// A thread that has entered this way also leaves this way: nested passages have ended by then.
inline bool enter_quickly(Inside* inside) {
  if (inside->word.load(std::memory_order_relaxed) != Inside::kOutside) [[unlikely]]
    return false;
  inside->word.store(Inside::kOutside + 1, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // pairs with the membarrier
  if (process.gate.load(std::memory_order_acquire) == 0) [[likely]]
    return true;
  inside->word.store(Inside::kOutside, std::memory_order_release);
  return false;
}
inline void leave_quickly(Inside* inside) {
  inside->word.store(Inside::kOutside, std::memory_order_release);
}

// Any other entry: the first of a thread, a nested one, one that finds the gate not open.
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

// A wait in the middle of a passage: it happens outside the gate, so that parking does not wait for
// it; the thread enters again at the end, when the gate is open. Only where may_leave() allows it.
class LeaveGate {
 public:
  LeaveGate();
  ~LeaveGate();
  LeaveGate(const LeaveGate&) = delete;
  LeaveGate& operator=(const LeaveGate&) = delete;

  // True for a process without a gate and for a thread that is inside exactly once. The call around
  // a nested passage may be at work on the card, and a thread that is not inside is the one that
  // parks.
  static bool may_leave();

 private:
  Inside* inside_;  // nullptr: there is no gate
};

// Before the first passage: checks whether membarrier is available. Without it every passage is a
// slow one, with a fence of its own.
void prepare_gate();

// Closes the gate for an order, without waiting for the threads inside.
void shut_gate(uint64_t order_number);
// Closes the gate and waits until no thread is inside. False: the order has changed meanwhile, and
// the gate is open again or will be opened by the next thread that arrives.
bool close_gate(uint64_t order_number);
// Opens the gate if it was closed for this order or an earlier one.
void open_gate(uint64_t order_number);

// The job's current order.
uint64_t current_order();
// Sleeps until the order is no longer `word`, about a second at most.
void wait_for_order(uint64_t word);

}  // namespace mete::meter
