// SPDX-License-Identifier: Apache-2.0
// Blocks: single allocations by device pointer, and the slabs that small ones share.
#pragma once

#include <cstdint>

#include "meter/place.h"

namespace mete::meter {

// Requests up to this size share 2 MiB slabs in the driver; larger ones are rounded up to 2 MiB.
inline constexpr uint64_t kSmallBytes = 1024 * 1024;

// The content of an entry of Process::blocks.
struct Block {
  enum Kind : uint64_t { kOwn = 0, kSmall = 1, kManaged = 2, kInChunk = 3 };
  uint64_t units;  // for kInChunk: the requested bytes; the chunk is charged
  int card;
  Kind kind;
  uint32_t context_id;
  uint32_t serial = 0;  // for kInChunk: never used twice
  static Block unpack(TableValue v) {
    return {v.a >> 16, static_cast<int>(v.a & 0xff), static_cast<Kind>((v.a >> 8) & 0xff),
            static_cast<uint32_t>(v.b), static_cast<uint32_t>(v.b >> 32)};
  }
  TableValue pack() const {
    return {units << 16 | static_cast<uint64_t>(kind) << 8 | static_cast<uint64_t>(card),
            static_cast<uint64_t>(serial) << 32 | context_id};
  }
};

// Forgets everything that lived in a context that has ended.
void forget_blocks_of(uint32_t context_id);
void forget_arrays_of(uint32_t context_id);

// A block of cuMemAlloc was freed in stream order: it is given back once the driver no longer knows
// its address. False: not a block of the meter.
bool note_stream_free(CUdeviceptr pointer);
// Checks whether the driver has freed such blocks. True if anything came back.
bool settle_stream_frees();

// Takes up to kTakeBatch entries of a context out of a table. The visitor of a table must not
// change it, so this works in two steps, in batches on the stack. Under the lock. Less than a
// batch: these were the last entries.
inline constexpr int kTakeBatch = 64;
struct TakenBlock {
  uint64_t key;
  Block block;
};
int take_blocks_of(Table& table, uint32_t context_id, TakenBlock* out);

// A block in a chunk was freed in stream order: it is freed once the stream has passed this point.
// False: not a block in a chunk.
bool free_in_stream_order(CUdeviceptr pointer, CUstream stream, bool per_thread, CUresult* result);

// The block that an address lies in, if it is in a chunk.
struct ChunkBlock {
  CUdeviceptr base;
  uint64_t bytes;
  Block block;
};
bool find_chunk_block(CUdeviceptr address, ChunkBlock* out);

// The card and the units behind a device pointer. False: not a block of the meter.
bool find_behind(CUdeviceptr pointer, int* card, uint64_t* units);

}  // namespace mete::meter
