// SPDX-License-Identifier: Apache-2.0
// Virtual memory: handles, mappings and access are three things. A handle is charged from its
// creation until both its last reference and its last mapping are gone: "map, then release" keeps
// the charge. A handle from another process has no size before it is mapped; at its first mapping
// it is charged, or found to belong to this job.
#include "meter/vmm.h"

#include "meter/budget.h"
#include "meter/owned.h"
#include "meter/real.h"
#include "meter/share.h"

namespace mete::meter {
namespace {

void add_reference(CUmemGenericAllocationHandle handle) {
  Locked locked(process.lock);
  TableValue* value = process.handles.find(handle);
  if (value == nullptr) return;
  Handle known = Handle::unpack(*value);
  ++known.references;
  *value = known.pack();
}

// The program asks for a handle of mapped memory: it gets one more reference to ours.
bool retain_ours(CUdeviceptr address, CUmemGenericAllocationHandle* out) {
  Locked locked(process.lock);
  CUdeviceptr base = 0;
  TableValue mapping;
  if (!find_mapping(address, &base, &mapping) || !is_ours(mapping.a)) return false;
  TableValue* value = process.handles.find(mapping.a);
  if (value == nullptr) return false;
  Handle known = Handle::unpack(*value);
  ++known.references;
  *value = known.pack();
  *out = mapping.a;
  return true;
}

// Only what the program itself created for export.
bool may_export(CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type) {
  CUmemAllocationProp wanted{};
  return owned_properties(handle, &wanted) && (wanted.requestedHandleTypes & type) != 0;
}

CUresult map(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
             unsigned long long flags) {
  Handle known{};
  const bool ours = process.attached.load() == 1 && find_handle(handle, &known);
  const bool opens = ours && known.imported && !known.opened;
  if (opens && !open_import(handle, known, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUmemGenericAllocationHandle driver = driver_handle(handle);
  // A handle that the program has released, though its memory may still be mapped.
  if (is_ours(handle) && (driver == 0 || known.references == 0)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = real.cuMemMap(address, bytes, offset, driver, flags);
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
  note_mapping(handle, address, bytes, offset);
  if (bytes > process.largest_mapping) process.largest_mapping = bytes;
  return result;
}

// One range may span many mappings. An address stays reserved while it is unmapped, so it is not
// mapped again before the table is up to date, unless two threads of the program race for it.
CUresult unmap(CUdeviceptr address, size_t bytes) {
  const CUresult result = real.cuMemUnmap(address, bytes);
  if (result != CUDA_SUCCESS || process.attached.load() != 1) return result;
  for (CUdeviceptr at = address; at < address + bytes;) {
    TableValue value;
    Handle gone{};
    bool known = false;
    bool last = false;
    {
      Locked locked(process.lock);
      known = process.mappings.remove(at, &value);
      if (known) forget_mapping(value.a, at);
      last = known && count_down(value.a, Part::kMapping, &gone);
    }
    if (!known) {
      at += abi::kGranuleBytes;
      continue;
    }
    if (last) give_back_handle(value.a, gone);
    at += value.b > 0 ? value.b : abi::kGranuleBytes;
  }
  return result;
}

}  // namespace

bool find_handle(CUmemGenericAllocationHandle handle, Handle* out) {
  Locked locked(process.lock);
  const TableValue* value = process.handles.find(handle);
  if (value == nullptr) return false;
  *out = Handle::unpack(*value);
  return true;
}

bool open_import(CUmemGenericAllocationHandle handle, const Handle& known, uint64_t bytes) {
  const uint64_t units = abi::units_for(abi::round_to_granule(bytes));
  return note_import(handle, known.card, units, descriptor_key(known.card, units));
}

bool count_down(CUmemGenericAllocationHandle handle, Part part, Handle* gone) {
  TableValue* value = process.handles.find(handle);
  if (value == nullptr) return false;
  Handle known = Handle::unpack(*value);
  if (part == Part::kReference && known.references > 0) --known.references;
  if (part == Part::kMapping && known.mappings > 0) --known.mappings;
  *value = known.pack();
  if (known.references > 0 || known.mappings > 0) return false;
  TableValue removed;
  process.handles.remove(handle, &removed);
  *gone = known;
  return true;
}

void give_back_handle(CUmemGenericAllocationHandle handle, const Handle& gone) {
  drop_owned(handle);
  if (gone.multicast)
    unbind_multicast(handle);
  else if (gone.imported)
    drop_import(handle);
  else
    release(gone.card, keep_if_exported(handle, gone.card, gone.units));
}

}  // namespace mete::meter

using namespace mete::meter;
namespace abi = mete::abi;

extern "C" {

CUresult hook_cuMemCreate(CUmemGenericAllocationHandle* out, size_t bytes,
                          const CUmemAllocationProp* prop, unsigned long long flags) {
  // Host memory is not on the card. The card is the one in the request, whatever context is
  // current.
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
  bool movable = process.parkable.load(std::memory_order_relaxed) && can_be_moved(*prop);
  CUmemAllocationProp asked = movable ? movable_properties(*prop) : *prop;
  CUresult result = real.cuMemCreate(out, bytes, &asked, flags);
  if (movable && result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY) {
    // This driver refuses the descriptor type for the mover: create it as the program asked.
    movable = false;
    asked = *prop;
    result = real.cuMemCreate(out, bytes, &asked, flags);
  }
  for (int tries = 0; result == CUDA_ERROR_OUT_OF_MEMORY && worth_another_try(&tries);)
    result = real.cuMemCreate(out, bytes, &asked, flags);
  if (result == CUDA_SUCCESS && movable) {
    Owned made{};
    made.handle = *out;
    made.bytes = bytes;
    made.device = prop->location.id;
    made.card = card;
    made.wanted = *prop;
    if (const CUmemGenericAllocationHandle name = add_owned(made)) *out = name;
  }
  if (result == CUDA_SUCCESS) {
    Locked locked(process.lock);
    process.handles.put(*out, Handle{units, card, false, false, false, 1, 0}.pack());
  }
  settle(card, units, result == CUDA_SUCCESS ? units : 0);
  return result;
}

// The entry leaves the table before the driver is called: it may give the handle's value to another
// allocation.
CUresult hook_cuMemRelease(CUmemGenericAllocationHandle handle) {
  if (process.attached.load() != 1) return real.cuMemRelease(handle);
  Handle gone{};
  bool known = false;
  bool last = false;
  {
    Locked locked(process.lock);
    const TableValue* value = process.handles.find(handle);
    known = value != nullptr;
    if (is_ours(handle) && (!known || Handle::unpack(*value).references == 0))
      return CUDA_ERROR_INVALID_VALUE;
    last = known && count_down(handle, Part::kReference, &gone);
  }
  if (is_ours(handle)) {
    if (last) give_back_handle(handle, gone);
    return CUDA_SUCCESS;
  }
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
  if (out != nullptr && retain_ours(reinterpret_cast<CUdeviceptr>(address), out))
    return CUDA_SUCCESS;
  const CUresult result = real.cuMemRetainAllocationHandle(out, address);
  if (result == CUDA_SUCCESS && process.attached.load() == 1) add_reference(*out);
  return result;
}

CUresult hook_cuMemExportToShareableHandle(void* out, CUmemGenericAllocationHandle handle,
                                           CUmemAllocationHandleType type,
                                           unsigned long long flags) {
  if (is_ours(handle) && !may_export(handle, type)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result =
      real.cuMemExportToShareableHandle(out, driver_handle(handle), type, flags);
  if (result == CUDA_SUCCESS) {
    Locked locked(process.lock);
    fix(handle);
  }
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
  if (const CUmemGenericAllocationHandle name = our_handle(*out)) {
    // Our own memory: one more reference to it; the driver's reference is not needed.
    (void)real.cuMemRelease(*out);
    *out = name;
    add_reference(name);
    return result;
  }
  CUmemAllocationProp prop{};
  if (real.cuMemGetAllocationPropertiesFromHandle == nullptr) return result;
  if (real.cuMemGetAllocationPropertiesFromHandle(&prop, *out) != CUDA_SUCCESS) {
    note_multicast(*out);  // nothing else that can be imported lacks properties
    return result;
  }
  if (prop.location.type != CU_MEM_LOCATION_TYPE_DEVICE) return result;
  const int card = card_of(prop.location.id);
  if (card == kNoCard) return result;
  Locked locked(process.lock);
  if (TableValue* value = process.handles.find(*out)) {
    // Importing a handle again, or memory that this process created, is one more reference.
    Handle known = Handle::unpack(*value);
    ++known.references;
    *value = known.pack();
  } else {
    process.handles.put(*out, Handle{0, card, true, false, false, 1, 0}.pack());
  }
  return result;
}
}
