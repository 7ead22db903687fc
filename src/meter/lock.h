// SPDX-License-Identifier: Apache-2.0
// The process's own lock: orders the threads of one process around its tables and its slot. Never
// held over a call into the driver, never seen by another process. All-zero is unlocked, so a wiped
// page is an unlocked lock.
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
    // 2 = somebody waits. The holder runs a few dozen instructions; only a refusal's look for the
    // dead takes longer.
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
