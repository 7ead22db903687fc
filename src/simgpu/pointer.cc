// SPDX-License-Identifier: Apache-2.0
// Queries about pointers, answered as driver 580 did for each kind of memory.
#include <string.h>

#include "simgpu/state.h"
#include "simgpu/vmm.h"

namespace simgpu {
namespace {

// What is known about one pointer, whatever it points into.
struct Facts {
  CUdeviceptr p;
  CUcontext context;
  unsigned type;  // CUmemorytype
  bool host_pointer, device_pointer;
  bool managed, legacy_ipc, rdma;
  int device;
  Block range;    // what was asked for
  Block mapping;  // what backs it
  unsigned handle_types;
  unsigned access;
  CUmemoryPool pool;
  uint64_t buffer_id, block_id;
};

bool device_facts(CUdeviceptr p, Facts* facts) {
  Range* range = nullptr;
  Block block{};
  if (!block_find(p, &range, &block) || range->piece == 0) return false;
  const int device = current_context() != nullptr ? current_context()->device : range->device;
  const bool readable = (range->readable >> device & 1u) != 0;
  const bool writable = (range->writable >> device & 1u) != 0;
  const bool owned = range->kind == RangeKind::kBlock || range->kind == RangeKind::kSlab ||
                     range->kind == RangeKind::kIpc || range->kind == RangeKind::kGlobal;
  facts->context = owned ? handle_of(range->context) : nullptr;
  facts->type = CU_MEMORYTYPE_DEVICE;
  facts->device_pointer = readable;
  facts->legacy_ipc = range->legacy_ipc;
  facts->rdma = owned;
  facts->device = range->device;
  facts->range = block;
  facts->mapping = {range->base, range->bytes};
  facts->access = (readable ? 1u : 0u) | (writable ? 2u : 0u);
  facts->pool = range->pool;
  facts->block_id = range->buffer_id;
  facts->buffer_id = range->buffer_id;
  if (range->kind == RangeKind::kMapping) {
    const Mapping* mapping = reinterpret_cast<Mapping*>(range);
    facts->range = {mapping->reservation->range.base, mapping->reservation->range.bytes};
    facts->handle_types = mapping->handle->prop.requestedHandleTypes;
  } else if (block.base != range->base) {
    // Blocks of a slab or pool have an id of their own, which no range has.
    facts->buffer_id = range->buffer_id << 32 | (block.base - range->base) / 512;
  }
  return true;
}

bool host_facts(CUdeviceptr p, Facts* facts) {
  const HostRange* range = host_find(static_cast<uintptr_t>(p));
  if (range == nullptr) return false;
  facts->context = handle_of(range->context);
  facts->managed = range->kind == HostKind::kManaged;
  facts->type = facts->managed ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  facts->host_pointer = facts->device_pointer = true;
  facts->device = range->device;
  facts->range = {range->base, range->bytes};
  facts->mapping = {range->base, range->mapped != 0 ? range->mapped : range->bytes};
  facts->access = 3;
  facts->buffer_id = facts->block_id = range->buffer_id;
  return true;
}

template <typename T>
CUresult put(void* out, T value) {
  memcpy(out, &value, sizeof value);
  return CUDA_SUCCESS;
}

CUresult answer(void* out, CUpointer_attribute which, const Facts& facts) {
  switch (which) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return put(out, facts.context);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return put(out, facts.type);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return facts.device_pointer ? put(out, facts.p) : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return facts.host_pointer ? put(out, facts.p) : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return put(out, facts.managed);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return put(out, static_cast<unsigned long long>(facts.buffer_id));
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return put(out, facts.managed);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return put(out, facts.device);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return put(out, facts.legacy_ipc);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return put(out, facts.range.base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return put(out, facts.range.bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return put(out, true);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return put(out, static_cast<unsigned long long>(facts.handle_types));
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      return put(out, facts.rdma);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return put(out, facts.access);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return put(out, facts.pool);
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return put(out, facts.mapping.bytes);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return put(out, facts.mapping.base);
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return put(out, static_cast<unsigned long long>(facts.block_id));
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

bool find_facts(CUdeviceptr p, Facts* facts) {
  *facts = {};
  facts->p = p;
  return device_facts(p, facts) || host_facts(p, facts);
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

extern "C" CUresult cuPointerGetAttribute(void* out, CUpointer_attribute which, CUdeviceptr p) {
  SIM_ENTRY(cuPointerGetAttribute);
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Facts facts;
  if (!find_facts(p, &facts)) return CUDA_ERROR_INVALID_VALUE;
  return answer(out, which, facts);
}
