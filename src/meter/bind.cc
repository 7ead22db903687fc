// SPDX-License-Identifier: Apache-2.0
// Memory that is bound to sparse arrays and multicast objects. A binding costs nothing: its memory
// belongs to a handle, which is charged already. But a binding holds the memory as a mapping does,
// even after the handle is released, until it is undone or the array or multicast object ends. A
// binding that is undone in stream order keeps its charge until an event in that stream has passed.
#include <stddef.h>

#include "meter/budget.h"
#include "meter/owned.h"
#include "meter/place.h"
#include "meter/real.h"
#include "meter/relaxed.h"
#include "meter/reserve.h"
#include "meter/share.h"
#include "meter/vmm.h"

namespace mete::meter {
namespace {

constexpr uint64_t kEverything = ~0ull;

static_assert(sizeof(CUarrayMapInfo) == 96 && offsetof(CUarrayMapInfo, memHandle) == 64);
static_assert(offsetof(CUarrayMapInfo, subresource) == 24 &&
              offsetof(CUarrayMapInfo, memOperationType) == 56);
constexpr int kTail = 1;   // CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL
constexpr int kMap = 1;    // CU_MEM_OPERATION_TYPE_MAP
constexpr int kUnmap = 2;  // CU_MEM_OPERATION_TYPE_UNMAP

Region region_of(const CUarrayMapInfo& info) {
  Region region{};
  region.object = reinterpret_cast<uint64_t>(info.resource.array);
  if (info.subresourceType == kTail) {
    const auto& tail = info.subresource.miptail;
    region.kind = Region::kMipTail;
    region.layer = tail.layer;
    region.from[0] = tail.offset;
    region.to[0] = tail.size > 0 ? region.from[0] + tail.size : kEverything;
    region.to[1] = region.to[2] = 1;
    return region;
  }
  const auto& sparse = info.subresource.sparseLevel;
  const unsigned from[3] = {sparse.offsetX, sparse.offsetY, sparse.offsetZ};
  const unsigned extent[3] = {sparse.extentWidth, sparse.extentHeight, sparse.extentDepth};
  region.level = sparse.level;
  region.layer = sparse.layer;
  for (int i = 0; i < 3; ++i) {
    region.from[i] = from[i];
    region.to[i] = extent[i] > 0 ? region.from[i] + extent[i] : kEverything;
  }
  return region;
}

Region multicast_region(CUmemGenericAllocationHandle multicast, int card, size_t at, size_t bytes) {
  return {multicast, Region::kMulticast, static_cast<uint32_t>(card),
          0,         {at, 0, 0},         {at + bytes, 1, 1}};
}

// Under the lock. A handle that is not in the table (host memory) is not charged, so there is
// nothing to hold.
void bind(const Region& region, CUmemGenericAllocationHandle handle) {
  TableValue* value = process.handles.find(handle);
  fix(handle);
  if (value == nullptr || !process.bindings.add({region, handle})) return;
  Handle known = Handle::unpack(*value);
  ++known.mappings;
  *value = known.pack();
}

struct Gone {
  CUmemGenericAllocationHandle handle;
  Handle said;
};

// Under the lock. Replaces one binding by `pieces` bindings. True if that was the last hold on the
// handle.
bool replace_binding(CUmemGenericAllocationHandle handle, int pieces, Gone* gone) {
  gone->handle = handle;
  if (pieces == 0) return count_down(handle, Part::kMapping, &gone->said);
  if (TableValue* value = process.handles.find(handle)) {
    Handle known = Handle::unpack(*value);
    known.mappings += static_cast<uint32_t>(pieces) - 1;
    *value = known.pack();
  }
  return false;
}

// Undoes one binding in the hole. False: no binding is left there. `gone->handle` is 0 if something
// else still holds the memory.
bool unbind_one(const Region& hole, Gone* gone) {
  *gone = {};
  Locked locked(process.lock);
  CUmemGenericAllocationHandle handle = 0;
  int pieces = 0;
  if (!process.bindings.cut_one(hole, &handle, &pieces)) return false;
  if (!replace_binding(handle, pieces, gone)) gone->handle = 0;
  return true;
}

void unbind_all(uint64_t object, bool multicast) {
  for (;;) {
    Gone gone{};
    bool last = false;
    {
      Locked locked(process.lock);
      CUmemGenericAllocationHandle handle = 0;
      if (!process.bindings.take_one(object, multicast, &handle)) return;
      last = replace_binding(handle, 0, &gone);
    }
    if (last) give_back_handle(gone.handle, gone.said);
  }
}

// Keeps memory charged until the stream has passed the work that was just queued there.
void give_back_later(const Gone& gone, CUstream stream, bool per_thread) {
  Unbound entry{gone.handle, gone.said.pack(), nullptr, 0};
  if (gone.said.units > 0) close_reserve(gone.said.card);
  Place place;
  if (find_place(&place)) entry.context_id = place.context_id;
  const Relaxed relaxed;
  const auto record = per_thread ? real.cuEventRecord_ptsz : real.cuEventRecord;
  if (real.cuEventQuery != nullptr && record != nullptr &&
      real.cuEventCreate(&entry.event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS &&
      record(entry.event, stream) != CUDA_SUCCESS) {
    real.cuEventDestroy_v2(entry.event);
    entry.event = nullptr;
  }
  {
    Locked locked(process.lock);
    if (process.unbound.add(entry)) return;
  }
  if (entry.event != nullptr) real.cuEventDestroy_v2(entry.event);
  give_back_handle(gone.handle, gone.said);
}

// In the order of the list, as the driver does it: a new binding replaces the old one.
void after_array_map(const CUarrayMapInfo* infos, unsigned int count, CUstream stream,
                     bool per_thread) {
  for (unsigned int i = 0; i < count; ++i) {
    if (infos[i].memOperationType != kMap && infos[i].memOperationType != kUnmap) continue;
    const Region region = region_of(infos[i]);
    Gone gone{};
    while (unbind_one(region, &gone))
      if (gone.handle != 0) give_back_later(gone, stream, per_thread);
    if (infos[i].memOperationType != kMap) continue;
    Locked locked(process.lock);
    bind(region, infos[i].memHandle.memHandle);
  }
}

template <class Call>
CUresult map_array(const CUarrayMapInfo* list, unsigned int count, CUstream stream, bool per_thread,
                   Call call) {
  // Memory for arrays is created for arrays only, and such handles are the driver's own.
  for (unsigned int i = 0; list != nullptr && i < count; ++i)
    if (is_ours(list[i].memHandle.memHandle)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = call();
  if (result == CUDA_SUCCESS && list != nullptr && process.attached.load() == 1) {
    after_array_map(list, count, stream, per_thread);
    settle_unbound();
  }
  return result;
}

// An imported handle that is used as a multicast object is one.
void recognise_multicast(CUmemGenericAllocationHandle handle) {
  Locked locked(process.lock);
  TableValue* value = process.handles.find(handle);
  if (value == nullptr) return;
  Handle known = Handle::unpack(*value);
  if (!known.imported || known.opened) return;
  known.imported = false;
  known.multicast = true;
  *value = known.pack();
}

// The addresses may span several mappings, each of another handle. The pool holds the memory of a
// pool.
void bind_addresses(CUmemGenericAllocationHandle multicast, size_t at, CUdeviceptr address,
                    size_t bytes) {
  Locked locked(process.lock);
  for (size_t done = 0; done < bytes;) {
    CUdeviceptr base = 0;
    TableValue mapping;
    if (!find_mapping(address + done, &base, &mapping)) {
      done += abi::kGranuleBytes;
      continue;
    }
    const uint64_t left_in_mapping = base + mapping.b - (address + done);
    const uint64_t part = left_in_mapping < bytes - done ? left_in_mapping : bytes - done;
    if (const TableValue* value = process.handles.find(mapping.a))
      bind(multicast_region(multicast, Handle::unpack(*value).card, at + done, part), mapping.a);
    done += part;
  }
}

}  // namespace

bool find_mapping(CUdeviceptr address, CUdeviceptr* base, TableValue* mapping) {
  const CUdeviceptr granule = address & ~(abi::kGranuleBytes - 1);
  for (uint64_t back = 0; back < process.largest_mapping && back <= granule;
       back += abi::kGranuleBytes) {
    const TableValue* value = process.mappings.find(granule - back);
    if (value == nullptr) continue;
    *base = granule - back;
    *mapping = *value;
    return address < *base + value->b;
  }
  return false;
}

void note_multicast(CUmemGenericAllocationHandle handle) {
  Locked locked(process.lock);
  Handle known{0, 0, false, false, true, 0, 0};
  if (const TableValue* value = process.handles.find(handle)) known = Handle::unpack(*value);
  ++known.references;
  process.handles.put(handle, known.pack());
}

void unbind_array(uint64_t array) { unbind_all(array, false); }
void unbind_multicast(CUmemGenericAllocationHandle handle) { unbind_all(handle, true); }

void settle_unbound() {
  if (process.unbound.size() == 0) return;
  const Relaxed relaxed;
  for (size_t at = 0;;) {
    Unbound entry{};
    {
      Locked locked(process.lock);
      if (at >= process.unbound.size()) return;
      entry = process.unbound[at];
      process.unbound.remove(at);  // no other thread sees it during the query
    }
    if (entry.event != nullptr && real.cuEventQuery(entry.event) == CUDA_ERROR_NOT_READY) {
      Locked locked(process.lock);
      // Back to its place, so that the next entry is looked at.
      process.unbound.add(entry);
      if (at < process.unbound.size() - 1) process.unbound.swap(at, process.unbound.size() - 1);
      ++at;
      continue;
    }
    if (entry.event != nullptr) real.cuEventDestroy_v2(entry.event);
    give_back_handle(entry.handle, Handle::unpack(entry.said));
  }
}

void forget_unbound_of(uint32_t context_id) {
  for (size_t at = 0;;) {
    Unbound entry{};
    {
      Locked locked(process.lock);
      while (at < process.unbound.size() && process.unbound[at].context_id != context_id) ++at;
      if (at >= process.unbound.size()) return;
      entry = process.unbound[at];
      process.unbound.remove(at);
    }
    give_back_handle(entry.handle, Handle::unpack(entry.said));
  }
}

}  // namespace mete::meter

using namespace mete::meter;

extern "C" {

CUresult hook_cuMemMapArrayAsync(CUarrayMapInfo* list, unsigned int count, CUstream stream) {
  return map_array(list, count, stream, false,
                   [&] { return real.cuMemMapArrayAsync(list, count, stream); });
}
CUresult hook_cuMemMapArrayAsync_ptsz(CUarrayMapInfo* list, unsigned int count, CUstream stream) {
  return map_array(list, count, stream, true,
                   [&] { return real.cuMemMapArrayAsync_ptsz(list, count, stream); });
}

// A multicast object itself has no memory on any card.
CUresult hook_cuMulticastCreate(CUmemGenericAllocationHandle* out,
                                const CUmulticastObjectProp* prop) {
  const CUresult result = real.cuMulticastCreate(out, prop);
  if (result == CUDA_SUCCESS && attach()) note_multicast(*out);
  return result;
}

CUresult hook_cuMulticastBindMem(CUmemGenericAllocationHandle multicast, size_t at,
                                 CUmemGenericAllocationHandle handle, size_t offset, size_t bytes,
                                 unsigned long long flags) {
  Handle known{};
  const bool ours = process.attached.load() == 1 && find_handle(handle, &known);
  const bool opens = ours && known.imported && !known.opened;
  if (opens && !open_import(handle, known, offset + bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result =
      real.cuMulticastBindMem(multicast, at, driver_handle(handle), offset, bytes, flags);
  if (!ours) return result;
  if (result != CUDA_SUCCESS) {
    if (opens) drop_import(handle);
    return result;
  }
  recognise_multicast(multicast);
  Locked locked(process.lock);
  if (TableValue* value = process.handles.find(handle)) {
    Handle now = Handle::unpack(*value);
    now.opened = now.opened || opens;
    *value = now.pack();
  }
  bind(multicast_region(multicast, known.card, at, bytes), handle);
  return result;
}

CUresult hook_cuMulticastBindAddr(CUmemGenericAllocationHandle multicast, size_t at,
                                  CUdeviceptr address, size_t bytes, unsigned long long flags) {
  const CUresult result = real.cuMulticastBindAddr(multicast, at, address, bytes, flags);
  if (result != CUDA_SUCCESS || process.attached.load() != 1) return result;
  recognise_multicast(multicast);
  bind_addresses(multicast, at, address, bytes);
  return result;
}

CUresult hook_cuMulticastUnbind(CUmemGenericAllocationHandle multicast, CUdevice device, size_t at,
                                size_t bytes) {
  const CUresult result = real.cuMulticastUnbind(multicast, device, at, bytes);
  if (result != CUDA_SUCCESS || process.attached.load() != 1) return result;
  const int card = card_of(device);
  if (card == kNoCard) return result;
  Gone gone{};
  while (unbind_one(multicast_region(multicast, card, at, bytes), &gone))
    if (gone.handle != 0) give_back_handle(gone.handle, gone.said);
  return result;
}
}
