// SPDX-License-Identifier: Apache-2.0
// The process's own lock: it orders the threads of one process around its tables and its slot. It
// is never held over a call into the driver, and never seen by another process. All-zero is
// unlocked, so a wiped page is an unlocked lock.
#pragma once

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace mete::meter {

class Lock {
 public:
  void acquire() {
    uint32_t seen = 0;
    if (word_.compare_exchange_strong(seen, 1, std::memory_order_acquire)) return;
    // 2 means that a thread waits. The holder runs a few dozen instructions; only the search for
    // dead processes before a refusal takes longer.
    const int saved = errno;
    while (word_.exchange(2, std::memory_order_acquire) != 0)
      syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, 2, nullptr, nullptr, 0);
    errno = saved;
  }
  void release() {
    if (word_.exchange(0, std::memory_order_release) == 2)
      syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }

 private:
  std::atomic<uint32_t> word_{0};
};

class Locked {
 public:
  explicit Locked(Lock& lock) : lock_(lock) { lock_.acquire(); }
  ~Locked() { lock_.release(); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  Lock& lock_;
};

}  // namespace mete::meter
