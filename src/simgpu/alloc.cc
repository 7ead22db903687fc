// SPDX-License-Identifier: Apache-2.0
// cuMemAlloc and its relatives: up to 1 MiB from slabs (slab.h), above that granules of their own:
// addresses from va.cc, memory from the server, and a Range that makes copies and queries find
// both. A free waits for the context's work first, as the real driver does.
#include <stdlib.h>

#include "simgpu/capture.h"
#include "simgpu/slab.h"
#include "simgpu/state.h"

namespace simgpu {
namespace {

CUresult release_block(Range* range, CUdeviceptr p) {
  if (p != range->base) return CUDA_ERROR_INVALID_VALUE;
  range_unlink(range);
  range_remove(range);
  va_give(range->base, range->bytes);
  phys_give(range->piece);
  free(range);
  return CUDA_SUCCESS;
}

constexpr RangeOps kBlockOps = {nullptr, release_block};

CUresult large_take(Context* context, size_t bytes, CUdeviceptr* p) {
  if (bytes > device_of(context)->total) return CUDA_ERROR_OUT_OF_MEMORY;
  Range* range = static_cast<Range*>(calloc(1, sizeof(Range)));
  if (range == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  range->bytes = round_granule(bytes);
  const CUresult result =
      phys_take(context->device, range->bytes, MemoryClass::kPlain, &range->piece);
  range->base = result == CUDA_SUCCESS ? va_take_in(context, range->bytes) : 0;
  if (range->base == 0) {
    phys_give(range->piece);
    free(range);
    return result != CUDA_SUCCESS ? result : CUDA_ERROR_OUT_OF_MEMORY;
  }
  range->asked = bytes;
  range->kind = RangeKind::kBlock;
  range->legacy_ipc = true;
  range->device = context->device;
  range->context = context;
  range->readable = range->writable = ~0u;
  range->ops = &kBlockOps;
  range_add(range);
  range_link(range);
  *p = range->base;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult memory_take(Context* context, size_t bytes, CUdeviceptr* p) {
  const Guard guard;
  return bytes <= kSmallMax ? slab_take(context, bytes, 1, p) : large_take(context, bytes, p);
}

CUresult memory_give(CUdeviceptr p) {
  const Guard guard;
  Range* range = range_find(p);
  if (range == nullptr) {
    HostRange* host = host_find(static_cast<uintptr_t>(p));
    if (host == nullptr || host->kind != HostKind::kManaged || host->base != p) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    return managed_free(host);
  }
  // Memory that another process lent is closed, not freed.
  if (range->kind == RangeKind::kIpc) return CUDA_ERROR_INVALID_VALUE;
  if (range->ops == nullptr || range->ops->release == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return range->ops->release(range, p);
}

namespace {

// Measured on an H200: an immediate allocation is not allowed in a capture.
CUresult refuse_in_capture() {
  const Guard guard;
  return capture_forbids();
}

CUresult pitch_take(CUdeviceptr* p, size_t* pitch, size_t width, size_t height, unsigned element) {
  if (p == nullptr || pitch == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pitch = 0;
  if (width == 0 || height == 0) return CUDA_ERROR_INVALID_VALUE;
  if (element != 4 && element != 8 && element != 16) return CUDA_ERROR_INVALID_VALUE;
  const size_t rounded = (width + 511) & ~static_cast<size_t>(511);
  size_t bytes = 0;
  if (rounded < width || __builtin_mul_overflow(rounded, height, &bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUresult result = refuse_in_capture();
  if (result == CUDA_SUCCESS) result = memory_take(current_context(), bytes, p);
  if (result == CUDA_SUCCESS) *pitch = rounded;
  return result;
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

extern "C" CUresult cuMemAlloc_v2(CUdeviceptr* p, size_t bytes) {
  SIM_ENTRY_CONTEXT(cuMemAlloc_v2);
  if (p == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult refused = refuse_in_capture(); refused != CUDA_SUCCESS) return refused;
  return memory_take(current_context(), bytes, p);
}

extern "C" CUresult cuMemAllocPitch_v2(CUdeviceptr* p, size_t* pitch, size_t width, size_t height,
                                       unsigned int element) {
  SIM_ENTRY_CONTEXT(cuMemAllocPitch_v2);
  return pitch_take(p, pitch, width, height, element);
}

extern "C" CUresult cuMemFree_v2(CUdeviceptr p) {
  // As the real driver: freeing a null pointer succeeds even without a context.
  if (p == 0) {
    SIM_ENTRY(cuMemFree_v2);
    return CUDA_SUCCESS;
  }
  SIM_ENTRY_CONTEXT(cuMemFree_v2);
  const CUresult waited = context_synchronize(current_context());
  if (waited != CUDA_SUCCESS) return waited;
  return memory_give(p);
}

extern "C" CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  SIM_ENTRY_CONTEXT(cuMemGetInfo_v2);
  uint64_t used = 0, total = 0;
  const CUresult result = phys_usage(current_context()->device, &used, &total);
  if (result != CUDA_SUCCESS) return result;
  if (free_bytes != nullptr) *free_bytes = total > used ? total - used : 0;
  if (total_bytes != nullptr) *total_bytes = total;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr p) {
  SIM_ENTRY_CONTEXT(cuMemGetAddressRange_v2);
  const Guard guard;
  Range* range = nullptr;
  Block block{};
  if (range_find(p) != nullptr) {
    if (!block_find(p, &range, &block) || range->piece == 0) return CUDA_ERROR_NOT_FOUND;
  } else {
    const HostRange* host = host_find(static_cast<uintptr_t>(p));
    if (host == nullptr) return CUDA_ERROR_NOT_FOUND;
    block = {host->base, host->bytes};
  }
  if (base != nullptr) *base = block.base;
  if (bytes != nullptr) *bytes = block.bytes;
  return CUDA_SUCCESS;
}
