// SPDX-License-Identifier: Apache-2.0
// Memory that the program of a parkable process makes by itself (cuMemCreate). It gets a handle of
// ours, so that the driver's can be released and made anew behind it; its mappings and who may
// access them are remembered. What is exported, bound to an array or a multicast object, or mapped
// in a way that we do not know stays on the card.
//
// The driver's handle is ours alone: it is released when the program has neither a reference nor a
// mapping any more, and not before, since without it memory that is mapped cannot be moved.
#pragma once

#include <cstdint>

#include "abi/cuda_types.h"
#include "meter/chunk.h"

namespace mete::meter {

struct Owned : Movable {
  CUmemAllocationProp wanted;  // what the program asked for
  CUdeviceptr at;              // one of its mappings; 0: none is known here
  uint32_t generation;         // of this place in the list, part of the handle's value
  uint32_t next_free;          // index + 1
  bool used;
  bool fixed;  // stays on the card
};

// Whether a value is a handle of ours. No handle of the driver's looks like one: they are
// addresses.
inline bool is_ours(CUmemGenericAllocationHandle handle) { return handle >> 48 == 0x6d65; }

// Whether memory like this can be moved.
bool can_be_moved(const CUmemAllocationProp& wanted);
// As `wanted`, and such that a mover can import it.
CUmemAllocationProp movable_properties(const CUmemAllocationProp& wanted);

// Remembers memory that the driver just made. 0: no memory for that.
CUmemGenericAllocationHandle add_owned(const Owned& owned);
// The last reference and mapping are gone: the driver's handle is released.
void drop_owned(CUmemGenericAllocationHandle handle);
// The driver's handle behind any handle; 0: one of ours that is gone.
CUmemGenericAllocationHandle driver_handle(CUmemGenericAllocationHandle handle);
// Ours for memory whose handle at the driver this is; 0: none.
CUmemGenericAllocationHandle our_handle(CUmemGenericAllocationHandle driver);
// What the program asked for. False: none of ours, or gone.
bool owned_properties(CUmemGenericAllocationHandle handle, CUmemAllocationProp* out);
// It stays on the card from now on. Under the lock.
void fix(CUmemGenericAllocationHandle handle);
// Under the lock: it was mapped, or a mapping is gone.
void note_mapping(CUmemGenericAllocationHandle handle, CUdeviceptr at, uint64_t bytes,
                  uint64_t offset);
void forget_mapping(CUmemGenericAllocationHandle handle, CUdeviceptr at);

// All its mappings, with the access that they had. Nobody is inside the gate.
CUresult map_owned(const Owned& owned, CUmemGenericAllocationHandle handle);
CUresult unmap_owned(const Owned& owned);

}  // namespace mete::meter
