// SPDX-License-Identifier: Apache-2.0
// See pool.h. An allocation is served by the heap of the pool (pool_heap.h); if no free block
// serves, the pool grows by whole steps, next to its highest slab, so that new and free memory
// join. Synchronising calls give back unused steps above the release threshold. Only growing and
// shrinking call the server.
#include "simgpu/pool.h"

#include "simgpu/state.h"

namespace simgpu {
namespace {

constinit Pool* pools = nullptr;

struct Current {
  Pool* standard;
  Pool* chosen;
};
constinit Current current[3][kMaxCards] = {};

struct Asker {
  const Stream* stream;
  const Pool* pool;
};

// Whether memory freed at `stamp` may serve the asking stream. In its own order always; else as the
// pool's attributes say: after an event, when it happens to be complete, or by waiting for it.
bool usable(const Mark& stamp, void* data) {
  const Asker& asker = *static_cast<const Asker*>(data);
  if (stamp.stream == asker.stream->id || was_seen(stamp)) return true;
  if (asker.pool->follow_events && covers(asker.stream, stamp)) return true;
  if (asker.pool->opportunistic && is_complete(stamp)) return true;
  return asker.pool->internal_dependencies;
}

bool seen(const Mark& stamp, void*) { return was_seen(stamp); }

// A block that continues in the next slab is reported up to the end of this one: the rest has a
// backing of its own.
bool find_pool_block(Range* range, CUdeviceptr p, Block* out) {
  const PoolBlock* const found = static_cast<const Slab*>(range->owner)->pool->heap.around(p);
  if (found == nullptr) return false;
  const CUdeviceptr block_end = found->address + found->requested;
  const CUdeviceptr range_end = range->base + range->bytes;
  *out = {found->address, (block_end < range_end ? block_end : range_end) - found->address};
  return p < block_end;
}

// cuMemFree, which has synchronised before: nothing is pending.
CUresult release_block(Range*, CUdeviceptr p) {
  PoolBlock* const block = block_at(p);
  if (block == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Pool* const pool = block->pool;
  pool->heap.give(block, {});
  pool->heap.settle(seen, nullptr);
  pool_shrink(pool, pool->destroyed ? 0 : pool->threshold, Floor::kThreshold);
  return CUDA_SUCCESS;
}

constexpr RangeOps kPoolOps = {find_pool_block, release_block};

// Whether [address, address + bytes) of the pool's window is not in use.
bool is_vacant(const Pool* pool, uint64_t address, uint64_t bytes) {
  if (address + bytes > pool->window + pool->window_bytes) return false;
  for (const Slab* slab = pool->heap.slabs(); slab != nullptr; slab = slab->next)
    if (address < slab->address + slab->bytes && slab->address < address + bytes) return false;
  return true;
}

// The end of the highest slab: growth happens there, so that it is adjacent to free memory.
uint64_t top_of(const Pool* pool) {
  uint64_t top = pool->window;
  for (const Slab* slab = pool->heap.slabs(); slab != nullptr; slab = slab->next)
    if (slab->address + slab->bytes > top) top = slab->address + slab->bytes;
  return top;
}

// An address for `bytes` more, or 0. Memory that other processes may import is allocated slab by
// slab: no block of it crosses two.
uint64_t place_for(Pool* pool, uint64_t bytes) {
  if (pool->props.handleTypes != CU_MEM_HANDLE_TYPE_NONE) return va_take(bytes + kGranule, 0, 0);
  const uint64_t top = top_of(pool);
  if (is_vacant(pool, top, bytes)) return top;
  if (is_vacant(pool, pool->window, bytes)) return pool->window;
  for (const Slab* slab = pool->heap.slabs(); slab != nullptr; slab = slab->next)
    if (is_vacant(pool, slab->address + slab->bytes, bytes)) return slab->address + slab->bytes;
  return 0;
}

bool open_window(Pool* pool) {
  if (pool->window != 0 || pool->props.handleTypes != CU_MEM_HANDLE_TYPE_NONE) return true;
  const uint64_t total = driver.devices[pool->device].total;
  pool->window_bytes = (2 * total / kGrowthStep + 1) * kGrowthStep;
  pool->window = va_take(pool->window_bytes, 0, 0);
  return pool->window != 0;
}

CUresult back_by_card(Slab* slab, Pool* pool) {
  CUresult result = phys_take(pool->device, slab->bytes, MemoryClass::kPool, &slab->range.piece);
  if (result != CUDA_SUCCESS) return result;
  slab->address = place_for(pool, slab->bytes);
  if (slab->address == 0) {
    phys_give(slab->range.piece);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  Range& range = slab->range;
  range.base = slab->address;
  range.bytes = slab->bytes;
  range.asked = slab->bytes;
  range.kind = RangeKind::kPool;
  range.device = pool->device;
  range.context = driver.devices[pool->device].primary;
  range.readable = pool->readable;
  range.writable = pool->writable;
  range.pool = handle_of(pool);
  range.ops = &kPoolOps;
  range.owner = slab;
  range_add(&range);
  return CUDA_SUCCESS;
}

CUresult back_by_host(Slab* slab, const Pool* pool) {
  if (pool->place == PoolPlace::kManaged) {
    CUdeviceptr address = 0;
    const CUresult result = cuMemAllocManaged(&address, slab->bytes, CU_MEM_ATTACH_GLOBAL);
    slab->address = address;
    slab->host = pointer_of(address);
    return result;
  }
  const CUresult result = cuMemHostAlloc(&slab->host, slab->bytes, CU_MEMHOSTALLOC_PORTABLE);
  slab->address = reinterpret_cast<uint64_t>(slab->host);
  return result;
}

void unback(Slab* slab, const Pool* pool) {
  if (pool->place == PoolPlace::kCard) {
    range_remove(&slab->range);
    if (pool->props.handleTypes != CU_MEM_HANDLE_TYPE_NONE)
      va_give(slab->address, slab->bytes + kGranule);
    phys_give(slab->range.piece);
  } else if (pool->place == PoolPlace::kManaged) {
    HostRange* const range = host_find(slab->address);
    if (range != nullptr) (void)managed_free(range);
  } else {
    (void)cuMemFreeHost(slab->host);
  }
}

CUresult grow_once(Pool* pool, uint64_t bytes) {
  Slab* const slab = make<Slab>();
  if (slab == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  slab->pool = pool;
  slab->bytes = bytes;
  const CUresult result =
      pool->place == PoolPlace::kCard ? back_by_card(slab, pool) : back_by_host(slab, pool);
  if (result != CUDA_SUCCESS) {
    destroy(slab);
    return result;
  }
  if (!pool->heap.add(slab)) {
    unback(slab, pool);
    destroy(slab);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (pool->heap.reserved() > pool->reserved_high) pool->reserved_high = pool->heap.reserved();
  return CUDA_SUCCESS;
}

// Single steps, each of which can be returned alone. If one is not available, the ones before it
// are returned.
CUresult grow_steps(Pool* pool, uint64_t bytes) {
  // Memory that is imported piece by piece, and memory of the host, comes as one step.
  const bool single =
      pool->place != PoolPlace::kCard || pool->props.handleTypes != CU_MEM_HANDLE_TYPE_NONE;
  if (pool->max_bytes != 0 && pool->heap.reserved() + bytes > pool->max_bytes)
    return CUDA_ERROR_OUT_OF_MEMORY;
  const uint64_t before = pool->heap.reserved();
  const uint64_t high = pool->reserved_high;
  for (uint64_t got = 0; got < bytes; got += single ? bytes : kGrowthStep) {
    const CUresult result = grow_once(pool, single ? bytes : kGrowthStep);
    if (result == CUDA_SUCCESS) continue;
    pool_shrink(pool, before, Floor::kKeep);
    pool->reserved_high = high;
    return result;
  }
  return CUDA_SUCCESS;
}

CUresult grow(Pool* pool, uint64_t request) {
  if (request > 1ull << 46 || (pool->place == PoolPlace::kCard && !open_window(pool)))
    return CUDA_ERROR_OUT_OF_MEMORY;
  const uint64_t cells = (request + PoolHeap::kCell - 1) / PoolHeap::kCell * PoolHeap::kCell;
  const uint64_t joined = pool->window == 0 ? 0 : pool->heap.free_before(top_of(pool));
  const uint64_t bytes = (cells - joined + kGrowthStep - 1) / kGrowthStep * kGrowthStep;
  const CUresult result = grow_steps(pool, bytes);
  if (result != CUDA_ERROR_OUT_OF_MEMORY) return result;
  // Unused steps may lie in the wrong place: give them back, then retry once.
  pool->heap.settle(seen, nullptr);
  const uint64_t before = pool->heap.reserved();
  pool_shrink(pool, 0, Floor::kKeep);
  if (pool->heap.reserved() == before) return result;
  return grow_steps(pool, (cells + kGrowthStep - 1) / kGrowthStep * kGrowthStep);
}

}  // namespace

Pool* find_pool(CUmemoryPool handle) {
  Pool* const pool = reinterpret_cast<Pool*>(handle);
  return pool != nullptr && pool->magic == Pool::kMagic && !pool->destroyed ? pool : nullptr;
}

Pool* make_pool(const CUmemPoolProps& props, PoolPlace place, int device) {
  Pool* const pool = make<Pool>();
  if (pool == nullptr) return nullptr;
  pool->props = props;
  pool->place = place;
  pool->device = device;
  pool->max_bytes = (props.maxSize + kGrowthStep - 1) / kGrowthStep * kGrowthStep;
  pool->readable = pool->writable = 1u << device;
  pool->next = pools;
  pools = pool;
  return pool;
}

static void forget_pool(Pool* pool) {
  Pool** link = &pools;
  while (*link != pool) link = &(*link)->next;
  *link = pool->next;
  if (pool->window != 0) va_give(pool->window, pool->window_bytes);
  pool->magic = 0;
  destroy(pool);
}

void destroy_pool(Pool* pool) {
  pool->destroyed = true;
  for (auto& places : current)
    for (Current& c : places)
      if (c.chosen == pool) c.chosen = c.standard;
  pool->heap.settle(seen, nullptr);
  pool_shrink(pool, 0, Floor::kKeep);
}

Pool* default_pool(PoolPlace place, int device) {
  Current& c = current[static_cast<int>(place)][device];
  if (c.standard == nullptr) {
    CUmemPoolProps props = {};
    props.allocType = place == PoolPlace::kManaged ? CU_MEM_ALLOCATION_TYPE_MANAGED
                                                   : CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type =
        place == PoolPlace::kHost ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
    props.location.id = device;
    c.standard = make_pool(props, place, device);
    if (c.standard != nullptr) c.standard->standard = true;
  }
  return c.standard;
}

Pool* current_pool(PoolPlace place, int device) {
  Current& c = current[static_cast<int>(place)][device];
  if (c.chosen == nullptr) c.chosen = default_pool(place, device);
  return c.chosen;
}

void set_current_pool(PoolPlace place, int device, Pool* pool) {
  (void)default_pool(place, device);
  current[static_cast<int>(place)][device].chosen = pool;
}

CUresult pool_alloc(Pool* pool, uint64_t bytes, Stream* stream, CUdeviceptr* out) {
  if (pool->imported || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  enter_stream(stream);
  Asker asker = {stream, pool};
  PoolBlock* block = pool->heap.take(bytes, usable, &asker);
  if (block == nullptr) {
    pool->heap.settle(seen, nullptr);  // frees seen by now may join into what is needed
    block = pool->heap.take(bytes, usable, &asker);
  }
  if (block == nullptr) {
    const CUresult result = grow(pool, bytes);
    if (result != CUDA_SUCCESS) return result;
    block = pool->heap.take(bytes, usable, &asker);
    if (block == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (block->stamp.stream != 0 && !was_seen(block->stamp) && !covers(stream, block->stamp))
    wait_for_mark(stream, block->stamp, -1);
  block->stamp = {};
  if (pool->heap.used() > pool->used_high) pool->used_high = pool->heap.used();
  *out = block->address;
  return CUDA_SUCCESS;
}

CUresult pool_free(PoolBlock* block, Stream* stream) {
  const uint64_t sequence = enter_stream(stream);
  block->pool->heap.give(block, {stream->id, sequence});
  return CUDA_SUCCESS;
}

void pool_shrink(Pool* pool, uint64_t bytes, Floor floor) {
  while (pool->heap.reserved() > bytes) {
    const PoolHeap::Idle idle = pool->heap.idle_slab();
    Slab* const slab = idle.slab;
    if (slab == nullptr) break;
    if (floor == Floor::kKeep && pool->heap.reserved() - slab->bytes < bytes) break;
    if (!pool->heap.remove(idle)) break;
    unback(slab, pool);
    destroy(slab);
  }
  if (pool->destroyed && pool->heap.slabs() == nullptr) forget_pool(pool);
}

void pools_after_synchronize(int device) {
  for (Pool* pool = pools; pool != nullptr;) {
    Pool* const next = pool->next;
    const uint64_t keep = pool->destroyed ? 0 : pool->threshold;
    if (pool->heap.reserved() > keep &&
        (pool->device == device || pool->place != PoolPlace::kCard)) {
      pool->heap.settle(seen, nullptr);
      pool_shrink(pool, keep, Floor::kThreshold);
    }
    pool = next;
  }
}

// The last context of the card ended: everything that its pools held is gone.
void pools_end(Device* device) {
  const int ordinal = static_cast<int>(device - driver.devices);
  for (Pool* pool = pools; pool != nullptr; pool = pool->next) {
    if (pool->place != PoolPlace::kCard || pool->device != ordinal) continue;
    while (Slab* const slab = pool->heap.drop_one()) {
      unback(slab, pool);
      destroy(slab);
    }
  }
}

}  // namespace simgpu
