// SPDX-License-Identifier: Apache-2.0
// Handles of virtual memory, shared by vmm.cc and bind.cc. A handle is charged until its last
// reference, its last mapping and its last binding are gone.
#pragma once

#include <cstdint>

#include "meter/state.h"

namespace mete::meter {

// The content of an entry of Process::handles.
struct Handle {
  uint64_t units;  // charged by us; 0 for an import and for a multicast object
  int card;
  bool imported;
  bool opened;     // an import of known size that is charged, or found to belong to this job
  bool multicast;  // has no memory of its own; holds what is bound to it
  uint32_t references;
  uint32_t mappings;  // and bindings
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
                (multicast ? 0x200u : 0u) | static_cast<uint64_t>(card),
            static_cast<uint64_t>(references) << 32 | mappings};
  }
};

bool find_handle(CUmemGenericAllocationHandle handle, Handle* out);

// An imported handle has no size before it is used: `bytes` of it are mapped or bound now. Charges
// it if it does not belong to this job. False: no room for it.
bool open_import(CUmemGenericAllocationHandle handle, const Handle& known, uint64_t bytes);

// Counts one reference or mapping less, under the lock. True if that was the last: the entry has
// left the table, and `gone` is its content.
enum class Part { kReference, kMapping };
bool count_down(CUmemGenericAllocationHandle handle, Part part, Handle* gone);

// Gives back what a handle held that is gone.
void give_back_handle(CUmemGenericAllocationHandle handle, const Handle& gone);

// Under the lock: the mapping that an address lies in. The key of a mapping is its first address.
bool find_mapping(CUdeviceptr address, CUdeviceptr* base, TableValue* mapping);

// bind.cc: counts one more reference to a multicast object.
void note_multicast(CUmemGenericAllocationHandle handle);
// An array or a multicast object is gone, and so are its bindings.
void unbind_array(uint64_t array);
void unbind_multicast(CUmemGenericAllocationHandle handle);
// Gives back memory that was unbound in stream order, once the stream has passed that point.
void settle_unbound();
// settle_unbound() without asking: the context has ended.
void forget_unbound_of(uint32_t context_id);

}  // namespace mete::meter
