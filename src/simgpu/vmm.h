// SPDX-License-Identifier: Apache-2.0
// Handles of cuMemCreate. A handle, its mappings and the right to use them are three things:
// physical memory is given back when the last reference to the handle and the last mapping are
// gone. Every caller holds the Guard.
#pragma once

#include "simgpu/driver.h"

namespace simgpu {

struct Multicast;  // multicast.cc

struct VmmHandle {
  uint64_t piece;  // 0: the slot is free
  size_t bytes;
  CUmemAllocationProp prop;
  unsigned references;  // cuMemCreate, retain, import; less releases
  unsigned mappings;    // and bindings (bound.h)
  uint32_t generation;
  uint32_t next_free;
  Multicast* group;  // a multicast object, which has no memory; nullptr: memory
};

VmmHandle* vmm_find(CUmemGenericAllocationHandle handle);
CUmemGenericAllocationHandle vmm_name(const VmmHandle* handle);
VmmHandle* vmm_make(uint64_t piece, size_t bytes, const CUmemAllocationProp& prop);
void vmm_drop_if_unused(VmmHandle* handle);

// A reservation of addresses; where nothing is mapped, its Range has no backing.
struct Reservation {
  Range range;  // must be first: a Range* of kind kReservation is a Reservation*
  unsigned mappings;
};
// A mapping inside a reservation.
struct Mapping {
  Range range;  // must be first: a Range* of kind kMapping is a Mapping*
  VmmHandle* handle;
  Reservation* reservation;
};

}  // namespace simgpu
