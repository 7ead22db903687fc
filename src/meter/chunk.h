// SPDX-License-Identifier: Apache-2.0
// The memory of a parkable process: chunks, each one handle of the driver's virtual memory mapped
// at addresses that stay reserved while the memory itself is away. A block of 32 MiB or more has a
// chunk of its own; smaller ones share chunks of 2 to 32 MiB, cut into granules of 2 MiB or, for
// what is not larger than 1 MiB, into cells of 512 bytes. A chunk is charged as a whole.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/cuda_types.h"
#include "meter/cells.h"

namespace mete::meter {

struct Place;

// Memory that can be given to a mover: a chunk, or what the program has made itself (owned.h).
struct Movable {
  CUmemGenericAllocationHandle handle;  // the driver's; 0: away
  uint64_t bytes;
  uint64_t id;  // never used twice
  CUdevice device;
  int card;
  bool kept;         // a mover has its bytes
  bool owned;        // an Owned, not a Chunk
  uint64_t on_disk;  // of the bytes that a mover has
};

struct Chunk : Movable {
  enum Kind : uint32_t { kOwn, kGranules, kCells };
  CUdeviceptr base;
  Kind kind;
  Cells cells;  // of the shared kinds
  uint64_t end() const { return base + bytes; }
};

// A block of `bytes` for the current context, charged. CUDA_ERROR_OUT_OF_MEMORY: it does not fit
// the grant.
CUresult allocate_in_chunk(const Place& place, uint64_t bytes, CUdeviceptr* out);

// The block's cells are free, its chunk is given back if that was the last block in it. The card
// must have finished with it.
void free_in_chunk(CUdeviceptr pointer);

// The block in a chunk that an address lies in: where it begins, how long it is. False: none.
bool find_in_chunk(CUdeviceptr address, CUdeviceptr* base, uint64_t* bytes);

// Maps memory at a chunk's addresses, for its device and all that may access it.
CUresult map_chunk(const Chunk& chunk, CUmemGenericAllocationHandle handle);
CUresult unmap_chunk(const Chunk& chunk);
// From now on, or no longer, the memory of a card is accessed by that device too.
CUresult set_peer(int card, CUdevice device, bool allowed);

}  // namespace mete::meter
