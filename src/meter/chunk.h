// SPDX-License-Identifier: Apache-2.0
// The memory of a parkable process: chunks, each one handle of the driver's virtual memory, mapped
// at addresses that stay reserved while the memory itself is away. A block of 32 MiB or more has a
// chunk of its own. Smaller blocks share chunks of 2 to 32 MiB, which are cut into granules of 2
// MiB, or into cells of 512 bytes for blocks of up to 1 MiB. A chunk is charged as a whole.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/cuda_types.h"
#include "meter/cells.h"

namespace mete::meter {

struct Place;

// Memory that can be given to a mover: a chunk, or memory that the program created itself
// (owned.h).
struct Movable {
  CUmemGenericAllocationHandle handle;  // the driver's; 0: away
  uint64_t bytes;
  uint64_t id;  // never used twice
  CUdevice device;
  int card;
  bool kept;         // a mover holds its bytes
  bool owned;        // an Owned, not a Chunk
  uint64_t on_disk;  // how many of the bytes that a mover holds
};

struct Chunk : Movable {
  enum Kind : uint32_t { kOwn, kGranules, kCells };
  CUdeviceptr base;
  Kind kind;
  Cells cells;  // of shared chunks
  uint64_t end() const { return base + bytes; }
};

// Allocates a block of `bytes` for the current context and charges it. CUDA_ERROR_OUT_OF_MEMORY: it
// does not fit the grant.
CUresult allocate_in_chunk(const Place& place, uint64_t bytes, CUdeviceptr* out);

// Frees the cells of the block, and its chunk if that was the last block in it. The card must have
// finished using the block.
void free_in_chunk(CUdeviceptr pointer);

// Finds the block that an address lies in: its beginning and its length. False: the address is in
// no chunk.
bool find_in_chunk(CUdeviceptr address, CUdeviceptr* base, uint64_t* bytes);

// Maps memory at a chunk's addresses, for its device and all devices that may access it.
CUresult map_chunk(const Chunk& chunk, CUmemGenericAllocationHandle handle);
CUresult unmap_chunk(const Chunk& chunk);
// Grants or revokes access by `device` to the memory of a card.
CUresult set_peer(int card, CUdevice device, bool allowed);

}  // namespace mete::meter
