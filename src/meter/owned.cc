// SPDX-License-Identifier: Apache-2.0
// See owned.h. Process::owned is a list of places that are used again; a handle of ours is a mark,
// the generation of its place and the index, so an old handle never matches a new object. The
// mappings of an object are those entries of Process::mappings that have its handle;
// Process::accesses says which devices may read and write each of them. map_owned() replays both
// onto new memory.
#include "meter/owned.h"

#include "abi/cuda_card.h"
#include "meter/real.h"
#include "meter/state.h"
#include "meter/vmm.h"

namespace mete::meter {
namespace {

constexpr uint64_t kMark = 0x6d65ull << 48;

CUmemGenericAllocationHandle name_of(uint32_t index, uint32_t generation) {
  return kMark | static_cast<uint64_t>(generation & 0xffff) << 32 | index;
}

// Under the lock: nullptr for a handle that is gone.
Owned* find_owned(CUmemGenericAllocationHandle handle) {
  const auto index = static_cast<uint32_t>(handle);
  if (!is_ours(handle) || index >= process.owned.size()) return nullptr;
  Owned& owned = process.owned[index];
  return owned.used && name_of(index, owned.generation) == handle ? &owned : nullptr;
}

CUmemGenericAllocationHandle name_of(const Owned& owned) {
  return name_of(static_cast<uint32_t>(&owned - process.owned.begin()), owned.generation);
}

// Calls visit(address, bytes) for each mapping, until one fails.
template <class Visit>
CUresult each_mapping(const Owned& owned, Visit visit) {
  const CUmemGenericAllocationHandle name = name_of(owned);
  const TableValue* handle = process.handles.find(name);
  const uint32_t count = handle == nullptr ? 0 : Handle::unpack(*handle).mappings;
  if (count == 0) return CUDA_SUCCESS;
  if (count == 1 && owned.at != 0) return visit(owned.at, owned.bytes);
  CUresult result = CUDA_SUCCESS;
  process.mappings.each([&](uint64_t address, TableValue& mapping) {
    if (mapping.a == name && result == CUDA_SUCCESS) result = visit(address, mapping.b);
  });
  return result;
}

CUresult give_access(CUdeviceptr address, uint64_t bytes) {
  const TableValue* allowed = process.accesses.find(address);
  if (allowed == nullptr) return CUDA_SUCCESS;
  CUmemAccessDesc access[kMaxDevices]{};
  size_t count = 0;
  for (int device = 0; device < kMaxDevices; ++device) {
    if ((allowed->a >> device & 1) == 0) continue;
    access[count++] =
        abi::access_on(device, (allowed->b >> device & 1) != 0 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                                               : CU_MEM_ACCESS_FLAGS_PROT_READ);
  }
  return count == 0 ? CUDA_SUCCESS : real.cuMemSetAccess(address, bytes, access, count);
}

// Under the lock: records what a call has allowed on one mapping.
void note_access(CUdeviceptr address, CUmemGenericAllocationHandle handle,
                 const CUmemAccessDesc* descriptions, size_t count) {
  TableValue now{0, 0};
  if (const TableValue* before = process.accesses.find(address)) now = *before;
  for (size_t i = 0; i < count; ++i) {
    const int device = descriptions[i].location.id;
    if (descriptions[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || device < 0 ||
        device >= kMaxDevices) {
      fix(handle);  // the meter does not know how to allow it again
      continue;
    }
    const uint64_t bit = 1ull << device;
    const CUmemAccess_flags flags = descriptions[i].flags;
    now.a = flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ? now.a & ~bit : now.a | bit;
    now.b = flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? now.b | bit : now.b & ~bit;
  }
  if (!process.accesses.put(address, now)) fix(handle);
}

}  // namespace

bool can_be_moved(const CUmemAllocationProp& wanted) {
  return wanted.type == CU_MEM_ALLOCATION_TYPE_PINNED &&
         wanted.location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
         wanted.win32HandleMetaData == nullptr && wanted.allocFlags.compressionType == 0 &&
         wanted.allocFlags.usage == 0;
}

CUmemAllocationProp movable_properties(const CUmemAllocationProp& wanted) {
  CUmemAllocationProp properties = wanted;
  properties.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(
      wanted.requestedHandleTypes | CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  return properties;
}

CUmemGenericAllocationHandle add_owned(const Owned& owned) {
  Locked locked(process.lock);
  uint32_t index = process.free_owned;
  if (index == 0) {
    if (!process.owned.add(Owned{})) return 0;
    index = static_cast<uint32_t>(process.owned.size());
  } else {
    process.free_owned = process.owned[index - 1].next_free;
  }
  Owned& place = process.owned[index - 1];
  const uint32_t generation = place.generation + 1;
  place = owned;
  place.generation = generation;
  place.used = true;
  place.owned = true;
  place.id = ++process.last_chunk_id;
  return name_of(index - 1, generation);
}

void drop_owned(CUmemGenericAllocationHandle handle) {
  CUmemGenericAllocationHandle driver = 0;
  {
    Locked locked(process.lock);
    Owned* owned = find_owned(handle);
    if (owned == nullptr) return;
    driver = owned->handle;
    owned->used = false;
    owned->next_free = process.free_owned;
    process.free_owned = static_cast<uint32_t>(handle) + 1;
  }
  if (driver != 0) (void)real.cuMemRelease(driver);
}

CUmemGenericAllocationHandle driver_handle(CUmemGenericAllocationHandle handle) {
  if (!is_ours(handle)) return handle;
  Locked locked(process.lock);
  const Owned* owned = find_owned(handle);
  return owned == nullptr ? 0 : owned->handle;
}

CUmemGenericAllocationHandle our_handle(CUmemGenericAllocationHandle driver) {
  Locked locked(process.lock);
  for (const Owned& owned : process.owned)
    if (owned.used && owned.handle == driver) return name_of(owned);
  return 0;
}

bool owned_properties(CUmemGenericAllocationHandle handle, CUmemAllocationProp* out) {
  Locked locked(process.lock);
  const Owned* owned = find_owned(handle);
  if (owned == nullptr) return false;
  *out = owned->wanted;
  return true;
}

void fix(CUmemGenericAllocationHandle handle) {
  if (Owned* owned = find_owned(handle)) owned->fixed = true;
}

void note_mapping(CUmemGenericAllocationHandle handle, CUdeviceptr at, uint64_t bytes,
                  uint64_t offset) {
  Owned* owned = find_owned(handle);
  if (owned == nullptr) return;
  if (offset != 0 || bytes != owned->bytes) owned->fixed = true;
  owned->at = at;
}

void forget_mapping(CUmemGenericAllocationHandle handle, CUdeviceptr at) {
  TableValue gone;
  process.accesses.remove(at, &gone);
  Owned* owned = find_owned(handle);
  if (owned != nullptr && owned->at == at) owned->at = 0;
}

CUresult map_owned(const Owned& owned, CUmemGenericAllocationHandle handle) {
  const CUresult result = each_mapping(owned, [&](CUdeviceptr address, uint64_t bytes) {
    const CUresult mapped = real.cuMemMap(address, bytes, 0, handle, 0);
    return mapped == CUDA_SUCCESS ? give_access(address, bytes) : mapped;
  });
  // Unmapping an address that is not mapped succeeds.
  if (result != CUDA_SUCCESS) (void)unmap_owned(owned);
  return result;
}

CUresult unmap_owned(const Owned& owned) {
  return each_mapping(
      owned, [](CUdeviceptr address, uint64_t bytes) { return real.cuMemUnmap(address, bytes); });
}

}  // namespace mete::meter

using namespace mete::meter;

extern "C" {

CUresult hook_cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* descriptions,
                             size_t count) {
  const CUresult result = real.cuMemSetAccess(address, bytes, descriptions, count);
  if (result != CUDA_SUCCESS || process.attached.load() != 1) return result;
  Locked locked(process.lock);
  for (CUdeviceptr at = address; at < address + bytes;) {
    const TableValue* mapping = process.mappings.find(at);
    if (mapping != nullptr) note_access(at, mapping->a, descriptions, count);
    at += mapping != nullptr && mapping->b > 0 ? mapping->b : mete::abi::kGranuleBytes;
  }
  return result;
}

CUresult hook_cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* out,
                                                     CUmemGenericAllocationHandle handle) {
  if (!is_ours(handle)) return real.cuMemGetAllocationPropertiesFromHandle(out, handle);
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return owned_properties(handle, out) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
}
