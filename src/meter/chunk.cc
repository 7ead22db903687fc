// SPDX-License-Identifier: Apache-2.0
// See chunk.h. A request below 32 MiB is served from the cells of a shared chunk of its card and
// kind; if none has room, a new chunk is reserved in the grant, then created, mapped and inserted
// into Process::chunks, which is sorted by address, so that the chunk of a pointer is found by
// binary search. Everything here runs inside the gate, or in the park thread while no thread is
// inside.
#include "meter/chunk.h"

#include "abi/cuda_card.h"
#include "meter/budget.h"
#include "meter/memory.h"
#include "meter/place.h"
#include "meter/real.h"
#include "meter/share.h"
#include "meter/state.h"

namespace mete::meter {
namespace {

constexpr uint64_t kLargest = 32ull << 20;  // of a shared chunk; a block of this size or more has
                                            // its own
constexpr uint64_t kCellBytes = 512;

uint64_t cell_bytes(Chunk::Kind kind) {
  return kind == Chunk::kCells ? kCellBytes : abi::kGranuleBytes;
}
uint32_t cells_for(Chunk::Kind kind, uint64_t bytes) {
  return static_cast<uint32_t>((bytes + cell_bytes(kind) - 1) / cell_bytes(kind));
}

// Under the lock: the chunk that an address lies in, or nullptr.
Chunk* chunk_at(CUdeviceptr address) {
  size_t low = 0;
  size_t high = process.chunks.size();
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (process.chunks[middle].end() <= address)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == process.chunks.size() || process.chunks[low].base > address) return nullptr;
  return &process.chunks[low];
}

// Under the lock.
bool insert(const Chunk& chunk) {
  if (!process.chunks.add(chunk)) return false;
  for (size_t i = process.chunks.size() - 1;
       i > 0 && process.chunks[i - 1].base > process.chunks[i].base; --i)
    process.chunks.swap(i - 1, i);
  return true;
}
void take_out(size_t at) {
  for (; at + 1 < process.chunks.size(); ++at) process.chunks.swap(at, at + 1);
  process.chunks.remove(at);
}

bool take_from_shared(int card, Chunk::Kind kind, uint64_t bytes, CUdeviceptr* out) {
  Locked locked(process.lock);
  for (Chunk& chunk : process.chunks) {
    if (chunk.kind != kind || chunk.card != card) continue;
    const uint32_t cell = chunk.cells.take(cells_for(kind, bytes));
    if (cell == Cells::kNone) continue;
    *out = chunk.base + cell * cell_bytes(kind);
    return true;
  }
  return false;
}

// The size of shared chunks doubles, so that a small job holds little and a large job has few
// chunks.
uint64_t next_size(int card, Chunk::Kind kind, uint64_t least) {
  uint64_t held = 0;
  {
    Locked locked(process.lock);
    for (const Chunk& chunk : process.chunks)
      if (chunk.kind == kind && chunk.card == card) held += chunk.bytes;
  }
  uint64_t size = abi::kGranuleBytes;
  while (size < kLargest && (size < least || size * 2 <= held)) size *= 2;
  return size;
}

void undo(const Chunk& chunk, bool mapped) {
  if (mapped) (void)real.cuMemUnmap(chunk.base, chunk.bytes);
  if (chunk.handle != 0) (void)real.cuMemRelease(chunk.handle);
  if (chunk.base != 0) (void)real.cuMemAddressFree(chunk.base, chunk.bytes);
}

CUresult make_memory(Chunk& chunk) {
  CUresult result = real.cuMemAddressReserve(&chunk.base, chunk.bytes, abi::kGranuleBytes, 0, 0);
  if (result != CUDA_SUCCESS) return result;
  const CUmemAllocationProp properties = abi::memory_on(chunk.device, true);
  result = real.cuMemCreate(&chunk.handle, chunk.bytes, &properties, 0);
  for (int tries = 0; result == CUDA_ERROR_OUT_OF_MEMORY && worth_another_try(&tries);)
    result = real.cuMemCreate(&chunk.handle, chunk.bytes, &properties, 0);
  if (result == CUDA_SUCCESS) result = map_chunk(chunk, chunk.handle);
  if (result != CUDA_SUCCESS) undo(chunk, false);
  return result;
}

// Makes a new chunk that contains the block.
CUresult make_chunk(const Place& place, Chunk::Kind kind, uint64_t size, uint64_t block,
                    CUdeviceptr* out) {
  const uint64_t units = abi::units_for(size);
  if (!take(place.card, units)) return CUDA_ERROR_OUT_OF_MEMORY;
  Chunk chunk{};
  chunk.bytes = size;
  chunk.device = place.device;
  chunk.card = place.card;
  chunk.kind = kind;
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  if (kind == Chunk::kOwn || chunk.cells.make(cells_for(kind, size))) result = make_memory(chunk);
  if (result == CUDA_SUCCESS) {
    *out = chunk.base;
    if (kind != Chunk::kOwn) (void)chunk.cells.take(cells_for(kind, block));
    Locked locked(process.lock);
    chunk.id = ++process.last_chunk_id;
    if (!insert(chunk)) result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (result != CUDA_SUCCESS) {
    if (chunk.id != 0) undo(chunk, true);
    chunk.cells.drop();
  }
  settle(place.card, units, result == CUDA_SUCCESS ? units : 0);
  return result;
}

}  // namespace

CUresult map_chunk(const Chunk& chunk, CUmemGenericAllocationHandle handle) {
  CUresult result = real.cuMemMap(chunk.base, chunk.bytes, 0, handle, 0);
  if (result != CUDA_SUCCESS) return result;
  CUmemAccessDesc access[1 + kMaxDevices]{};
  size_t count = 0;
  const uint64_t devices = process.peers[chunk.card] | 1ull << chunk.device;
  for (int device = 0; device < kMaxDevices; ++device) {
    if ((devices >> device & 1) == 0) continue;
    access[count++] = abi::access_on(device);
  }
  result = real.cuMemSetAccess(chunk.base, chunk.bytes, access, count);
  if (result != CUDA_SUCCESS) (void)real.cuMemUnmap(chunk.base, chunk.bytes);
  return result;
}

CUresult unmap_chunk(const Chunk& chunk) { return real.cuMemUnmap(chunk.base, chunk.bytes); }

CUresult set_peer(int card, CUdevice device, bool allowed) {
  if (device < 0 || device >= kMaxDevices) return CUDA_ERROR_INVALID_DEVICE;
  const CUmemAccessDesc access = abi::access_on(
      device, allowed ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE);
  CUresult result = CUDA_SUCCESS;
  for (size_t i = 0;; ++i) {
    Chunk chunk{};
    {
      Locked locked(process.lock);
      if (allowed)
        process.peers[card] |= 1ull << device;
      else
        process.peers[card] &= ~(1ull << device);
      if (i >= process.chunks.size()) return result;
      chunk = process.chunks[i];
    }
    if (chunk.card != card || chunk.device == device) continue;
    const CUresult one = real.cuMemSetAccess(chunk.base, chunk.bytes, &access, 1);
    if (one != CUDA_SUCCESS) result = one;
  }
}

CUresult allocate_in_chunk(const Place& place, uint64_t bytes, CUdeviceptr* out) {
  if (bytes >= kLargest)
    return make_chunk(place, Chunk::kOwn, abi::round_to_granule(bytes), bytes, out);
  const Chunk::Kind kind = bytes > kSmallBytes ? Chunk::kGranules : Chunk::kCells;
  if (take_from_shared(place.card, kind, bytes, out)) return CUDA_SUCCESS;
  const uint64_t least = abi::round_to_granule(bytes);
  const uint64_t size = next_size(place.card, kind, least);
  CUresult result = make_chunk(place, kind, size, bytes, out);
  // Near the limit, retry with the smallest size that serves, so that the last granule can be used.
  if (result == CUDA_ERROR_OUT_OF_MEMORY && size > least)
    result = make_chunk(place, kind, least, bytes, out);
  return result;
}

void free_in_chunk(CUdeviceptr pointer) {
  Chunk gone{};
  {
    Locked locked(process.lock);
    Chunk* chunk = chunk_at(pointer);
    if (chunk == nullptr) return;
    if (chunk->kind != Chunk::kOwn) {
      chunk->cells.give(static_cast<uint32_t>((pointer - chunk->base) / cell_bytes(chunk->kind)));
      if (!chunk->cells.empty()) return;
    }
    gone = *chunk;
    take_out(static_cast<size_t>(chunk - process.chunks.begin()));
  }
  undo(gone, true);
  gone.cells.drop();
  // A process that has the chunk open still holds it on the card.
  release(gone.card, keep_if_exported(gone.base, gone.card, abi::units_for(gone.bytes)));
}

bool find_in_chunk(CUdeviceptr address, CUdeviceptr* base, uint64_t* bytes) {
  Locked locked(process.lock);
  const Chunk* chunk = chunk_at(address);
  if (chunk == nullptr) return false;
  if (chunk->kind == Chunk::kOwn) {
    *base = chunk->base;
    *bytes = chunk->bytes;
    return true;
  }
  const uint64_t each = cell_bytes(chunk->kind);
  uint32_t first = 0;
  uint32_t count = 0;
  if (!chunk->cells.find(static_cast<uint32_t>((address - chunk->base) / each), &first, &count))
    return false;
  *base = chunk->base + first * each;
  *bytes = count * each;
  return true;
}

}  // namespace mete::meter
