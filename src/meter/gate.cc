// SPDX-License-Identifier: Apache-2.0
// See gate.h. The gate's word: 0 is open; bit 0 is "closed", bit 1 is "no membarrier here", the
// bits above are the number of the order that it was closed for. To close it, the park thread sets
// the word, runs membarrier, and then waits for each registered thread whose own word says
// "inside". A thread that enters sets its word first and then looks at the gate, so one of the two
// sees the other.
#include "meter/gate.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "abi/park.h"
#include "abi/process.h"

namespace mete::meter {

namespace {

constexpr uint64_t kClosed = 1;
constexpr uint64_t kFence = 2;
constexpr int kNumberShift = 2;
constexpr size_t kMaxThreads = 1 << 16;

constinit Inside nobody = {};
constinit thread_local Inside uncounted = {};

long membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0); }

bool is_alive(int32_t tid) { return syscall(SYS_tgkill, getpid(), tid, 0) == 0 || errno != ESRCH; }

// A word for this thread. The word of a thread that has ended is used again.
Inside* new_word() {
  const auto tid = static_cast<int32_t>(syscall(SYS_gettid));
  Locked locked(process.gate_lock);
  if (process.insides == nullptr) {
    process.insides = static_cast<Inside*>(map_pages(kMaxThreads * sizeof(Inside)));
    if (process.insides == nullptr) return nullptr;
    // The words of a forked child are zero, so that the child registers its own threads.
    (void)madvise(process.insides, kMaxThreads * sizeof(Inside), MADV_WIPEONFORK);
  }
  const size_t used = process.inside_count;
  // A look for ended threads costs a system call for each, so it is done only when the number of
  // threads has doubled since the last look.
  if (used >= process.inside_look_at) {
    process.inside_look_at = used * 2 > 64 ? used * 2 : 64;
    for (size_t i = 0; i < used; ++i) {
      Inside& one = process.insides[i];
      if (is_alive(one.tid.load())) continue;
      one.tid.store(tid);
      one.word.store(Inside::kOutside);
      process.inside_look_at = used;
      return &one;
    }
  }
  if (used == kMaxThreads) return nullptr;
  Inside& one = process.insides[used];
  one.tid.store(tid);
  one.word.store(Inside::kOutside);
  process.inside_count = used + 1;
  return &one;
}

// Opens the gate if the order allows it, otherwise sleeps until the order changes.
void wait_outside() {
  const uint64_t seen = process.gate.load(std::memory_order_acquire);
  if ((seen & kClosed) == 0) return;
  const uint64_t word = current_order();
  const abi::ParkOrder order = abi::ParkOrder::unpack(word);
  if (order.kind == abi::ParkOrder::kRun && order.number >= seen >> kNumberShift) {
    open_gate(order.number);
    return;
  }
  // A process that was parked because it was idle is not idle any more.
  process.grant->header.park_knocks.fetch_add(1, std::memory_order_relaxed);
  wait_for_order(word);
}

}  // namespace

constinit thread_local AtGate at_gate = {&nobody, nullptr, nullptr};

Inside* enter_first_or_nested() {
  const uint32_t word = at_gate.inside->word.load(std::memory_order_relaxed);
  if (word > Inside::kOutside) {
    at_gate.inside->word.store(word + 1, std::memory_order_relaxed);
    return at_gate.inside;
  }
  const int saved = errno;
  at_gate.inside = new_word();
  if (at_gate.inside == nullptr) {
    // Too many threads, or no memory. No thread looks at this word: the process is never parked.
    process.uncounted.store(true);
    at_gate.inside = &uncounted;
    at_gate.inside->word.store(Inside::kOutside);
  }
  at_gate.inside->word.store(Inside::kOutside + 1, std::memory_order_relaxed);
  errno = saved;
  enter_again(at_gate.inside);
  return at_gate.inside;
}

void enter_again(Inside* inside) {
  const int saved = errno;
  for (;;) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if ((process.gate.load(std::memory_order_acquire) & kClosed) == 0) break;
    inside->word.store(Inside::kOutside, std::memory_order_release);
    wait_outside();
    inside->word.store(Inside::kOutside + 1, std::memory_order_relaxed);
  }
  errno = saved;
}

bool LeaveGate::may_leave() {
  return !process.parkable.load(std::memory_order_relaxed) ||
         at_gate.inside->word.load(std::memory_order_relaxed) == Inside::kOutside + 1;
}

LeaveGate::LeaveGate()
    : inside_(process.parkable.load(std::memory_order_relaxed) ? at_gate.inside : nullptr) {
  if (inside_ != nullptr) inside_->word.store(Inside::kOutside, std::memory_order_release);
}

LeaveGate::~LeaveGate() {
  if (inside_ == nullptr) return;
  inside_->word.store(Inside::kOutside + 1, std::memory_order_relaxed);
  enter_again(inside_);
}

void prepare_gate() {
  if (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0) return;
  process.gate.fetch_or(kFence);
}

void shut_gate(uint64_t order_number) {
  const uint64_t fence = process.gate.load() & kFence;
  process.gate.store(order_number << kNumberShift | fence | kClosed);
  if (fence == 0) (void)membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

bool close_gate(uint64_t order_number) {
  shut_gate(order_number);
  const uint64_t word = current_order();
  if (abi::ParkOrder::unpack(word).number != order_number) return false;
  for (size_t i = 0;; ++i) {
    {
      Locked locked(process.gate_lock);
      if (i >= process.inside_count) return true;
    }
    const Inside& one = process.insides[i];
    while (one.word.load(std::memory_order_acquire) > Inside::kOutside && is_alive(one.tid)) {
      abi::sleep_quietly(50'000);
      if (current_order() != word) return false;
    }
  }
}

void open_gate(uint64_t order_number) {
  uint64_t seen = process.gate.load(std::memory_order_acquire);
  while ((seen & kClosed) != 0 && seen >> kNumberShift <= order_number)
    if (process.gate.compare_exchange_weak(seen, seen & kFence)) return;
}

uint64_t current_order() {
  return process.grant->header.park_order.load(std::memory_order_acquire);
}

void wait_for_order(uint64_t word) {
  const timespec second{1, 0};
  // Shared between processes: a futex on the low half of the word, which differs in every order.
  syscall(SYS_futex, &process.grant->header.park_order, FUTEX_WAIT, static_cast<uint32_t>(word),
          &second, nullptr, 0);
}

}  // namespace mete::meter
