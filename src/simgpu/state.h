// SPDX-License-Identifier: Apache-2.0
// Between state.cc and the core's own entry points; other parts use only driver.h.
#pragma once

#include "simgpu/driver.h"

namespace simgpu {

void init_mutex();
void watch_forks();
void mark_context(Context* context);
// A reply's status as the caller sees it; the loss of card or server sticks to the current context.
CUresult from_server(int status);

// old.cc: a context made by cuCtxCreate of CUDA 3.1, whose functions accept no other contexts.
inline constexpr unsigned kOldApi = 3010;
inline bool is_old(const Context* context) { return context->api_version <= kOldApi; }
// va.cc: addresses that the context's functions can express, below 4 GiB for an old one; 0: none
// left.
CUdeviceptr va_take_in(const Context* context, size_t bytes);

// stream_api.cc: the end of a synchronous call: waits until its default stream, and what that waits
// for, is done. Streams that do not wait for the legacy stream go on. Without holding the Guard.
CUresult wait_for_default_stream(bool per_thread);

// context.cc: makes or ends a context (Guard held).
CUresult context_make(int device, unsigned flags, bool primary, Context** made);
void context_end(Context* context);

// alloc.cc, array.cc, host.cc: what ends with a context (Guard held).
void slabs_end(Context* context);
void arrays_end(Context* context);

CUresult memory_take(Context* context, size_t bytes, CUdeviceptr* p);  // alloc.cc
CUresult memory_give(CUdeviceptr p);

// host.cc: memory of the host that the driver knows.
enum class HostKind : uint8_t { kAllocated, kManaged };
struct HostRange {
  uintptr_t base;
  size_t bytes;  // as asked for
  size_t mapped;
  HostKind kind;
  Context* context;
  int device;
  uint64_t buffer_id;
  uint64_t piece;  // managed: memory it occupies on the card once the card touched it; 0 none
  int resident;    // managed: on which device; -1: host
  // Managed: the last cuMemAdvise and prefetch. A place is 0: none, 1: host, 2 + a device.
  bool read_mostly;
  int preferred;
  int prefetched;
  uint64_t accessed_by;  // one bit a place
};
HostRange* host_find(uintptr_t p);
void host_end(Context* context);
// Managed memory was touched by the device: it moves there if there is room.
void managed_touch(HostRange* range, int device);
CUresult managed_free(HostRange* range);

// array.cc
struct Array {
  uint64_t magic;
  CUDA_ARRAY3D_DESCRIPTOR shape;
  unsigned levels;
  bool deferred;
  bool level_of_mipmap;  // owned by a mipmap
  size_t size;           // what the deferred twin reports
  uint64_t piece;        // when above 1 MiB
  CUdeviceptr block;     // where its bytes are (slab block, or a range of its own); 0: deferred
  Array** level_arrays;
  size_t level_offset;
  Context* context;
  Array* next;
};
Array* find_array(CUarray handle);
size_t element_bytes(const CUDA_ARRAY3D_DESCRIPTOR& shape);

}  // namespace simgpu
