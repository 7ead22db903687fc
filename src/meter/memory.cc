// SPDX-License-Identifier: Apache-2.0
// cuMemAlloc and its relatives. Sizes are charged as the driver takes them: above 1 MiB in steps of
// 2 MiB, smaller ones by the slab that the returned pointer lies in, so ten thousand blocks of 512
// bytes cost the three slabs they fill.
//
// A small block may or may not open a new slab, and only the driver knows. One spare slab per
// process and card is charged beforehand and pays for it. When the spare is used up and cannot be
// replaced, small requests are refused until there is room for a slab.
#include "meter/memory.h"

#include "meter/budget.h"
#include "meter/cards.h"
#include "meter/chunk.h"
#include "meter/park.h"
#include "meter/pool.h"
#include "meter/query.h"
#include "meter/real.h"
#include "meter/relaxed.h"
#include "meter/reserve.h"
#include "meter/share.h"

namespace mete::meter {
namespace {

constexpr uint64_t kHuge = 1ull << 46;  // beyond any card: refused before arithmetic can overflow

uint64_t slab_key(CUdeviceptr pointer) { return (pointer & ~(abi::kGranuleBytes - 1)) | 1; }

// Under the lock: counts one more block in the slab of `pointer`. True if that slab is new.
bool enter_slab(CUdeviceptr pointer) {
  if (TableValue* slab = process.blocks.find(slab_key(pointer))) {
    ++slab->a;
    return false;
  }
  process.blocks.put(slab_key(pointer), {1, 0});
  return true;
}

// Under the lock: counts one block less. True if the slab is now empty, and removed.
bool leave_slab(CUdeviceptr pointer) {
  TableValue* slab = process.blocks.find(slab_key(pointer));
  if (slab == nullptr || --slab->a > 0) return false;
  TableValue gone;
  process.blocks.remove(slab_key(pointer), &gone);
  return true;
}

void give_back_block(CUdeviceptr pointer, const Block& block, bool slab_empty);
void free_late_blocks();

// Records a block that the driver just returned. If the address is still listed as freed in stream
// order, the driver has freed that block: its units are given back now.
void remember_block(CUdeviceptr pointer, const Block& block) {
  TableValue old;
  bool was_freed = false;
  bool slab_empty = false;
  {
    Locked locked(process.lock);
    was_freed = process.freed.size() > 0 && process.freed.remove(pointer, &old);
    if (was_freed && Block::unpack(old).kind == Block::kSmall) slab_empty = leave_slab(pointer);
    process.blocks.put(pointer, block.pack());
  }
  if (was_freed) give_back_block(pointer, Block::unpack(old), slab_empty);
}

// ---- own pages: everything above 1 MiB ----------------------------------------------------------

template <class Call>
CUresult allocate_large(const Place& place, uint64_t bytes, CUdeviceptr* out, Call call) {
  const uint64_t units = abi::units_for(abi::round_to_granule(bytes));
  if (!take(place.card, units)) return CUDA_ERROR_OUT_OF_MEMORY;
  uint64_t real_bytes = bytes;
  CUresult result = call(&real_bytes);
  for (int tries = 0; result == CUDA_ERROR_OUT_OF_MEMORY && worth_another_try(&tries);)
    result = call(&real_bytes);
  if (result != CUDA_SUCCESS) {
    settle(place.card, units, 0);
    return result;
  }
  const uint64_t used = abi::units_for(abi::round_to_granule(real_bytes));
  remember_block(*out, Block{used, place.card, Block::kOwn, place.context_id});
  settle(place.card, units, used);
  return result;
}

// ---- slabs --------------------------------------------------------------------------------------

template <class Call>
CUresult allocate_small(const Place& place, CUdeviceptr* out, Call call) {
  CardState& state = process.cards[place.card];
  bool on_spare = false;
  {
    Locked locked(process.lock);
    if (state.spare_slabs > state.small_calls) {
      ++state.small_calls;
      on_spare = true;
    }
  }
  if (!on_spare && !take(place.card, abi::kGranuleUnits)) return CUDA_ERROR_OUT_OF_MEMORY;
  uint64_t real_bytes = 0;
  CUresult result = call(&real_bytes);
  for (int tries = 0; result == CUDA_ERROR_OUT_OF_MEMORY && worth_another_try(&tries);)
    result = call(&real_bytes);
  bool new_slab = false;
  bool spare_used = false;
  {
    Locked locked(process.lock);
    if (on_spare) --state.small_calls;
    if (result == CUDA_SUCCESS) {
      process.blocks.put(*out, Block{0, place.card, Block::kSmall, place.context_id}.pack());
      new_slab = enter_slab(*out);
      // The driver has freed the block that was freed in stream order at this address.
      TableValue freed;
      if (process.freed.size() > 0 && process.freed.remove(*out, &freed)) (void)leave_slab(*out);
      if (new_slab && on_spare) {
        --state.spare_slabs;
        spare_used = true;
      }
    }
  }
  if (!on_spare) settle(place.card, abi::kGranuleUnits, new_slab ? abi::kGranuleUnits : 0);
  if (spare_used && take_if_free(place.card, abi::kGranuleUnits)) {
    {
      Locked locked(process.lock);
      ++state.spare_slabs;
    }
    settle(place.card, abi::kGranuleUnits, abi::kGranuleUnits);
  }
  return result;
}

// Gives back a slab that became empty, or keeps it as the spare if there is none.
void return_slab(int card) {
  CardState& state = process.cards[card];
  {
    Locked locked(process.lock);
    if (state.spare_slabs == 0 && state.contexts > 0) {
      ++state.spare_slabs;
      return;
    }
  }
  release(card, abi::kGranuleUnits);
}

// ---- chunks: everything, in parkable processes --------------------------------------------------

CUresult allocate_parkable(const Place& place, uint64_t bytes, CUdeviceptr* out) {
  free_late_blocks();
  const CUresult result = allocate_in_chunk(place, bytes, out);
  if (result == CUDA_SUCCESS)
    remember_block(*out, Block{bytes, place.card, Block::kInChunk, place.context_id,
                               process.last_serial.fetch_add(1) + 1});
  return result;
}

// `call(&bytes)` calls the driver and may return how many bytes it really took.
template <class Call>
CUresult allocate(uint64_t bytes, CUdeviceptr* out, Call call, bool in_chunks = false) {
  Place place;
  uint64_t ignored = 0;
  if (bytes == 0 || out == nullptr || !find_place(&place)) return call(&ignored);
  if (place.card == kNoCard || bytes > kHuge) return CUDA_ERROR_OUT_OF_MEMORY;
  if (in_chunks && process.parkable.load(std::memory_order_relaxed))
    return heed(allocate_parkable(place, bytes, out));
  return heed(bytes > kSmallBytes ? allocate_large(place, bytes, out, call)
                                  : allocate_small(place, out, call));
}

// ---- managed memory -----------------------------------------------------------------------------

// Managed memory may become resident on any card of the job, and NVML does not report where: its
// whole size is charged on all cards.
CUresult allocate_managed(CUdeviceptr* out, size_t bytes, unsigned int flags) {
  Place place;
  if (bytes == 0 || out == nullptr || !find_place(&place))
    return real.cuMemAllocManaged(out, bytes, flags);
  if (place.card == kNoCard || bytes > kHuge) return CUDA_ERROR_OUT_OF_MEMORY;
  const uint64_t units = abi::units_for(bytes);  // the driver keeps it in pages of 64 KiB
  const Cards cards = Cards::all();
  if (!cards.take(units)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = real.cuMemAllocManaged(out, bytes, flags);
  if (result == CUDA_SUCCESS) {
    remember_block(*out, Block{units, place.card, Block::kManaged, place.context_id});
    note_obstacle(abi::ParkReason::kManaged, 1);
  }
  cards.settle(units, result == CUDA_SUCCESS ? units : 0);
  return result;
}

// The driver has freed a block.
void give_back_block(CUdeviceptr pointer, const Block& block, bool slab_empty) {
  switch (block.kind) {
    case Block::kOwn: {
      release(block.card, keep_if_exported(pointer, block.card, block.units));
      break;
    }
    case Block::kSmall: {
      // A process that opened an exported small block holds its whole slab, whatever else lies in
      // it.
      const bool held = keep_if_exported(pointer, block.card, abi::kGranuleUnits) == 0;
      if (held && !slab_empty) charge_anyway(block.card, abi::kGranuleUnits);
      if (!held && slab_empty) return_slab(block.card);
      break;
    }
    case Block::kManaged:
      Cards::all().release(block.units);
      note_obstacle(abi::ParkReason::kManaged, -1);
      break;
    case Block::kInChunk:
      free_in_chunk(pointer);
      break;
  }
}

// Waits as the driver's own free does before it frees memory: no work on the card uses it any more.
CUresult synchronise(uint32_t context_id) {
  CUcontext context = nullptr;
  {
    Locked locked(process.lock);
    for (const Context& known : process.contexts)
      if (known.id == context_id) context = known.handle;
  }
  CUcontext current = nullptr;
  (void)real.cuCtxGetCurrent(&current);
  const bool other = context != nullptr && context != current;
  if (other && real.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS) return CUDA_SUCCESS;
  CUresult result = CUDA_SUCCESS;
  {
    const Relaxed relaxed;
    result = real.cuCtxSynchronize();
  }
  if (other) (void)real.cuCtxPopCurrent_v2(&current);
  return result;
}

bool is_capturing(CUresult result) {
  return result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
         result <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

// Frees the blocks that were freed while a stream was being captured, when the card could not be
// synchronised.
void free_late_blocks() {
  if (process.late.size() == 0) return;
  CUdeviceptr pointer = 0;
  TableValue value;
  for (;;) {
    {
      Locked locked(process.lock);
      pointer = 0;
      process.late.each([&](uint64_t key, TableValue& v) {
        pointer = key;
        value = v;
      });
      if (pointer == 0) return;
    }
    if (synchronise(Block::unpack(value).context_id) != CUDA_SUCCESS) return;
    {
      Locked locked(process.lock);
      if (!process.late.remove(pointer, &value)) continue;
    }
    free_in_chunk(pointer);
  }
}

CUresult free_parkable(CUdeviceptr pointer, const Block& block) {
  const CUresult result = synchronise(block.context_id);
  if (is_capturing(result)) {
    Locked locked(process.lock);
    process.late.put(pointer, block.pack());
    return CUDA_SUCCESS;
  }
  if (result == CUDA_SUCCESS) {
    free_in_chunk(pointer);
    return result;
  }
  Locked locked(process.lock);
  process.blocks.put(pointer, block.pack());
  return result;
}

// A free always reaches the driver. The entry leaves the table first: once the driver has freed the
// address, another thread may get it.
template <class Call>
CUresult free_block(CUdeviceptr pointer, Call call) {
  TableValue value;
  bool known = false;
  if (process.attached.load(std::memory_order_acquire) == 1) {
    Locked locked(process.lock);
    known = pointer != 0 && process.blocks.remove(pointer, &value);
  }
  if (known && Block::unpack(value).kind == Block::kInChunk)
    return heed(free_parkable(pointer, Block::unpack(value)));
  const CUresult result = heed(call());
  if (!known) {
    if (result == CUDA_SUCCESS && pointer != 0) {
      drop_import(pointer);  // frees a pointer out of another process's pool
      note_plain_free();
    }
    return result;
  }
  const Block block = Block::unpack(value);
  bool slab_empty = false;
  {
    Locked locked(process.lock);
    if (result != CUDA_SUCCESS)
      process.blocks.put(pointer, value);
    else if (block.kind == Block::kSmall)
      slab_empty = leave_slab(pointer);
  }
  if (result == CUDA_SUCCESS) give_back_block(pointer, block, slab_empty);
  return result;
}

}  // namespace

void forget_blocks_of(uint32_t context_id) {
  TakenBlock gone[kTakeBatch];
  for (int count = kTakeBatch; count == kTakeBatch;) {
    bool empty[kTakeBatch] = {};
    {
      Locked locked(process.lock);
      count = take_blocks_of(process.blocks, context_id, gone);
      for (int i = 0; i < count; ++i)
        empty[i] = gone[i].block.kind == Block::kSmall && leave_slab(gone[i].key);
    }
    for (int i = 0; i < count; ++i) give_back_block(gone[i].key, gone[i].block, empty[i]);
  }
}

int take_blocks_of(Table& table, uint32_t context_id, TakenBlock* out) {
  int count = 0;
  table.each([&](uint64_t key, TableValue& value) {
    if ((key & 1) != 0 || count == kTakeBatch) return;
    const Block block = Block::unpack(value);
    if (block.context_id == context_id) out[count++] = {key, block};
  });
  TableValue ignored;
  for (int i = 0; i < count; ++i) table.remove(out[i].key, &ignored);
  return count;
}

bool note_stream_free(CUdeviceptr pointer) {
  TableValue value;
  {
    Locked locked(process.lock);
    if (process.blocks.size() == 0 || !process.blocks.remove(pointer, &value)) return false;
    process.freed.put(pointer, value);
  }
  close_reserve(Block::unpack(value).card);
  return true;
}

bool settle_stream_frees() {
  if (process.freed.size() == 0) return false;
  const Relaxed relaxed;
  bool any = false;
  constexpr int kBatch = 64;
  uint64_t pointers[kBatch];
  int count = 0;
  {
    Locked locked(process.lock);
    process.freed.each([&](uint64_t key, TableValue&) {
      if (count < kBatch) pointers[count++] = key;
    });
  }
  for (int i = 0; i < count; ++i) {
    CUdeviceptr base = 0;
    size_t bytes = 0;
    if (real.cuMemGetAddressRange_v2(&base, &bytes, pointers[i]) == CUDA_SUCCESS) continue;
    TableValue value;
    bool slab_empty = false;
    {
      Locked locked(process.lock);
      if (!process.freed.remove(pointers[i], &value)) continue;
      if (Block::unpack(value).kind == Block::kSmall) slab_empty = leave_slab(pointers[i]);
    }
    give_back_block(pointers[i], Block::unpack(value), slab_empty);
    any = true;
  }
  return any;
}

bool free_in_stream_order(CUdeviceptr pointer, CUstream stream, bool per_thread, CUresult* result) {
  if (!process.parkable.load(std::memory_order_relaxed)) return false;
  TableValue value;
  {
    Locked locked(process.lock);
    const TableValue* found = process.blocks.find(pointer);
    if (found == nullptr || Block::unpack(*found).kind != Block::kInChunk) return false;
    process.blocks.remove(pointer, &value);
  }
  *result = per_thread ? real.cuStreamSynchronize_ptsz(stream) : real.cuStreamSynchronize(stream);
  if (*result == CUDA_SUCCESS) {
    free_in_chunk(pointer);
    return true;
  }
  Locked locked(process.lock);
  process.blocks.put(pointer, value);
  return true;
}

bool find_chunk_block(CUdeviceptr address, ChunkBlock* out) {
  if (!find_in_chunk(address, &out->base, &out->bytes)) return false;
  Locked locked(process.lock);
  const TableValue* value = process.blocks.find(out->base);
  if (value == nullptr) return false;
  out->block = Block::unpack(*value);
  out->bytes = out->block.units;
  return true;
}

bool find_behind(CUdeviceptr pointer, int* card, uint64_t* units) {
  Locked locked(process.lock);
  const TableValue* value = process.blocks.find(pointer);
  if (value == nullptr) return false;
  const Block block = Block::unpack(*value);
  if (block.kind == Block::kInChunk) return false;
  *card = block.card;
  *units = block.kind == Block::kSmall ? abi::kGranuleUnits : block.units;
  return true;
}

}  // namespace mete::meter

using namespace mete::meter;

extern "C" {

CUresult hook_cuMemAlloc_v2(CUdeviceptr* out, size_t bytes) {
  return allocate(
      bytes, out, [&](uint64_t*) { return real.cuMemAlloc_v2(out, bytes); }, true);
}

// The interface of CUDA 3.1, with 32-bit addresses: still exported, still real memory.
CUresult hook_cuMemAlloc(CUdeviceptr_v1* out, unsigned int bytes) {
  CUdeviceptr wide = 0;
  return allocate(bytes, out == nullptr ? nullptr : &wide, [&](uint64_t*) {
    const CUresult result = real.cuMemAlloc(out, bytes);
    if (result == CUDA_SUCCESS) wide = *out;
    return result;
  });
}

CUresult hook_cuMemAllocPitch_v2(CUdeviceptr* out, size_t* pitch, size_t width, size_t height,
                                 unsigned int element) {
  // Rows are padded to at most 512 bytes; the pitch that the driver chose is charged once it is
  // known.
  const uint64_t row = (static_cast<uint64_t>(width) + 511) / 512 * 512;
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(row, static_cast<uint64_t>(height), &bytes)) bytes = ~0ull;
  const bool valid = pitch != nullptr && (element == 4 || element == 8 || element == 16);
  bool asked = false;
  const CUresult allocated = allocate(
      pitch == nullptr ? 0 : bytes, out,
      [&](uint64_t* took) {
        asked = true;
        const CUresult result = real.cuMemAllocPitch_v2(out, pitch, width, height, element);
        if (result == CUDA_SUCCESS) *took = *pitch * height;
        return result;
      },
      valid);
  if (allocated == CUDA_SUCCESS && !asked) *pitch = row;  // in a chunk
  return allocated;
}

CUresult hook_cuMemAllocPitch(CUdeviceptr_v1* out, unsigned int* pitch, unsigned int width,
                              unsigned int height, unsigned int element) {
  const uint64_t bytes = (static_cast<uint64_t>(width) + 511) / 512 * 512 * height;
  CUdeviceptr wide = 0;
  return allocate(
      pitch == nullptr ? 0 : bytes, out == nullptr ? nullptr : &wide, [&](uint64_t* took) {
        const CUresult result = real.cuMemAllocPitch(out, pitch, width, height, element);
        if (result == CUDA_SUCCESS) {
          wide = *out;
          *took = static_cast<uint64_t>(*pitch) * height;
        }
        return result;
      });
}

CUresult hook_cuMemAllocManaged(CUdeviceptr* out, size_t bytes, unsigned int flags) {
  return allocate_managed(out, bytes, flags);
}

CUresult hook_cuMemFree_v2(CUdeviceptr pointer) {
  return free_block(pointer, [&] { return real.cuMemFree_v2(pointer); });
}

CUresult hook_cuMemFree(CUdeviceptr_v1 pointer) {
  return free_block(pointer, [&] { return real.cuMemFree(pointer); });
}
}
