// SPDX-License-Identifier: Apache-2.0
// The entry points of stream-ordered memory: allocate, free, create pools, get and set attributes.
// During a capture an allocation becomes a node instead. A pool has a place: a device, the host or
// managed memory; every device has a default pool and a current one.
#include "simgpu/capture.h"
#include "simgpu/pool.h"

namespace simgpu {
namespace {

// During a capture an allocation becomes a node, and its memory comes when the graph is launched.
CUresult capture_alloc(Stream* stream, int device, size_t bytes, CUdeviceptr* out) {
  if (stream->capture->status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  GraphNode* const node = make<GraphNode>();
  if (node == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  node->type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  node->alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  node->alloc.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  node->alloc.bytesize = bytes;
  const CUresult result = capture_node(stream, node);
  if (result == CUDA_SUCCESS) *out = node->alloc.dptr;
  return result;
}

CUresult alloc_async(CUdeviceptr* out, size_t bytes, Pool* pool, CUstream handle, bool per_thread) {
  Stream* stream = nullptr;
  CUresult result = find_stream(handle, per_thread, &stream);
  if (result == CUDA_SUCCESS) result = refuse_legacy(stream);
  if (result != CUDA_SUCCESS) return result;
  if (bytes == 0) {
    *out = 0;  // zero bytes: a null pointer, and no error
    return CUDA_SUCCESS;
  }
  if (pool == nullptr) pool = current_pool(PoolPlace::kCard, stream->device);
  if (pool == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  if (is_capturing(stream)) return capture_alloc(stream, pool->device, bytes, out);
  return pool_alloc(pool, bytes, stream, out);
}

CUresult alloc_entry(CUdeviceptr* out, size_t bytes, CUstream stream, bool per_thread) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  return alloc_async(out, bytes, nullptr, stream, per_thread);
}

CUresult alloc_from_entry(CUdeviceptr* out, size_t bytes, CUmemoryPool handle, CUstream stream,
                          bool per_thread) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Pool* const pool = find_pool(handle);
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return alloc_async(out, bytes, pool, stream, per_thread);
}

CUresult capture_free(Stream* stream, CUdeviceptr address) {
  GraphNode* const node = make<GraphNode>();
  if (node == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  node->type = CU_GRAPH_NODE_TYPE_MEM_FREE;
  node->freed = address;
  return capture_node(stream, node);
}

CUresult free_async(CUdeviceptr address, CUstream handle, bool per_thread) {
  const Guard guard;
  Stream* stream = nullptr;
  CUresult result = find_stream(handle, per_thread, &stream);
  if (result == CUDA_SUCCESS) result = refuse_legacy(stream);
  if (result != CUDA_SUCCESS) return result;
  if (address == 0) return CUDA_SUCCESS;
  if (is_capturing(stream)) return capture_free(stream, address);
  PoolBlock* const block = block_at(address);
  if (block != nullptr) return pool_free(block, stream);
  if (free_imported(address)) return CUDA_SUCCESS;
  Range* const range = range_find(address);
  if (range == nullptr || range->ops == nullptr || range->ops->release == nullptr ||
      range->kind == RangeKind::kPool)
    return CUDA_ERROR_INVALID_VALUE;
  if (range->kind == RangeKind::kGraph) return graph_memory_free(address, stream);
  enter_stream(stream);
  return range->ops->release(range, address);
}

bool place_of(const CUmemLocation* location, CUmemAllocationType type, PoolPlace* place,
              int* device) {
  *device = 0;
  if (location == nullptr) return false;
  const bool on_card = location->type == CU_MEM_LOCATION_TYPE_DEVICE;
  if (type == CU_MEM_ALLOCATION_TYPE_MANAGED) {
    *place = PoolPlace::kManaged;
    if (on_card) *device = location->id;
  } else if (type == CU_MEM_ALLOCATION_TYPE_PINNED && on_card) {
    *place = PoolPlace::kCard;
    *device = location->id;
  } else if (type == CU_MEM_ALLOCATION_TYPE_PINNED && location->type >= CU_MEM_LOCATION_TYPE_HOST &&
             location->type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT) {
    *place = PoolPlace::kHost;
  } else {
    return false;
  }
  return device_ok(*device);
}

CUresult hand_out(Pool* pool, CUmemoryPool* out) {
  if (pool == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = handle_of(pool);
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

extern "C" {

CUresult cuMemAllocAsync(CUdeviceptr* out, size_t bytes, CUstream stream) {
  SIM_ENTRY_CONTEXT(cuMemAllocAsync);
  return alloc_entry(out, bytes, stream, false);
}
CUresult cuMemAllocAsync_ptsz(CUdeviceptr* out, size_t bytes, CUstream stream) {
  SIM_ENTRY_CONTEXT(cuMemAllocAsync_ptsz);
  return alloc_entry(out, bytes, stream, true);
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* out, size_t bytes, CUmemoryPool pool,
                                 CUstream stream) {
  SIM_ENTRY_CONTEXT(cuMemAllocFromPoolAsync);
  return alloc_from_entry(out, bytes, pool, stream, false);
}
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* out, size_t bytes, CUmemoryPool pool,
                                      CUstream stream) {
  SIM_ENTRY_CONTEXT(cuMemAllocFromPoolAsync_ptsz);
  return alloc_from_entry(out, bytes, pool, stream, true);
}
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  SIM_ENTRY_CONTEXT(cuMemFreeAsync);
  return free_async(address, stream, false);
}
CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) {
  SIM_ENTRY_CONTEXT(cuMemFreeAsync_ptsz);
  return free_async(address, stream, true);
}

CUresult cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* props) {
  SIM_ENTRY(cuMemPoolCreate);
  if (out == nullptr || props == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if ((props->handleTypes &
       ~(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE_FABRIC)) != 0)
    return CUDA_ERROR_NOT_SUPPORTED;
  PoolPlace place = PoolPlace::kCard;
  int device = 0;
  if (!place_of(&props->location, props->allocType, &place, &device))
    return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  return hand_out(make_pool(*props, place, device), out);
}

CUresult cuMemPoolDestroy(CUmemoryPool handle) {
  SIM_ENTRY(cuMemPoolDestroy);
  const Guard guard;
  Pool* const pool = find_pool(handle);
  if (pool == nullptr || pool->standard) return CUDA_ERROR_INVALID_VALUE;
  destroy_pool(pool);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t keep) {
  SIM_ENTRY(cuMemPoolTrimTo);
  const Guard guard;
  // Measured on an H200: 900, and the capture is lost.
  if (const CUresult forbidden = capture_forbids(); forbidden != CUDA_SUCCESS) return forbidden;
  Pool* const pool = find_pool(handle);
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  pool->heap.settle([](const Mark& stamp, void*) { return was_seen(stamp); }, nullptr);
  pool_shrink(pool, keep, Floor::kKeep);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  SIM_ENTRY(cuMemPoolGetAttribute);
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  // Measured on an H200: 900, and the capture is lost.
  if (const CUresult forbidden = capture_forbids(); forbidden != CUDA_SUCCESS) return forbidden;
  const Pool* const pool = find_pool(handle);
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  int* const flag = static_cast<int*>(value);
  cuuint64_t* const bytes = static_cast<cuuint64_t*>(value);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      *flag = pool->follow_events;
      break;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      *flag = pool->opportunistic;
      break;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      *flag = pool->internal_dependencies;
      break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      *bytes = pool->threshold;
      break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      *bytes = pool->heap.reserved();
      break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      *bytes = pool->reserved_high;
      break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      *bytes = pool->heap.used();
      break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      *bytes = pool->used_high;
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  SIM_ENTRY(cuMemPoolSetAttribute);
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Pool* const pool = find_pool(handle);
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool flag = *static_cast<const int*>(value) != 0;
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      pool->follow_events = flag;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      pool->opportunistic = flag;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      pool->internal_dependencies = flag;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      pool->threshold = *static_cast<const cuuint64_t*>(value);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      // Only zero may be written: the high-water mark restarts at the current value.
      if (*static_cast<const cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
      if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
        pool->used_high = pool->heap.used();
      else
        pool->reserved_high = pool->heap.reserved();
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool handle,
                            CUmemLocation* location) {
  SIM_ENTRY(cuMemPoolGetAccess);
  if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  const Pool* const pool = find_pool(handle);
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || !device_ok(location->id)) {
    *flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return location->type == CU_MEM_LOCATION_TYPE_HOST ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
  }
  const uint32_t bit = 1u << location->id;
  *flags = (pool->writable & bit) != 0   ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
           : (pool->readable & bit) != 0 ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                         : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* out, CUdevice device) {
  SIM_ENTRY(cuDeviceGetDefaultMemPool);
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
  const Guard guard;
  return hand_out(default_pool(PoolPlace::kCard, device), out);
}
CUresult cuDeviceGetMemPool(CUmemoryPool* out, CUdevice device) {
  SIM_ENTRY(cuDeviceGetMemPool);
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
  const Guard guard;
  return hand_out(current_pool(PoolPlace::kCard, device), out);
}
CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool handle) {
  SIM_ENTRY(cuDeviceSetMemPool);
  if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
  const Guard guard;
  Pool* const pool = find_pool(handle);
  if (pool == nullptr || pool->place != PoolPlace::kCard || pool->device != device ||
      pool->imported)
    return CUDA_ERROR_INVALID_VALUE;
  set_current_pool(PoolPlace::kCard, device, pool);
  return CUDA_SUCCESS;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool* out, CUmemLocation* location,
                                CUmemAllocationType type) {
  SIM_ENTRY(cuMemGetDefaultMemPool);
  PoolPlace place = PoolPlace::kCard;
  int device = 0;
  if (out == nullptr || !place_of(location, type, &place, &device)) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  return hand_out(default_pool(place, device), out);
}
CUresult cuMemGetMemPool(CUmemoryPool* out, CUmemLocation* location, CUmemAllocationType type) {
  SIM_ENTRY(cuMemGetMemPool);
  PoolPlace place = PoolPlace::kCard;
  int device = 0;
  if (out == nullptr || !place_of(location, type, &place, &device)) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  return hand_out(current_pool(place, device), out);
}
CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool handle) {
  SIM_ENTRY(cuMemSetMemPool);
  PoolPlace place = PoolPlace::kCard;
  int device = 0;
  if (!place_of(location, type, &place, &device)) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Pool* const pool = find_pool(handle);
  if (pool == nullptr || pool->place != place || pool->device != device || pool->imported)
    return CUDA_ERROR_INVALID_VALUE;
  set_current_pool(place, device, pool);
  return CUDA_SUCCESS;
}

}  // extern "C"
