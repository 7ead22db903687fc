// SPDX-License-Identifier: Apache-2.0
// Memory of a handle that is bound to a multicast object (multicast.cc) or to a sparse array
// (sparse.cc). A binding counts as a mapping of the handle: the memory lives on when the handle is
// released. Every caller holds the Guard.
#pragma once

#include "simgpu/vmm.h"

namespace simgpu {

// A multicast object has no memory of its own: its handle has this in place of a piece.
inline constexpr uint64_t kNoPiece = ~0ull;

inline void hold_memory(VmmHandle* memory) { ++memory->mappings; }
inline void drop_memory(VmmHandle* memory) {
  --memory->mappings;
  vmm_drop_if_unused(memory);
}

// The last reference and the last mapping of the object are gone: frees what was bound to it.
void multicast_end(Multicast* group);
// The array is gone: frees what was bound to it.
void sparse_end(const Array* array);

}  // namespace simgpu
