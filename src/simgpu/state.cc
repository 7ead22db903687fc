// SPDX-License-Identifier: Apache-2.0
// The driver's state, its fork rule, and physical memory as requests to the server.
#include "simgpu/state.h"

#include <pthread.h>
#include <string.h>

#include "abi/old_glibc.h"
#include "simgpu/client.h"
#include "simgpu/driver.h"

METE_OLD_SYMBOL(pthread_mutexattr_destroy);
METE_OLD_SYMBOL(pthread_mutexattr_init);
METE_OLD_SYMBOL(pthread_mutexattr_settype);

namespace simgpu {

constinit Driver driver = {};
thread_local constinit ThreadState thread_state __attribute__((tls_model("initial-exec"))) = {};

namespace {

constexpr uint64_t kContextMagic = 0x7874636d69736574ull;
bool fork_handler_set = false;

void after_fork_child() {
  // Another thread may have held it; in the child only the forking thread exists.
  init_mutex();
  if (driver.initialised) driver.forked = true;
  pause_forget();
  thread_state = {};
}

// The library's own lock exists before the first call.
__attribute__((constructor)) void make_mutex() { init_mutex(); }

}  // namespace

void init_mutex() {
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&driver.mutex, &kind);
  pthread_mutexattr_destroy(&kind);
}

void watch_forks() {
  if (fork_handler_set) return;
  fork_handler_set = true;
  pthread_atfork(nullptr, nullptr, after_fork_child);
}

void mark_context(Context* context) { context->magic = kContextMagic; }

Context* find_context(CUcontext handle) {
  Context* wanted = reinterpret_cast<Context*>(handle);
  if (wanted == nullptr) return nullptr;
  if (wanted == thread_state.current) return wanted;
  const Guard guard;
  for (Context* context = driver.contexts; context != nullptr; context = context->next) {
    if (context == wanted) return context->magic == kContextMagic ? context : nullptr;
  }
  return nullptr;
}

CUresult set_sticky(Context* context, CUresult fault) {
  if (context != nullptr && context->sticky == CUDA_SUCCESS) context->sticky = fault;
  return fault;
}

CUresult from_server(int status) {
  // A card that fell off the bus does not come back for the contexts that used it.
  if (status == kStatusGone) return set_sticky(thread_state.current, CUDA_ERROR_DEVICE_UNAVAILABLE);
  return static_cast<CUresult>(status);
}

CUresult phys_take(int device, size_t bytes, MemoryClass use, uint64_t* id) {
  Reply reply{};
  const int status = call_server(Op::kTake, driver.devices[device].card, bytes,
                                 static_cast<uint64_t>(use), &reply);
  if (status == 0) *id = reply.v[0];
  return from_server(status);
}

CUresult phys_resize(uint64_t id, size_t bytes) {
  return from_server(call_server(Op::kResize, id, bytes, 0, nullptr));
}

void phys_give(uint64_t id) {
  if (id != 0) (void)call_server(Op::kGive, id, 0, 0, nullptr);
}

CUresult phys_usage(int device, uint64_t* used, uint64_t* total) {
  Reply reply{};
  const int status = call_server(Op::kUsage, driver.devices[device].card, 0, 0, &reply);
  *used = reply.v[0];
  *total = reply.v[1];
  return from_server(status);
}

}  // namespace simgpu
