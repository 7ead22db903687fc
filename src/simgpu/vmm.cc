// SPDX-License-Identifier: Apache-2.0
// cuMemCreate and its handles: references, properties, descriptors. A handle's value names a slot
// and a generation, so that a value used after its end is recognised. Slots lie in chunks that
// never move; the memory itself is a piece at the server, which is given back with the last
// reference and the last mapping.
#include "simgpu/vmm.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "simgpu/bound.h"
#include "simgpu/client.h"
#include "simgpu/state.h"

namespace simgpu {
namespace {

constexpr uint32_t kNone = ~0u;
constexpr uint32_t kChunk = 1024;
constexpr uint32_t kMaxChunks = 4096;

// Slots in chunks that never move, since mappings point to them.
VmmHandle* chunks[kMaxChunks];
uint32_t slot_count = 0;
uint32_t free_slot = kNone;

VmmHandle* slot(uint32_t index) { return &chunks[index / kChunk][index % kChunk]; }

uint32_t index_of(const VmmHandle* handle) {
  for (uint32_t chunk = 0; chunk * kChunk < slot_count; ++chunk) {
    if (handle >= chunks[chunk] && handle < chunks[chunk] + kChunk) {
      return chunk * kChunk + static_cast<uint32_t>(handle - chunks[chunk]);
    }
  }
  return kNone;
}

uint32_t take_slot() {
  if (free_slot != kNone) {
    const uint32_t index = free_slot;
    free_slot = slot(index)->next_free;
    return index;
  }
  if (slot_count == kMaxChunks * kChunk) return kNone;
  if (slot_count % kChunk == 0) {
    chunks[slot_count / kChunk] = static_cast<VmmHandle*>(calloc(kChunk, sizeof(VmmHandle)));
    if (chunks[slot_count / kChunk] == nullptr) return kNone;
  }
  return slot_count++;
}

CUresult check_prop(const CUmemAllocationProp* prop) {
  if (prop == nullptr || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
    return CUDA_ERROR_INVALID_VALUE;
  if (prop->location.type == CU_MEM_LOCATION_TYPE_HOST ||
      prop->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
      prop->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
  if (!device_ok(prop->location.id)) return CUDA_ERROR_INVALID_DEVICE;
  const unsigned known = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  if ((prop->requestedHandleTypes & ~known) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  return CUDA_SUCCESS;
}

int device_with_card(uint64_t card) {
  for (int i = 0; i < driver.device_count; ++i) {
    if (driver.devices[i].card == card) return i;
  }
  return -1;
}

}  // namespace

CUmemGenericAllocationHandle vmm_name(const VmmHandle* handle) {
  return (static_cast<uint64_t>(handle->generation) << 32) | (index_of(handle) + 1);
}

VmmHandle* vmm_find(CUmemGenericAllocationHandle handle) {
  const uint32_t index = static_cast<uint32_t>(handle) - 1;
  if (index >= slot_count) return nullptr;
  VmmHandle* found = slot(index);
  return found->piece != 0 && found->generation == handle >> 32 ? found : nullptr;
}

VmmHandle* vmm_make(uint64_t piece, size_t bytes, const CUmemAllocationProp& prop) {
  const uint32_t index = take_slot();
  if (index == kNone) return nullptr;
  VmmHandle* handle = slot(index);
  const uint32_t generation = handle->generation + 1;
  *handle = {piece, bytes, prop, 1, 0, generation, kNone, nullptr};
  return handle;
}

void vmm_drop_if_unused(VmmHandle* handle) {
  if (handle->references != 0 || handle->mappings != 0) return;
  Multicast* group = handle->group;
  if (group == nullptr) phys_give(handle->piece);
  handle->piece = 0;
  handle->group = nullptr;
  handle->next_free = free_slot;
  free_slot = index_of(handle);
  if (group != nullptr) multicast_end(group);
}

}  // namespace simgpu

using namespace simgpu;

extern "C" CUresult cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp* prop,
                                                  CUmemAllocationGranularity_flags) {
  SIM_ENTRY(cuMemGetAllocationGranularity);
  const CUresult wrong = check_prop(prop);
  if (wrong != CUDA_SUCCESS) return wrong;
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *bytes = kGranule;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                                const CUmemAllocationProp* prop, unsigned long long flags) {
  SIM_ENTRY(cuMemCreate);
  const CUresult wrong = check_prop(prop);
  if (wrong != CUDA_SUCCESS) return wrong;
  if (handle == nullptr || bytes == 0 || bytes % kGranule != 0 || flags != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (bytes > driver.devices[prop->location.id].total) return CUDA_ERROR_OUT_OF_MEMORY;
  const Guard guard;
  uint64_t piece = 0;
  const CUresult result = phys_take(prop->location.id, bytes, MemoryClass::kVmm, &piece);
  if (result != CUDA_SUCCESS) return result;
  const VmmHandle* made = vmm_make(piece, bytes, *prop);
  if (made == nullptr) {
    phys_give(piece);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *handle = vmm_name(made);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  SIM_ENTRY(cuMemRelease);
  const Guard guard;
  VmmHandle* found = vmm_find(handle);
  if (found == nullptr || found->references == 0) return CUDA_ERROR_INVALID_VALUE;
  --found->references;
  vmm_drop_if_unused(found);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* p) {
  SIM_ENTRY(cuMemRetainAllocationHandle);
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Range* range = range_find(reinterpret_cast<CUdeviceptr>(p));
  if (range == nullptr || range->kind != RangeKind::kMapping) return CUDA_ERROR_INVALID_VALUE;
  VmmHandle* found = reinterpret_cast<Mapping*>(range)->handle;
  ++found->references;
  *handle = vmm_name(found);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* prop,
                                                           CUmemGenericAllocationHandle handle) {
  SIM_ENTRY(cuMemGetAllocationPropertiesFromHandle);
  const Guard guard;
  const VmmHandle* found = vmm_find(handle);
  if (prop == nullptr || found == nullptr || found->group != nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  *prop = found->prop;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuMemExportToShareableHandle(void* out, CUmemGenericAllocationHandle handle,
                                                 CUmemAllocationHandleType type,
                                                 unsigned long long flags) {
  SIM_ENTRY(cuMemExportToShareableHandle);
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  const Guard guard;
  const VmmHandle* found = vmm_find(handle);
  if (found == nullptr || found->references == 0 ||
      found->prop.requestedHandleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  int fd = -1;
  Call call;
  call.request.op = static_cast<uint32_t>(Op::kFdExport);
  call.request.a[0] = found->piece;
  call.receive_fd = &fd;
  const CUresult result = from_server(call_server(&call));
  if (result != CUDA_SUCCESS) return result;
  if (fd < 0) return CUDA_ERROR_UNKNOWN;
  memcpy(out, &fd, sizeof fd);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle,
                                                   void* os_handle,
                                                   CUmemAllocationHandleType type) {
  SIM_ENTRY(cuMemImportFromShareableHandle);
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  const Guard guard;
  Call call;
  call.request.op = static_cast<uint32_t>(Op::kFdImport);
  call.send_fd = static_cast<int>(reinterpret_cast<intptr_t>(os_handle));
  if (call.send_fd < 0 || fcntl(call.send_fd, F_GETFD) < 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = from_server(call_server(&call));
  if (result != CUDA_SUCCESS) return result;
  const uint64_t piece = call.reply.v[0];
  const int device = device_with_card(call.reply.v[1]);
  if (device < 0 || call.reply.v[3] != static_cast<uint64_t>(MemoryClass::kVmm)) {
    phys_give(piece);
    return device < 0 ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
  }
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = device;
  const VmmHandle* made = vmm_make(piece, call.reply.v[2], prop);
  if (made == nullptr) {
    phys_give(piece);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *handle = vmm_name(made);
  return CUDA_SUCCESS;
}
