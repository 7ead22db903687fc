// SPDX-License-Identifier: Apache-2.0
// The gate that cuCheckpointProcessLock closes in another process: a page that the server shares
// with it. A call counts itself in, then checks whether the gate is closed; the server closes it,
// then checks whether a call is inside.
#include <errno.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "simgpu/client.h"
#include "simgpu/driver.h"

namespace simgpu {
namespace {

PausePage* page = nullptr;
// Entry points call one another: only the outermost counts.
thread_local constinit int depth __attribute__((tls_model("initial-exec"))) = 0;

PausePage* current_page() { return __atomic_load_n(&page, __ATOMIC_ACQUIRE); }

}  // namespace

bool pause_enter() {
  PausePage* const here = current_page();
  if (here == nullptr) return false;
  if (depth++ > 0) return true;
  const int saved = errno;
  for (;;) {
    __atomic_fetch_add(&here->inside, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&here->locked, __ATOMIC_SEQ_CST) == 0) break;
    __atomic_fetch_sub(&here->inside, 1, __ATOMIC_SEQ_CST);
    const timespec second{1, 0};
    syscall(SYS_futex, &here->locked, FUTEX_WAIT, 1, &second, nullptr, 0);
  }
  errno = saved;
  return true;
}

void pause_leave() {
  if (--depth > 0) return;
  PausePage* const here = current_page();
  if (here != nullptr) __atomic_fetch_sub(&here->inside, 1, __ATOMIC_SEQ_CST);
}

void pause_pending(int change) {
  PausePage* const here = current_page();
  if (here != nullptr)
    __atomic_fetch_add(&here->pending, static_cast<uint32_t>(change), __ATOMIC_SEQ_CST);
}

void pause_busy_until(int64_t ns) {
  PausePage* const here = current_page();  // under the driver's lock: no other thread writes
  if (here != nullptr && here->busy_until_ns < ns)
    __atomic_store_n(&here->busy_until_ns, ns, __ATOMIC_SEQ_CST);
}

void pause_begin() {
  int fd = -1;
  Call call;
  call.request.op = static_cast<uint32_t>(Op::kPause);
  call.receive_fd = &fd;
  if (call_server(&call) != kStatusOk || fd < 0) return;
  void* const shared = mmap(nullptr, sizeof(PausePage), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (shared != MAP_FAILED)
    __atomic_store_n(&page, static_cast<PausePage*>(shared), __ATOMIC_RELEASE);
}

void pause_forget() {
  page = nullptr;
  depth = 0;
}

}  // namespace simgpu
