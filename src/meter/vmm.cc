// SPDX-License-Identifier: Apache-2.0
// Virtual memory: handles, mappings and access are three things. A handle is charged when it is
// created and until both its last reference and its last mapping are gone: "map, then release"
// keeps the charge. A handle that came from another process has no size before it is mapped; it is
// charged, or found to be this job's own, at its first mapping.
#include <stddef.h>

#include "meter/budget.h"
#include "meter/real.h"
#include "meter/share.h"
#include "meter/state.h"

namespace mete::meter {
namespace {

// What an entry of Process::handles says.
struct Handle {
  uint64_t units;  // charged by us; 0 for an import
  int card;
  bool imported;
  bool opened;  // an import whose size is known and which is charged, or found to be this job's
  bool sticky;  // bound to an array or a multicast object: never given back before the process ends
  uint32_t references;
  uint32_t mappings;
  static Handle unpack(TableValue v) {
    return {v.a >> 16,
            static_cast<int>(v.a & 0xff),
            (v.a & 0x100) != 0,
            (v.a & 0x400) != 0,
            (v.a & 0x200) != 0,
            static_cast<uint32_t>(v.b >> 32),
            static_cast<uint32_t>(v.b)};
  }
  TableValue pack() const {
    return {units << 16 | (imported ? 0x100u : 0u) | (opened ? 0x400u : 0u) |
                (sticky ? 0x200u : 0u) | static_cast<uint64_t>(card),
            static_cast<uint64_t>(references) << 32 | mappings};
  }
};

// CUarrayMapInfo, as far as we look at it.
struct ArrayMapInfo {
  int resource_type;
  void* resource;
  int subresource_type;
  uint64_t subresource[4];
  int operation;
  int handle_type;
  CUmemGenericAllocationHandle handle;
  unsigned long long offset;
  unsigned int devices;
  unsigned int flags;
  unsigned int reserved[2];
};
static_assert(sizeof(ArrayMapInfo) == 96 && offsetof(ArrayMapInfo, handle) == 64);

// One reference or mapping less. True if that was the last: the entry has left the table then, and
// `gone` is what it said.
bool count_down(CUmemGenericAllocationHandle handle, bool reference, Handle* gone) {
  Locked locked(process.lock);
  TableValue* value = process.handles.find(handle);
  if (value == nullptr) return false;
  Handle known = Handle::unpack(*value);
  if (reference && known.references > 0) --known.references;
  if (!reference && known.mappings > 0) --known.mappings;
  *value = known.pack();
  if (known.references > 0 || known.mappings > 0 || known.sticky) return false;
  TableValue removed;
  process.handles.remove(handle, &removed);
  *gone = known;
  return true;
}

void give_back_handle(CUmemGenericAllocationHandle handle, const Handle& gone) {
  if (gone.imported)
    drop_import(handle);
  else
    release(gone.card, keep_if_exported(handle, gone.card, gone.units));
}

void add_reference(CUmemGenericAllocationHandle handle) {
  Locked locked(process.lock);
  TableValue* value = process.handles.find(handle);
  if (value == nullptr) return;
  Handle known = Handle::unpack(*value);
  ++known.references;
  *value = known.pack();
}

void make_sticky(CUmemGenericAllocationHandle handle) {
  Locked locked(process.lock);
  TableValue* value = process.handles.find(handle);
  if (value == nullptr) return;
  Handle known = Handle::unpack(*value);
  known.sticky = true;
  *value = known.pack();
}

CUresult after_array_map(CUresult result, const CUarrayMapInfo* list, unsigned int count) {
  const auto* infos = reinterpret_cast<const ArrayMapInfo*>(list);
  for (unsigned int i = 0; result == CUDA_SUCCESS && process.attached.load() == 1 && i < count; ++i)
    if (infos[i].handle != 0) make_sticky(infos[i].handle);
  return result;
}

bool find_handle(CUmemGenericAllocationHandle handle, Handle* out) {
  Locked locked(process.lock);
  const TableValue* value = process.handles.find(handle);
  if (value == nullptr) return false;
  *out = Handle::unpack(*value);
  return true;
}

CUresult map(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
             unsigned long long flags) {
  Handle known{};
  const bool ours = process.attached.load() == 1 && find_handle(handle, &known);
  const bool opens = ours && known.imported && !known.opened;
  if (opens) {
    const uint64_t units = abi::units_for(abi::round_to_granule(bytes));
    if (!note_import(handle, known.card, units, descriptor_key(known.card, units)))
      return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const CUresult result = real.cuMemMap(address, bytes, offset, handle, flags);
  if (!ours) return result;
  if (result != CUDA_SUCCESS) {
    if (opens) drop_import(handle);
    return result;
  }
  Locked locked(process.lock);
  if (TableValue* value = process.handles.find(handle)) {
    Handle now = Handle::unpack(*value);
    now.opened = now.opened || opens;
    ++now.mappings;
    *value = now.pack();
  }
  process.mappings.put(address, {handle, bytes});
  return result;
}

// One range may span many mappings. An address stays reserved while it is unmapped, so nobody maps
// it again before our table is up to date unless two threads of the program race for the same
// address.
CUresult unmap(CUdeviceptr address, size_t bytes) {
  const CUresult result = real.cuMemUnmap(address, bytes);
  if (result != CUDA_SUCCESS || process.attached.load() != 1) return result;
  for (CUdeviceptr at = address; at < address + bytes;) {
    TableValue value;
    bool known = false;
    {
      Locked locked(process.lock);
      known = process.mappings.remove(at, &value);
    }
    if (!known) {
      at += abi::kGranuleBytes;
      continue;
    }
    Handle gone{};
    if (count_down(value.a, false, &gone)) give_back_handle(value.a, gone);
    at += value.b > 0 ? value.b : abi::kGranuleBytes;
  }
  return result;
}

}  // namespace
}  // namespace mete::meter

using namespace mete::meter;
namespace abi = mete::abi;

extern "C" {

CUresult hook_cuMemCreate(CUmemGenericAllocationHandle* out, size_t bytes,
                          const CUmemAllocationProp* prop, unsigned long long flags) {
  // Host memory is not the card's. The card is the one in the request, whatever context is current.
  if (out == nullptr || prop == nullptr || bytes == 0 ||
      prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE || !attach())
    return real.cuMemCreate(out, bytes, prop, flags);
  const int card = card_of(prop->location.id);
  if (card == kNoCard) {
    CUdevice device = 0;
    return real.cuDeviceGet(&device, prop->location.id) == CUDA_SUCCESS
               ? CUDA_ERROR_OUT_OF_MEMORY
               : real.cuMemCreate(out, bytes, prop, flags);
  }
  const uint64_t units =
      bytes > (1ull << 46) ? abi::kMaxUnits + 1 : abi::units_for(abi::round_to_granule(bytes));
  if (!take(card, units)) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = real.cuMemCreate(out, bytes, prop, flags);
  for (int tries = 0; result == CUDA_ERROR_OUT_OF_MEMORY && worth_another_try(&tries);)
    result = real.cuMemCreate(out, bytes, prop, flags);
  if (result == CUDA_SUCCESS) {
    Locked locked(process.lock);
    process.handles.put(*out, Handle{units, card, false, false, false, 1, 0}.pack());
  }
  settle(card, units, result == CUDA_SUCCESS ? units : 0);
  return result;
}

// The entry leaves our table before the driver is asked: the handle's value may be another's next.
CUresult hook_cuMemRelease(CUmemGenericAllocationHandle handle) {
  if (process.attached.load() != 1) return real.cuMemRelease(handle);
  Handle before{};
  Handle gone{};
  const bool known = find_handle(handle, &before);
  const bool last = known && count_down(handle, true, &gone);
  const CUresult result = real.cuMemRelease(handle);
  if (result == CUDA_SUCCESS) {
    if (last) give_back_handle(handle, gone);
  } else if (last) {
    Locked locked(process.lock);
    gone.references = 1;
    process.handles.put(handle, gone.pack());
  } else if (known) {
    add_reference(handle);
  }
  return result;
}

CUresult hook_cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                       CUmemGenericAllocationHandle handle, unsigned long long flags) {
  return map(address, bytes, offset, handle, flags);
}

CUresult hook_cuMemUnmap(CUdeviceptr address, size_t bytes) { return unmap(address, bytes); }

CUresult hook_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* out, void* address) {
  const CUresult result = real.cuMemRetainAllocationHandle(out, address);
  if (result == CUDA_SUCCESS && process.attached.load() == 1) add_reference(*out);
  return result;
}

