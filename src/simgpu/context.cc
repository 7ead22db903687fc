// SPDX-License-Identifier: Apache-2.0
// Contexts: their cost, their beginning and end, each thread's stack of them. A context takes its
// measured memory from the server as pieces of its own; its end releases everything that is linked
// to it. cuCtxGetCurrent and cuCtxGetDevice only read the thread's own state.
#include <stdlib.h>
#include <string.h>

#include "simgpu/state.h"

namespace simgpu {
namespace {

size_t local_memory(const Device& device, size_t stack) {
  return round_granule(static_cast<size_t>(device.info.sms) * kThreadsPerSm * stack);
}

void set_default_limits(Context* context) {
  size_t* limits = context->limits;
  memset(limits, 0, sizeof context->limits);
  limits[CU_LIMIT_STACK_SIZE] = kDefaultStack;
  limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 8650752;
  limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8388608;
  limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
  limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
  limits[CU_LIMIT_PERSISTING_L2_CACHE_SIZE] = 11796480;
  limits[CU_LIMIT_SHMEM_SIZE] = 232448;
}

bool any_context_on(int device) {
  for (Context* c = driver.contexts; c != nullptr; c = c->next) {
    if (c->device == device && !c->ended) return true;
  }
  return false;
}

// The measured cost includes local memory for the default stack; that part follows the limit.
CUresult take_context_memory(Context* context, int device) {
  const size_t cost = any_context_on(device) ? kNextContextBytes : kContextBytes;
  const size_t local = local_memory(driver.devices[device], kDefaultStack);
  const size_t base = cost > local ? cost - local : kGranule;
  CUresult result = phys_take(device, base, MemoryClass::kContext, &context->piece);
  if (result != CUDA_SUCCESS) return result;
  result = phys_take(device, local, MemoryClass::kPlain, &context->stack_piece);
  if (result != CUDA_SUCCESS) {
    phys_give(context->piece);
    context->piece = 0;
  }
  return result;
}

void release_ranges(Context* context) {
  while (context->ranges != nullptr) {
    Range* range = context->ranges;
    range_unlink(range);
    if (range->ops != nullptr && range->ops->release != nullptr) {
      (void)range->ops->release(range, range->base);
    }
  }
}

bool push(Context* context) {
  ThreadState& thread = thread_state;
  if (thread.current != nullptr) {
    if (thread.depth == static_cast<int>(sizeof thread.below / sizeof thread.below[0]))
      return false;
    thread.below[thread.depth++] = thread.current;
  }
  thread.current = context;
  return true;
}

Context* pop() {
  ThreadState& thread = thread_state;
  Context* top = thread.current;
  thread.current = thread.depth > 0 ? thread.below[--thread.depth] : nullptr;
  return top;
}

CUresult create(CUcontext* out, unsigned flags, CUdevice device) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
  if ((flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) != 0) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Context* made = nullptr;
  const CUresult result = context_make(device, flags, false, &made);
  if (result != CUDA_SUCCESS) return result;
  if (!push(made)) {
    context_end(made);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *out = handle_of(made);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult context_make(int device, unsigned flags, bool primary, Context** made) {
  Context* context = primary ? driver.devices[device].primary : nullptr;
  const bool fresh = context == nullptr;
  if (fresh) context = static_cast<Context*>(calloc(1, sizeof(Context)));
  if (context == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = take_context_memory(context, device);
  if (result != CUDA_SUCCESS) {
    if (fresh) free(context);
    return result;
  }
  mark_context(context);
  context->id = ++driver.next_id;
  context->device = device;
  context->flags = flags;
  context->primary = primary;
  context->ended = false;
  context->uses = 1;
  context->api_version = 3020;
  context->sticky = CUDA_SUCCESS;
  set_default_limits(context);
  if (fresh) {
    context->next = driver.contexts;
    driver.contexts = context;
  }
  *made = context;
  return CUDA_SUCCESS;
}

void context_end(Context* context) {
  if (context->ended) return;
  graphs_end(context);
  modules_end(context);
  streams_end(context);
  arrays_end(context);
  release_ranges(context);
  slabs_end(context);
  host_end(context);
  context->ended = true;
  phys_give(context->heap_piece);
  phys_give(context->stack_piece);
  phys_give(context->piece);
  context->heap_piece = context->stack_piece = context->piece = 0;
  context->peers = 0;
  if (!any_context_on(context->device)) pools_end(device_of(context));
}

}  // namespace simgpu

using namespace simgpu;

extern "C" CUresult cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device) {
  SIM_ENTRY(cuCtxCreate_v2);
  return create(context, flags, device);
}

extern "C" CUresult cuCtxCreate(CUcontext* context, unsigned int flags, CUdevice device) {
  SIM_ENTRY(cuCtxCreate);
  const CUresult result = create(context, flags, device);
  if (result == CUDA_SUCCESS) current_context()->api_version = kOldApi;
  return result;
}

extern "C" CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam*, int affinities,
                                   unsigned int flags, CUdevice device) {
  SIM_ENTRY(cuCtxCreate_v3);
  if (affinities < 0) return CUDA_ERROR_INVALID_VALUE;
  // A share of the SMs needs MPS, which is not simulated.
  if (affinities > 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return create(context, flags, device);
}

extern "C" CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* params,
                                   unsigned int flags, CUdevice device) {
  SIM_ENTRY(cuCtxCreate_v4);
  if (params != nullptr && params->numExecAffinityParams > 0) {
    return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  }
  return create(context, flags, device);
}

extern "C" CUresult cuCtxDestroy_v2(CUcontext handle) {
  SIM_ENTRY(cuCtxDestroy_v2);
  Context* context = find_context(handle);
  if (context == nullptr || context->ended || context->primary) return CUDA_ERROR_INVALID_CONTEXT;
  (void)context_synchronize(context);
  const Guard guard;
  context_end(context);
  if (thread_state.current == context) (void)pop();
  return CUDA_SUCCESS;
}

extern "C" CUresult cuCtxDestroy(CUcontext handle) {
  SIM_ENTRY_FREE(cuCtxDestroy);
  return cuCtxDestroy_v2(handle);
}

// Old interface: one more use of the current context, and one less; the last ends it.
extern "C" CUresult cuCtxAttach(CUcontext* handle, unsigned int flags) {
  SIM_ENTRY_CONTEXT(cuCtxAttach);
  if (handle == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Context* context = current_context();
  if (context->primary) return CUDA_ERROR_INVALID_CONTEXT;
  ++context->uses;
  *handle = handle_of(context);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuCtxDetach(CUcontext handle) {
  SIM_ENTRY(cuCtxDetach);
  Context* context = find_context(handle);
  if (context == nullptr || context->ended || context->primary || thread_state.current != context) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  {
    const Guard guard;
    if (context->uses > 1) {
      --context->uses;
      return CUDA_SUCCESS;
    }
  }
  return cuCtxDestroy_v2(handle);
}

// Contexts for graphics: the simulation cannot draw, so they are ordinary contexts.
extern "C" CUresult cuGLCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device) {
  SIM_ENTRY(cuGLCtxCreate_v2);
  return create(context, flags, device);
}

extern "C" CUresult cuGLCtxCreate(CUcontext* context, unsigned int flags, CUdevice device) {
  SIM_ENTRY(cuGLCtxCreate);
  return create(context, flags, device);
}

extern "C" CUresult cuVDPAUCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device,
                                        unsigned int, void*) {
  SIM_ENTRY(cuVDPAUCtxCreate_v2);
  return create(context, flags, device);
}

extern "C" CUresult cuVDPAUCtxCreate(CUcontext* context, unsigned int flags, CUdevice device,
                                     unsigned int, void*) {
  SIM_ENTRY(cuVDPAUCtxCreate);
  return create(context, flags, device);
}

extern "C" CUresult cuCtxPushCurrent_v2(CUcontext handle) {
  SIM_ENTRY(cuCtxPushCurrent_v2);
  Context* context = find_context(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return push(context) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

extern "C" CUresult cuCtxPushCurrent(CUcontext handle) {
  SIM_ENTRY_FREE(cuCtxPushCurrent);
  return cuCtxPushCurrent_v2(handle);
}

extern "C" CUresult cuCtxPopCurrent_v2(CUcontext* handle) {
  SIM_ENTRY(cuCtxPopCurrent_v2);
  if (thread_state.current == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  Context* top = pop();
  if (handle != nullptr) *handle = handle_of(top);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuCtxPopCurrent(CUcontext* handle) {
  SIM_ENTRY_FREE(cuCtxPopCurrent);
  return cuCtxPopCurrent_v2(handle);
}

extern "C" CUresult cuCtxSetCurrent(CUcontext handle) {
  SIM_ENTRY(cuCtxSetCurrent);
  if (handle == nullptr) {
    (void)pop();
    return CUDA_SUCCESS;
  }
  Context* context = find_context(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  thread_state.current = context;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuCtxGetCurrent(CUcontext* handle) {
  SIM_ENTRY(cuCtxGetCurrent);
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *handle = handle_of(thread_state.current);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuCtxGetDevice(CUdevice* device) {
  SIM_ENTRY(cuCtxGetDevice);
  const Context* context = thread_state.current;
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = context->device;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext handle) {
  SIM_ENTRY(cuCtxGetDevice_v2);
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Context* context = handle == nullptr ? thread_state.current : find_context(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *device = context->device;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuCtxGetFlags(unsigned int* flags) {
  SIM_ENTRY_CONTEXT(cuCtxGetFlags);
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = current_context()->flags;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuCtxGetApiVersion(CUcontext handle, unsigned int* version) {
  SIM_ENTRY(cuCtxGetApiVersion);
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Context* context = handle == nullptr ? thread_state.current : find_context(handle);
  if (context == nullptr || context->ended) return CUDA_ERROR_INVALID_CONTEXT;
  *version = context->api_version;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  SIM_ENTRY_CONTEXT(cuCtxGetStreamPriorityRange);
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuCtxSynchronize(void) {
  SIM_ENTRY_CONTEXT(cuCtxSynchronize);
  return context_synchronize(current_context());
}

extern "C" CUresult cuCtxSynchronize_v2(CUcontext handle) {
  SIM_ENTRY(cuCtxSynchronize_v2);
  Context* context = handle == nullptr ? thread_state.current : find_context(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (context->ended) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return context_synchronize(context);
}

extern "C" CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
  SIM_ENTRY_CONTEXT(cuCtxGetLimit);
  const int number = static_cast<int>(limit);
  if (value == nullptr || number < 0 || number >= CU_LIMIT_MAX) return CUDA_ERROR_INVALID_VALUE;
  if (limit == CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH || limit == CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED) {
    return CUDA_ERROR_UNSUPPORTED_LIMIT;
  }
  *value = current_context()->limits[number];
  return CUDA_SUCCESS;
}

extern "C" CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  SIM_ENTRY_CONTEXT(cuCtxSetLimit);
  const int number = static_cast<int>(limit);
  if (number < 0 || number >= CU_LIMIT_MAX) return CUDA_ERROR_INVALID_VALUE;
  if (limit == CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH || limit >= CU_LIMIT_SHMEM_SIZE) {
    return CUDA_ERROR_UNSUPPORTED_LIMIT;
  }
  const Guard guard;
  Context* context = current_context();
  if (limit == CU_LIMIT_STACK_SIZE) {
    // Local memory for every thread the card can hold is taken at once, not at a launch.
    if (value > (512u << 10)) return CUDA_ERROR_INVALID_VALUE;
    value = (value + 15) & ~static_cast<size_t>(15);
    const size_t local = local_memory(*device_of(context), value == 0 ? 16 : value);
    const CUresult result = phys_resize(context->stack_piece, local);
    if (result != CUDA_SUCCESS) return result;
  }
  context->limits[number] = value;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuCtxEnablePeerAccess(CUcontext handle, unsigned int flags) {
  SIM_ENTRY_CONTEXT(cuCtxEnablePeerAccess);
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const Context* peer = find_context(handle);
  if (peer == nullptr || peer->ended) return CUDA_ERROR_INVALID_CONTEXT;
  Context* context = current_context();
  int can = 0;
  (void)cuDeviceCanAccessPeer(&can, context->device, peer->device);
  if (can == 0) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  const Guard guard;
  if ((context->peers >> peer->device & 1u) != 0) return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  context->peers |= 1u << peer->device;
  return CUDA_SUCCESS;
}
