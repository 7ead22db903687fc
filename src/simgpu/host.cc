// SPDX-License-Identifier: Apache-2.0
// Host memory that the driver knows: allocated, registered, managed. Kept in an array sorted by
// address. Managed memory is host memory that also occupies the card once the card has touched it,
// as long as there is room there; it never fails for want of card memory.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "simgpu/state.h"

namespace simgpu {
namespace {

HostRange** ranges = nullptr;
size_t range_count = 0;
size_t range_room = 0;

// The number of ranges that begin at or below `p`.
size_t upper(uintptr_t p) {
  size_t low = 0, high = range_count;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (ranges[middle]->base <= p) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

bool insert(HostRange* range) {
  if (range_count == range_room) {
    const size_t room = range_room == 0 ? 64 : range_room * 2;
    HostRange** grown = static_cast<HostRange**>(realloc(ranges, room * sizeof(HostRange*)));
    if (grown == nullptr) return false;
    ranges = grown;
    range_room = room;
  }
  const size_t at = upper(range->base);
  memmove(ranges + at + 1, ranges + at, (range_count - at) * sizeof(HostRange*));
  ranges[at] = range;
  ++range_count;
  return true;
}

void remove(HostRange* range) {
  const size_t at = upper(range->base) - 1;
  memmove(ranges + at, ranges + at + 1, (range_count - at - 1) * sizeof(HostRange*));
  --range_count;
}

HostRange* make(uintptr_t base, size_t bytes, HostKind kind) {
  HostRange* range = static_cast<HostRange*>(calloc(1, sizeof(HostRange)));
  if (range == nullptr) return nullptr;
  range->base = base;
  range->bytes = bytes;
  range->kind = kind;
  range->context = current_context();
  range->device = range->context->device;
  range->buffer_id = ++driver.next_id;
  range->resident = -1;
  if (insert(range)) return range;
  free(range);
  return nullptr;
}

HostRange* map_new(size_t bytes, HostKind kind) {
  const size_t mapped = (bytes + 4095) & ~static_cast<size_t>(4095);
  if (mapped < bytes) return nullptr;
  void* at = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  HostRange* range = make(reinterpret_cast<uintptr_t>(at), bytes, kind);
  if (range == nullptr) {
    munmap(at, mapped);
    return nullptr;
  }
  range->mapped = mapped;
  return range;
}

void drop(HostRange* range) {
  remove(range);
  if (range->mapped > 0) munmap(reinterpret_cast<void*>(range->base), range->mapped);
  phys_give(range->piece);
  free(range);
}

CUresult host_alloc(void** p, size_t bytes, unsigned flags) {
  if (p == nullptr || (flags & ~7u) != 0) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  if (bytes == 0) {
    *p = nullptr;
    return CUDA_SUCCESS;
  }
  const HostRange* made = map_new(bytes, HostKind::kAllocated);
  if (made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *p = reinterpret_cast<void*>(made->base);
  return CUDA_SUCCESS;
}

}  // namespace

HostRange* host_find(uintptr_t p) {
  const size_t after = upper(p);
  if (after == 0) return nullptr;
  HostRange* range = ranges[after - 1];
  return p - range->base < range->bytes ? range : nullptr;
}

void host_end(Context* context) {
  for (size_t i = range_count; i > 0; --i) {
    if (ranges[i - 1]->context == context) drop(ranges[i - 1]);
  }
}

void managed_touch(HostRange* range, int device) {
  if (range->kind != HostKind::kManaged || range->resident == device) return;
  uint64_t piece = 0;
  if (device >= 0 &&
      phys_take(device, range->bytes, MemoryClass::kManaged, &piece) != CUDA_SUCCESS) {
    return;  // no room: it stays where it is
  }
  phys_give(range->piece);
  range->piece = piece;
  range->resident = device;
}

CUresult managed_free(HostRange* range) {
  drop(range);
  return CUDA_SUCCESS;
}

}  // namespace simgpu

using namespace simgpu;

extern "C" CUresult cuMemHostAlloc(void** p, size_t bytes, unsigned int flags) {
  SIM_ENTRY_CONTEXT(cuMemHostAlloc);
  return host_alloc(p, bytes, flags);
}

extern "C" CUresult cuMemAllocHost_v2(void** p, size_t bytes) {
  SIM_ENTRY_CONTEXT(cuMemAllocHost_v2);
  return host_alloc(p, bytes, 0);
}

extern "C" CUresult cuMemFreeHost(void* p) {
  SIM_ENTRY_CONTEXT(cuMemFreeHost);
  if (p == nullptr) return CUDA_SUCCESS;
  const CUresult waited = context_synchronize(current_context());
  if (waited != CUDA_SUCCESS) return waited;
  const Guard guard;
  HostRange* range = host_find(reinterpret_cast<uintptr_t>(p));
  if (range == nullptr || range->kind != HostKind::kAllocated ||
      range->base != reinterpret_cast<uintptr_t>(p)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  drop(range);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuMemAllocManaged(CUdeviceptr* p, size_t bytes, unsigned int flags) {
  SIM_ENTRY_CONTEXT(cuMemAllocManaged);
  if (p == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  const HostRange* made = map_new(bytes, HostKind::kManaged);
  if (made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *p = made->base;
  return CUDA_SUCCESS;
}