// Memory bound to a sparse array or a multicast object lives on after its handle is released.
CUresult hook_cuMemMapArrayAsync(CUarrayMapInfo* list, unsigned int count, CUstream stream) {
  return after_array_map(real.cuMemMapArrayAsync(list, count, stream), list, count);
}
CUresult hook_cuMemMapArrayAsync_ptsz(CUarrayMapInfo* list, unsigned int count, CUstream stream) {
  return after_array_map(real.cuMemMapArrayAsync_ptsz(list, count, stream), list, count);
}
CUresult hook_cuMulticastBindMem(CUmemGenericAllocationHandle multicast, size_t at,
                                 CUmemGenericAllocationHandle handle, size_t offset, size_t bytes,
                                 unsigned long long flags) {
  const CUresult result = real.cuMulticastBindMem(multicast, at, handle, offset, bytes, flags);
  if (result == CUDA_SUCCESS && process.attached.load() == 1) make_sticky(handle);
  return result;
}

CUresult hook_cuMemExportToShareableHandle(void* out, CUmemGenericAllocationHandle handle,
                                           CUmemAllocationHandleType type,
                                           unsigned long long flags) {
  const CUresult result = real.cuMemExportToShareableHandle(out, handle, type, flags);
  Handle known{};
  if (result == CUDA_SUCCESS && process.attached.load() == 1 && find_handle(handle, &known) &&
      !known.imported)
    note_export(handle, known.card, known.units, descriptor_key(known.card, known.units));
  return result;
}

CUresult hook_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* out, void* handle,
                                             CUmemAllocationHandleType type) {
  const CUresult result = real.cuMemImportFromShareableHandle(out, handle, type);
  if (result != CUDA_SUCCESS || !attach()) return result;
  CUmemAllocationProp prop{};
  if (real.cuMemGetAllocationPropertiesFromHandle == nullptr ||
      real.cuMemGetAllocationPropertiesFromHandle(&prop, *out) != CUDA_SUCCESS ||
      prop.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return result;
  const int card = card_of(prop.location.id);
  if (card == kNoCard) return result;
  Locked locked(process.lock);
  if (TableValue* value = process.handles.find(*out)) {
    // Importing what we have already, or made ourselves, is one more reference.
    Handle known = Handle::unpack(*value);
    ++known.references;
    *value = known.pack();
  } else {
    process.handles.put(*out, Handle{0, card, true, false, false, 1, 0}.pack());
  }
  return result;
}
}
