// SPDX-License-Identifier: Apache-2.0
// Addresses: reserve, map, allow, unmap, free. Checked against driver 580: a mapping is always a
// whole handle (anything else returns NOT_SUPPORTED), access is set and mappings are removed only
// as a whole, unmapping an unmapped address succeeds.
#include <stdlib.h>

#include "simgpu/state.h"
#include "simgpu/vmm.h"

namespace simgpu {
namespace {

// Visits the ranges that cover [p, p + bytes); false at an address that is not reserved.
template <typename Visit>
bool each_range(CUdeviceptr p, size_t bytes, Visit visit) {
  const CUdeviceptr end = p + bytes;
  while (p < end) {
    Range* range = range_find(p);
    if (range == nullptr) return false;
    CUdeviceptr next;
    if (range->kind == RangeKind::kMapping) {
      next = range->base + range->bytes;
    } else if (range->kind == RangeKind::kReservation) {
      next = p + kGranule;  // mappings lie inside a reservation's addresses
    } else {
      return false;
    }
    if (!visit(range)) return false;
    p = next;
  }
  return true;
}

bool aligned(CUdeviceptr p, size_t bytes) {
  return p % kGranule == 0 && bytes % kGranule == 0 && bytes > 0 && p + bytes > p;
}

bool whole(const Range* range, CUdeviceptr p, size_t bytes) {
  return range->base >= p && range->base + range->bytes <= p + bytes;
}

void unmap(Mapping* mapping) {
  // Its addresses belong to the reservation again.
  range_remove(&mapping->range);
  range_cover(&mapping->reservation->range, mapping->range.base, mapping->range.bytes);
  --mapping->reservation->mappings;
  --mapping->handle->mappings;
  vmm_drop_if_unused(mapping->handle);
  free(mapping);
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

extern "C" CUresult cuMemAddressReserve(CUdeviceptr* p, size_t bytes, size_t alignment,
                                        CUdeviceptr hint, unsigned long long flags) {
  SIM_ENTRY(cuMemAddressReserve);
  if (p == nullptr || bytes == 0 || bytes % kGranule != 0 || flags != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if ((alignment & (alignment - 1)) != 0 && alignment != 0) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Reservation* made = static_cast<Reservation*>(calloc(1, sizeof(Reservation)));
  if (made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  made->range.base = va_take(bytes, alignment, hint);
  if (made->range.base == 0) {
    free(made);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  made->range.bytes = made->range.asked = bytes;
  made->range.kind = RangeKind::kReservation;
  range_add(&made->range);
  *p = made->range.base;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuMemAddressFree(CUdeviceptr p, size_t bytes) {
  SIM_ENTRY(cuMemAddressFree);
  const Guard guard;
  Range* range = range_find(p);
  if (range == nullptr || range->kind != RangeKind::kReservation || range->base != p ||
      range->bytes != bytes) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Reservation* reservation = reinterpret_cast<Reservation*>(range);
  if (reservation->mappings > 0) return CUDA_ERROR_INVALID_VALUE;
  range_remove(range);
  va_give(p, bytes);
  free(reservation);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuMemMap(CUdeviceptr p, size_t bytes, size_t offset,
                             CUmemGenericAllocationHandle handle, unsigned long long flags) {
  SIM_ENTRY(cuMemMap);
  if (!aligned(p, bytes) || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  VmmHandle* found = vmm_find(handle);
  if (found == nullptr || found->references == 0) return CUDA_ERROR_INVALID_VALUE;
  if (offset != 0 || bytes != found->bytes) return CUDA_ERROR_NOT_SUPPORTED;
  Range* first = range_find(p);
  const bool room = each_range(p, bytes, [first](const Range* range) {
    return range->kind == RangeKind::kReservation && range == first;
  });
  if (!room) return CUDA_ERROR_INVALID_VALUE;
  Mapping* made = static_cast<Mapping*>(calloc(1, sizeof(Mapping)));
  if (made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  made->handle = found;
  made->reservation = reinterpret_cast<Reservation*>(first);
  Range* range = &made->range;
  range->base = p;
  range->bytes = range->asked = bytes;
  range->kind = RangeKind::kMapping;
  range->device = found->prop.location.id;
  range->piece = found->group == nullptr ? found->piece : 0;
  range_add(range);
  ++found->mappings;
  ++made->reservation->mappings;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuMemUnmap(CUdeviceptr p, size_t bytes) {
  SIM_ENTRY(cuMemUnmap);
  if (!aligned(p, bytes)) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  const bool possible = each_range(p, bytes, [p, bytes](const Range* range) {
    return range->kind != RangeKind::kMapping || whole(range, p, bytes);
  });
  if (!possible) return CUDA_ERROR_INVALID_VALUE;
  for (CUdeviceptr at = p; at < p + bytes;) {
    Range* range = range_find(at);
    if (range->kind != RangeKind::kMapping) {
      at += kGranule;
      continue;
    }
    at = range->base + range->bytes;
    unmap(reinterpret_cast<Mapping*>(range));
  }
  return CUDA_SUCCESS;
}

extern "C" CUresult cuMemSetAccess(CUdeviceptr p, size_t bytes, const CUmemAccessDesc* descriptions,
                                   size_t count) {
  SIM_ENTRY(cuMemSetAccess);
  if (!aligned(p, bytes) || descriptions == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    if (descriptions[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
      return CUDA_ERROR_NOT_SUPPORTED;
    if (!device_ok(descriptions[i].location.id)) return CUDA_ERROR_INVALID_DEVICE;
    const CUmemAccess_flags flags = descriptions[i].flags;
    if (flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
        flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  const Guard guard;
  const bool possible = each_range(p, bytes, [p, bytes](const Range* range) {
    return range->kind == RangeKind::kMapping && whole(range, p, bytes);
  });
  if (!possible) return CUDA_ERROR_INVALID_VALUE;
  (void)each_range(p, bytes, [descriptions, count](Range* range) {
    for (size_t i = 0; i < count; ++i) {
      const uint32_t bit = 1u << descriptions[i].location.id;
      const CUmemAccess_flags flags = descriptions[i].flags;
      range->readable =
          flags != CU_MEM_ACCESS_FLAGS_PROT_NONE ? range->readable | bit : range->readable & ~bit;
      range->writable = flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? range->writable | bit
                                                                    : range->writable & ~bit;
    }
    return true;
  });
  return CUDA_SUCCESS;
}

extern "C" CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                                   CUdeviceptr p) {
  SIM_ENTRY(cuMemGetAccess);
  if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  if (!device_ok(location->id)) return CUDA_ERROR_INVALID_DEVICE;
  const Guard guard;
  const Range* range = range_find(p);
  if (range == nullptr || range->piece == 0) return CUDA_ERROR_INVALID_VALUE;
  *flags = (range->readable >> location->id & 1u) | (range->writable >> location->id & 1u) << 1;
  return CUDA_SUCCESS;
}
