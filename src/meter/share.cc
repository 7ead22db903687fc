// SPDX-License-Identifier: Apache-2.0
// An export is an entry in the grant file with a key and a count of the processes that have it
// open; Process::exports and Process::imports map the local pointer or handle to that entry. The
// owner that frees exported memory keeps its charge while another process has it open, and
// collect_exports() gives the charge back later. An import whose key is in the grant file belongs
// to this job and costs nothing; any other import is charged in full.
#include "meter/share.h"

#include "abi/process.h"
#include "meter/budget.h"
#include "meter/ipc.h"
#include "meter/memory.h"
#include "meter/park.h"
#include "meter/place.h"
#include "meter/real.h"
#include "meter/reserve.h"

namespace mete::meter {
namespace {

constexpr uint64_t kOneMore = 1ull << 32;  // in TableValue::a: opened once more

TableValue pack(int index, int card, uint64_t units) {
  return {static_cast<uint64_t>(index + 1), units << 8 | static_cast<uint64_t>(card)};
}
int index_of(TableValue v) { return static_cast<int>(v.a & (kOneMore - 1)) - 1; }
int card_in(TableValue v) { return static_cast<int>(v.b & 0xff); }
uint64_t units_in(TableValue v) { return v.b >> 8; }

abi::Export& entry_of(int index) { return process.grant->exports[index]; }

bool still_mine(int index) {
  return entry_of(index).owner.load() == process.owner &&
         abi::ExportWord::unpack(entry_of(index).state.load()).slot ==
             static_cast<uint32_t>(my_slot());
}

}  // namespace

uint64_t bytes_key(const void* handle, size_t bytes) { return abi::fnv1a(handle, bytes) | 1; }

uint64_t descriptor_key(int card, uint64_t units) {
  const uint64_t words[2] = {static_cast<uint64_t>(card), units};
  return abi::fnv1a(words, sizeof(words)) & ~1ull;  // even: never a hash of a handle's bytes
}

void note_export(uint64_t name, int card, uint64_t units, uint64_t key) {
  if (my_slot() < 0 || units == 0) return;
  {
    Locked locked(process.lock);
    if (const TableValue* known = process.exports.find(name)) {
      // An equal key is a repeated export; another key means new memory at an old address.
      if (entry_of(index_of(*known)).key.load() == key) return;
    }
  }
  (void)keep_if_exported(name, card, 0);
  const int index = abi::add_export(*process.grant, static_cast<uint32_t>(my_slot()), process.owner,
                                    static_cast<uint32_t>(card), units, key);
  if (index < 0) return;
  Locked locked(process.lock);
  process.exports.put(name, pack(index, card, units));
}

uint64_t keep_if_exported(uint64_t name, int card, uint64_t units) {
  (void)card;
  if (process.exports.size() == 0) return units;
  TableValue value;
  {
    Locked locked(process.lock);
    if (!process.exports.remove(name, &value)) return units;
  }
  abi::Export& entry = entry_of(index_of(value));
  if (!still_mine(index_of(value)) || abi::end_export(*process.grant, entry, viewer()))
    return units;
  return units > units_in(value) ? units - units_in(value) : 0;
}

bool collect_exports() {
  bool any = false;
  for (abi::Export& entry : process.grant->exports) {
    const abi::ExportWord state = abi::ExportWord::unpack(entry.state.load());
    if (state.kind != abi::ExportWord::kFreedByOwner || entry.owner.load() != process.owner ||
        state.slot != static_cast<uint32_t>(my_slot()))
      continue;
    // If several threads find it unused, one of them gives it back.
    if (!abi::end_export(*process.grant, entry, viewer())) continue;
    release(static_cast<int>(state.card), state.units);
    any = true;
  }
  return any;
}

bool note_import(uint64_t name, int card, uint64_t units, uint64_t key) {
  if (my_slot() < 0) return false;
  {
    // The driver counts how often one piece of memory is opened; so does this table.
    Locked locked(process.lock);
    if (TableValue* known = process.imports.find(name)) {
      known->a += kOneMore;
      return true;
    }
  }
  const int index = abi::open_export(*process.grant, static_cast<uint32_t>(my_slot()), key);
  if (index < 0) {
    if (!take(card, units, false)) return false;
    settle(card, units, units);
    close_reserve(card);  // the driver may count it for another process
    note_obstacle(abi::ParkReason::kForeign, 1);
  }
  Locked locked(process.lock);
  process.imports.put(name, pack(index, card, units));
  return true;
}

void drop_import(uint64_t name) {
  // Fast path: almost no process imports anything, so no lock is taken. An import under this name
  // has returned to the program before the program can close it.
  if (process.imports.size() == 0) return;
  TableValue value;
  {
    Locked locked(process.lock);
    TableValue* known = process.imports.find(name);
    if (known == nullptr) return;
    if (known->a >= kOneMore) {
      known->a -= kOneMore;
      return;
    }
    process.imports.remove(name, &value);
  }
  if (index_of(value) < 0) {
    release(card_in(value), units_in(value));
    note_obstacle(abi::ParkReason::kForeign, -1);
  } else {
    abi::close_export(*process.grant, static_cast<uint32_t>(my_slot()),
                      static_cast<uint32_t>(index_of(value)));
  }
}

namespace {

// The card that memory lies on, whichever context is current: a process may export and open memory
// of another card than that of its context.
int card_under(CUdeviceptr pointer) {
  int ordinal = 0;
  if (real.cuPointerGetAttribute != nullptr &&
      real.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer) ==
          CUDA_SUCCESS)
    return card_of(ordinal);
  Place place;
  return find_place(&place) ? place.card : kNoCard;
}

template <class Open>
CUresult open_ipc(CUdeviceptr* out, const CUipcMemHandle& handle, Open open) {
  CUresult result = CUDA_SUCCESS;
  if (open_block(out, handle, &result)) return result;
  result = open();
  if (result != CUDA_SUCCESS || !attach()) return result;
  const int card = card_under(*out);
  if (card == kNoCard) return result;
  CUdeviceptr base = 0;
  size_t bytes = 0;
  if (real.cuMemGetAddressRange_v2(&base, &bytes, *out) != CUDA_SUCCESS) return result;
  const uint64_t units = abi::units_for(abi::round_to_granule(bytes));
  if (note_import(*out, card, units, bytes_key(&handle, sizeof(handle)))) return result;
  real.cuIpcCloseMemHandle(*out);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

}  // namespace
}  // namespace mete::meter

