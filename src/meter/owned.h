// SPDX-License-Identifier: Apache-2.0
// Memory that the program of a parkable process creates itself (cuMemCreate). It gets a handle of
// ours, so that the driver's handle can be released and created anew behind it; its mappings and
// their access rights are recorded. Memory that is exported, bound to an array or a multicast
// object, or mapped in an unknown way stays on the card.
//
// The program never sees the driver's handle. It is released when the program has neither a
// reference nor a mapping any more, and not before: without it, mapped memory cannot be moved.
#pragma once

#include <cstdint>

#include "abi/cuda_types.h"
#include "meter/chunk.h"

namespace mete::meter {

struct Owned : Movable {
  CUmemAllocationProp wanted;  // what the program asked for
  CUdeviceptr at;              // one of its mappings; 0: none is known
  uint32_t generation;         // of this place in the list, part of the handle's value
  uint32_t next_free;          // index + 1
  bool used;
  bool fixed;  // stays on the card
};

// Whether a value is a handle of ours. No handle of the driver looks like one: they are addresses.
inline bool is_ours(CUmemGenericAllocationHandle handle) { return handle >> 48 == 0x6d65; }

// Whether memory like this can be moved.
bool can_be_moved(const CUmemAllocationProp& wanted);
// `wanted`, with the handle type that a mover can import.
CUmemAllocationProp movable_properties(const CUmemAllocationProp& wanted);

// Records memory that the driver just created. 0: no memory for the entry.
CUmemGenericAllocationHandle add_owned(const Owned& owned);
// The last reference and mapping are gone: releases the driver's handle.
void drop_owned(CUmemGenericAllocationHandle handle);
// The driver's handle behind any handle; 0: a handle of ours that is gone.
CUmemGenericAllocationHandle driver_handle(CUmemGenericAllocationHandle handle);
// Our handle for a handle of the driver; 0: none.
CUmemGenericAllocationHandle our_handle(CUmemGenericAllocationHandle driver);
// What the program asked for. False: not a handle of ours, or gone.
bool owned_properties(CUmemGenericAllocationHandle handle, CUmemAllocationProp* out);
// The memory stays on the card from now on. Under the lock.
void fix(CUmemGenericAllocationHandle handle);
// Under the lock: the memory was mapped, or a mapping is gone.
void note_mapping(CUmemGenericAllocationHandle handle, CUdeviceptr at, uint64_t bytes,
                  uint64_t offset);
void forget_mapping(CUmemGenericAllocationHandle handle, CUdeviceptr at);

// Maps or unmaps all its mappings, with their former access. No thread is inside the gate.
CUresult map_owned(const Owned& owned, CUmemGenericAllocationHandle handle);
CUresult unmap_owned(const Owned& owned);

}  // namespace mete::meter
