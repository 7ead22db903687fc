// SPDX-License-Identifier: Apache-2.0
// Multicast objects, as far as memory is concerned: which devices are in the group, what is bound
// where. They can be mapped; stores through such a mapping are not simulated (1, INVALID_VALUE). A
// binding holds its memory until it is undone or the object ends.
#include <stdlib.h>

#include "simgpu/bound.h"
#include "simgpu/state.h"

namespace simgpu {

struct BoundPart {
  VmmHandle* memory;
  int device;
  size_t at;
  size_t bytes;
  BoundPart* next;
};

struct Multicast {
  size_t bytes;
  unsigned wanted;   // devices that it is for
  unsigned added;    // devices that have been added,
  uint32_t devices;  // one bit each
  BoundPart* parts;
};

namespace {

bool supported(int device) { return driver.devices[device].info.cc_major >= 9; }

bool any_supported() {
  for (int i = 0; i < driver.device_count; ++i)
    if (supported(i)) return true;
  return false;
}

Multicast* find_group(CUmemGenericAllocationHandle handle) {
  VmmHandle* found = vmm_find(handle);
  return found == nullptr ? nullptr : found->group;
}

bool complete(const Multicast* group) { return group->added == group->wanted; }

bool inside(const Multicast* group, size_t at, size_t bytes) {
  return at % kGranule == 0 && bytes % kGranule == 0 && bytes > 0 && at <= group->bytes &&
         bytes <= group->bytes - at;
}

bool overlaps(const Multicast* group, int device, size_t at, size_t bytes) {
  for (const BoundPart* part = group->parts; part != nullptr; part = part->next)
    if (part->device == device && part->at < at + bytes && at < part->at + part->bytes) return true;
  return false;
}

CUresult bind(Multicast* group, size_t at, VmmHandle* memory, size_t bytes) {
  const int device = memory->prop.location.id;
  if ((group->devices >> device & 1u) == 0) return CUDA_ERROR_INVALID_DEVICE;
  if (overlaps(group, device, at, bytes)) return CUDA_ERROR_INVALID_VALUE;
  auto* part = static_cast<BoundPart*>(calloc(1, sizeof(BoundPart)));
  if (part == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *part = {memory, device, at, bytes, group->parts};
  group->parts = part;
  hold_memory(memory);
  return CUDA_SUCCESS;
}

// Drops the bindings in the range on the device. Returns their number.
int unbind(Multicast* group, int device, size_t at, size_t bytes) {
  int count = 0;
  for (BoundPart** link = &group->parts; *link != nullptr;) {
    BoundPart* part = *link;
    if (part->device != device || part->at < at || part->at + part->bytes > at + bytes) {
      link = &part->next;
      continue;
    }
    *link = part->next;
    drop_memory(part->memory);
    free(part);
    ++count;
  }
  return count;
}

}  // namespace

void multicast_end(Multicast* group) {
  while (BoundPart* part = group->parts) {
    group->parts = part->next;
    drop_memory(part->memory);
    free(part);
  }
  free(group);
}

}  // namespace simgpu

using namespace simgpu;

extern "C" {

CUresult cuMulticastGetGranularity(size_t* bytes, const CUmulticastObjectProp* prop,
                                   CUmulticastGranularity_flags) {
  SIM_ENTRY(cuMulticastGetGranularity);
  if (!any_supported()) return CUDA_ERROR_NOT_SUPPORTED;
  if (bytes == nullptr || prop == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *bytes = kGranule;
  return CUDA_SUCCESS;
}

CUresult cuMulticastCreate(CUmemGenericAllocationHandle* handle,
                           const CUmulticastObjectProp* prop) {
  SIM_ENTRY(cuMulticastCreate);
  if (!any_supported()) return CUDA_ERROR_NOT_SUPPORTED;
  if (handle == nullptr || prop == nullptr || prop->numDevices == 0 || prop->size == 0 ||
      prop->size % kGranule != 0 || prop->flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  auto* group = static_cast<Multicast*>(calloc(1, sizeof(Multicast)));
  if (group == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  group->bytes = prop->size;
  group->wanted = prop->numDevices;
  VmmHandle* made = vmm_make(kNoPiece, prop->size, {});
  if (made == nullptr) {
    free(group);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  made->group = group;
  *handle = vmm_name(made);
  return CUDA_SUCCESS;
}

CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice device) {
  SIM_ENTRY(cuMulticastAddDevice);
  if (!device_ok(device) || !supported(device)) return CUDA_ERROR_INVALID_DEVICE;
  const Guard guard;
  Multicast* group = find_group(handle);
  if (group == nullptr || complete(group) || (group->devices >> device & 1u) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  group->devices |= 1u << device;
  ++group->added;
  return CUDA_SUCCESS;
}

CUresult cuMulticastBindMem(CUmemGenericAllocationHandle handle, size_t at,
                            CUmemGenericAllocationHandle memory, size_t offset, size_t bytes,
                            unsigned long long flags) {
  SIM_ENTRY(cuMulticastBindMem);
  const Guard guard;
  Multicast* group = find_group(handle);
  VmmHandle* found = vmm_find(memory);
  if (group == nullptr || found == nullptr || found->group != nullptr || found->references == 0 ||
      flags != 0 || !inside(group, at, bytes) || offset % kGranule != 0 || offset > found->bytes ||
      bytes > found->bytes - offset)
    return CUDA_ERROR_INVALID_VALUE;
  if (!complete(group)) return CUDA_ERROR_NOT_PERMITTED;
  return bind(group, at, found, bytes);
}

CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle handle, size_t at, CUdeviceptr address,
                             size_t bytes, unsigned long long flags) {
  SIM_ENTRY(cuMulticastBindAddr);
  const Guard guard;
  Multicast* group = find_group(handle);
  if (group == nullptr || flags != 0 || !inside(group, at, bytes) || address % kGranule != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (!complete(group)) return CUDA_ERROR_NOT_PERMITTED;
  for (size_t done = 0; done < bytes;) {
    const Range* range = range_find(address + done);
    if (range == nullptr || range->kind != RangeKind::kMapping) return CUDA_ERROR_INVALID_VALUE;
    done = range->base + range->bytes - address;
  }
  for (size_t done = 0; done < bytes;) {
    Range* range = range_find(address + done);
    const size_t left = range->base + range->bytes - (address + done);
    const size_t part = left < bytes - done ? left : bytes - done;
    const CUresult result = bind(group, at + done, reinterpret_cast<Mapping*>(range)->handle, part);
    if (result != CUDA_SUCCESS) return result;
    done += part;
  }
  return CUDA_SUCCESS;
}

CUresult cuMulticastUnbind(CUmemGenericAllocationHandle handle, CUdevice device, size_t at,
                           size_t bytes) {
  SIM_ENTRY(cuMulticastUnbind);
  if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
  const Guard guard;
  Multicast* group = find_group(handle);
  if (group == nullptr || !inside(group, at, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return unbind(group, device, at, bytes) > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // extern "C"