using namespace mete::meter;
namespace abi = mete::abi;

extern "C" {

CUresult hook_cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr pointer) {
  CUresult result = CUDA_SUCCESS;
  if (export_block(handle, pointer, &result)) return result;
  result = real.cuIpcGetMemHandle(handle, pointer);
  if (result != CUDA_SUCCESS || !attach()) return result;
  CUdeviceptr base = pointer;
  size_t bytes = 0;
  real.cuMemGetAddressRange_v2(&base, &bytes, pointer);
  int card = 0;
  uint64_t units = 0;
  if (find_behind(base, &card, &units))
    note_export(base, card, units, bytes_key(handle, sizeof(*handle)));
  return result;
}

CUresult hook_cuIpcOpenMemHandle(CUdeviceptr* out, CUipcMemHandle handle, unsigned int flags) {
  return open_ipc(out, handle, [&] { return real.cuIpcOpenMemHandle(out, handle, flags); });
}
CUresult hook_cuIpcOpenMemHandle_v2(CUdeviceptr* out, CUipcMemHandle handle, unsigned int flags) {
  return open_ipc(out, handle, [&] { return real.cuIpcOpenMemHandle_v2(out, handle, flags); });
}

CUresult hook_cuIpcCloseMemHandle(CUdeviceptr pointer) {
  CUresult result = CUDA_SUCCESS;
  if (close_block(pointer, &result)) return result;
  result = real.cuIpcCloseMemHandle(pointer);
  if (result == CUDA_SUCCESS) drop_import(pointer);
  return result;
}

// Single pointers out of a shared pool. The pool's owner is charged for everything in the pool.
CUresult hook_cuMemPoolExportPointer(CUmemPoolPtrExportData* data, CUdeviceptr pointer) {
  const CUresult result = real.cuMemPoolExportPointer(data, pointer);
  if (result != CUDA_SUCCESS || !attach()) return result;
  const int card = card_under(pointer);
  if (card == kNoCard) return result;
  CUdeviceptr base = pointer;
  size_t bytes = 0;
  real.cuMemGetAddressRange_v2(&base, &bytes, pointer);
  note_export(pointer, card, abi::units_for(bytes), bytes_key(data, sizeof(*data)));
  return result;
}

CUresult hook_cuMemPoolImportPointer(CUdeviceptr* out, CUmemoryPool pool,
                                     CUmemPoolPtrExportData* data) {
  const CUresult result = real.cuMemPoolImportPointer(out, pool, data);
  if (result != CUDA_SUCCESS || !attach()) return result;
  const int card = card_under(*out);
  if (card == kNoCard) return result;
  CUdeviceptr base = *out;
  size_t bytes = 0;
  real.cuMemGetAddressRange_v2(&base, &bytes, *out);
  if (note_import(*out, card, abi::units_for(bytes), bytes_key(data, sizeof(*data)))) return result;
  real.cuMemFree_v2(*out);
  return CUDA_ERROR_OUT_OF_MEMORY;
}
}
