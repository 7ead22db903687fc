// SPDX-License-Identifier: Apache-2.0
// One growth step is reserved before an allocation; afterwards the pool's RESERVED figure says what
// was really taken. RESERVED falls inside synchronising calls, so these calls read the pools again
// if a free has happened since.
//
// A pool of managed memory (CUDA 13) is charged as cuMemAllocManaged is: its pages may lie on any
// card of the job, so what it has committed is charged on all. A pool on the host costs no card
// anything and is not listed here.
//
// Reading RESERVED is a call into the driver and happens outside the lock. An epoch per pool shows
// whether another thread settled in between; the figure is then read again, so that an old reading
// never overwrites a newer one.
#include "meter/pool.h"

#include "meter/budget.h"
#include "meter/cards.h"
#include "meter/memory.h"
#include "meter/place.h"
#include "meter/query.h"
#include "meter/real.h"
#include "meter/relaxed.h"
#include "meter/share.h"
#include "meter/vmm.h"

namespace mete::meter {
namespace {

// The content of an entry of Process::pools.
struct Pool {
  uint64_t units;
  int card;
  uint32_t epoch;
  bool ended = false;  // destroyed by the program while allocations are still in use
  bool managed = false;
  static Pool unpack(TableValue v) {
    return {v.a, static_cast<int>(v.b & 0x3f), static_cast<uint32_t>(v.b >> 8), (v.b & 0x80) != 0,
            (v.b & 0x40) != 0};
  }
  TableValue pack() const {
    return {units, static_cast<uint64_t>(epoch) << 8 | (ended ? 0x80u : 0u) |
                       (managed ? 0x40u : 0u) | static_cast<uint64_t>(card)};
  }
};

Cards cards_of(const Pool& pool) { return pool.managed ? Cards::all() : Cards::only(pool.card); }

uint64_t key_of(CUmemoryPool pool) { return reinterpret_cast<uint64_t>(pool); }

bool ask(CUmemoryPool pool, CUmemPool_attribute which, uint64_t* bytes) {
  const Relaxed relaxed;
  cuuint64_t value = 0;
  if (real.cuMemPoolGetAttribute(pool, which, &value) != CUDA_SUCCESS) return false;
  *bytes = value;
  return true;
}

uint64_t attribute(CUmemoryPool pool, CUmemPool_attribute which) {
  uint64_t bytes = 0;
  return ask(pool, which, &bytes) ? bytes : 0;
}

bool known_pool(CUmemoryPool pool, Pool* out) {
  Locked locked(process.lock);
  const TableValue* value = process.pools.find(key_of(pool));
  if (value == nullptr) return false;
  *out = Pool::unpack(*value);
  return true;
}

void remember_pool(CUmemoryPool pool, int card, bool managed = false) {
  Locked locked(process.lock);
  if (process.pools.find(key_of(pool)) == nullptr)
    process.pools.put(key_of(pool), Pool{0, card, 0, false, managed}.pack());
}

// A pool that the driver created or returned for a place and a kind of memory.
void remember_pool_of(CUmemoryPool pool, const CUmemLocation& where, CUmemAllocationType type) {
  if (type == CU_MEM_ALLOCATION_TYPE_MANAGED) return remember_pool(pool, 0, true);
  if (type != CU_MEM_ALLOCATION_TYPE_PINNED || where.type != CU_MEM_LOCATION_TYPE_DEVICE) return;
  if (const int card = card_of(where.id); card != kNoCard) remember_pool(pool, card);
}

// Charges a pool by what it holds now; `reserved` units were taken beforehand and are settled with
// it. Returns by how many units the pool grew.
uint64_t settle_pool(CUmemoryPool pool, const Cards& cards, uint64_t reserved) {
  for (;;) {
    Pool before{};
    if (!known_pool(pool, &before)) {
      cards.settle(reserved, 0);
      return 0;
    }
    uint64_t bytes = 0;
    if (!ask(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes))
      bytes = before.units * abi::kUnitBytes;
    // It is not documented what a pool of managed memory counts as reserved.
    uint64_t used = 0;
    if (before.managed && ask(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used) && used > bytes)
      bytes = used;
    const uint64_t held = abi::units_for(bytes);
    // A thread that reserved nothing and saw no change has nothing to settle. Any other reading
    // must be the latest one, even if the figure is unchanged: it may have fallen and risen again
    // in between.
    if (held != before.units || reserved > 0) {
      Locked locked(process.lock);
      TableValue* value = process.pools.find(key_of(pool));
      if (value == nullptr || Pool::unpack(*value).epoch != before.epoch) continue;
      Pool now = Pool::unpack(*value);
      now.units = held;
      ++now.epoch;
      *value = now.pack();
    }
    cards.settle(reserved, held > before.units ? held - before.units : 0);
    if (before.units > held) cards.release(before.units - held);
    return held > before.units ? held - before.units : 0;
  }
}

// The pool that an allocation on `stream` takes from, now listed. nullptr: not a pool that is
// charged.
CUmemoryPool pool_for(CUdevice device, int card) {
  CUmemoryPool pool = process.cards[card].current_pool;
  if (pool != nullptr) return pool;
  if (real.cuDeviceGetMemPool == nullptr || real.cuDeviceGetMemPool(&pool, device) != CUDA_SUCCESS)
    return nullptr;
  remember_pool(pool, card);
  // Only an ordinary pool takes this fast path.
  Pool known{};
  if (known_pool(pool, &known) && !known.managed) process.cards[card].current_pool = pool;
  return pool;
}

bool is_capturing(CUstream stream, bool per_thread) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const auto ask = per_thread ? real.cuStreamIsCapturing_ptsz : real.cuStreamIsCapturing;
  return ask != nullptr && ask(stream, &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

// The right to allocate from a pool without a reservation, because there is room inside it. One
// thread of the process has it at a time: several threads would all count on one piece of room, and
// each might make the pool grow by more than the reserve covers. Other threads wait for 10 ms at
// most.
class Inside {
 public:
  explicit Inside(const Cards& cards) : cards_(cards), state_(process.cards[cards.first]) {}
  ~Inside() {
    if (entered_) state_.inside.store(0, std::memory_order_release);
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

  bool enter(CUmemoryPool pool, size_t bytes) {
    for (int waits = 0; !try_enter(); ++waits)
      if (waits == 200 || !has_room(pool, bytes)) return false;
    if (!cards_.over()) state_.grew_past.store(false);
    if (!state_.grew_past.load() && has_room(pool, bytes)) return true;
    state_.inside.store(0, std::memory_order_release);
    entered_ = false;
    return false;
  }

  // True if the pool holds more than when the right was given. Another thread may have settled it
  // already.
  bool grew(CUmemoryPool pool) const {
    return entered_ && attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) > held_;
  }

 private:
  bool has_room(CUmemoryPool pool, size_t bytes) {
    held_ = attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    const uint64_t used = attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
    return held_ >= used && held_ - used >= bytes;
  }
  bool try_enter() {
    uint32_t free = 0;
    entered_ = state_.inside.compare_exchange_strong(free, 1);
    if (!entered_) pause_briefly();
    return entered_;
  }

  Cards cards_;
  CardState& state_;
  bool entered_ = false;
  uint64_t held_ = 0;
};

template <class Call>
CUresult allocate_async(CUmemoryPool pool, const Cards& cards, size_t bytes, CUdeviceptr* out,
                        CUstream stream, bool per_thread, Call call) {
  const uint64_t step = bytes > (1ull << 46) ? abi::kMaxUnits + 1 : step_units(bytes);
  uint64_t reserved = step;
  // From here on memory may leave the pool unseen.
  const bool covered = cards.keep_reserves();
  Inside inside(cards);
  if (!cards.take_if_free(step)) {
    // No room to grow. A captured allocation takes nothing before its launch. Otherwise the pool
    // may have room inside; that may be fragmented, so it is relied on for no more than one step,
    // which the reserve covers.
    if (is_capturing(stream, per_thread) ||
        (covered && step == step_units(1) && inside.enter(pool, bytes)))
      reserved = 0;
    else if (!cards.take(step))
      return CUDA_ERROR_OUT_OF_MEMORY;
  }
  CUresult result = call();
  for (int tries = 0;
       result == CUDA_ERROR_OUT_OF_MEMORY && reserved > 0 && worth_another_try(&tries);)
    result = call();
  const uint64_t grown = settle_pool(pool, cards, reserved);
  if (result == CUDA_SUCCESS && reserved == 0 && (grown > 0 || inside.grew(pool)) && cards.over()) {
    // The room inside was fragmented and the pool grew past the grant: undo the allocation. What it
    // took meanwhile lay in the reserve that every process holds back.
    const Relaxed relaxed;
    const auto undo = per_thread ? real.cuMemFreeAsync_ptsz : real.cuMemFreeAsync;
    undo(*out, stream);
    real.cuMemPoolTrimTo(pool, 0);
    settle_pool(pool, cards, 0);
    process.cards[cards.first].grew_past.store(true);
    process.pools_dirty.store(1, std::memory_order_relaxed);
    abi::account(*process.grant, account_of(cards.first)).refusals.fetch_add(1);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return result;
}

// An allocation from the current pool of the stream's device.
template <class Call>
CUresult allocate_from_current(CUdeviceptr* out, size_t bytes, CUstream stream, bool per_thread,
                               Call call) {
  Place place;
  if (bytes == 0 || out == nullptr || !find_place(&place)) return call();
  const auto get_device = per_thread ? real.cuStreamGetDevice_ptsz : real.cuStreamGetDevice;
  if (process.device_count > 1 && get_device != nullptr) {
    CUdevice device = 0;
    if (get_device(stream, &device) == CUDA_SUCCESS) {
      place.device = device;
      place.card = card_of(device);
    }
  }
  if (place.card == kNoCard) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUmemoryPool pool = pool_for(place.device, place.card);
  if (pool == nullptr) return call();
  Pool known{0, place.card, 0};
  if (process.cards[place.card].current_pool != pool) (void)known_pool(pool, &known);
  return allocate_async(pool, cards_of(known), bytes, out, stream, per_thread, call);
}

// Looks among all devices that the program sees: its own list may hide cards of the grant, or show
// others.
bool is_default_pool(CUmemoryPool pool, CUdevice* device) {
  if (real.cuDeviceGetDefaultMemPool == nullptr) return false;
  for (*device = 0; *device < process.device_count; ++*device) {
    CUmemoryPool candidate = nullptr;
    if (real.cuDeviceGetDefaultMemPool(&candidate, *device) == CUDA_SUCCESS && candidate == pool)
      return true;
  }
  return false;
}

template <class Call>
CUresult allocate_from(CUmemoryPool pool, CUdeviceptr* out, size_t bytes, CUstream stream,
                       bool per_thread, Call call) {
  Pool known{};
  Place place;
  if (bytes == 0 || out == nullptr || !find_place(&place)) return call();
  if (!known_pool(pool, &known)) {
    // A default pool returned by cuDeviceGetDefaultMemPool is first seen here.
    CUdevice device = 0;
    if (!is_default_pool(pool, &device)) return call();
    known.card = card_of(device);
    if (known.card == kNoCard) return CUDA_ERROR_OUT_OF_MEMORY;
    remember_pool(pool, known.card);
  }
  return allocate_async(pool, cards_of(known), bytes, out, stream, per_thread, call);
}

CUresult after_free(CUresult result, CUdeviceptr pointer) {
  if (result == CUDA_SUCCESS) drop_import(pointer);
  if (result == CUDA_SUCCESS && note_stream_free(pointer)) return result;
  if (result == CUDA_SUCCESS && process.pools_dirty.load(std::memory_order_relaxed) == 0)
    process.pools_dirty.store(1, std::memory_order_relaxed);
  return heed(result);
}

CUresult after_sync(CUresult result) {
  settle_stream_frees();
  settle_unbound();
  settle_pools_soon();
  return heed(result);
}

void forget_current_pools() {
  for (CardState& card : process.cards) card.current_pool = nullptr;
}

CUresult end_now(CUmemoryPool pool) {
  TableValue value;
  {
    Locked locked(process.lock);
    if (!process.pools.remove(key_of(pool), &value)) return CUDA_SUCCESS;
    forget_current_pools();
  }
  const CUresult result = real.cuMemPoolDestroy(pool);
  if (result == CUDA_SUCCESS) {
    cards_of(Pool::unpack(value)).release(Pool::unpack(value).units);
  } else {
    Locked locked(process.lock);
    process.pools.put(key_of(pool), value);
  }
  return result;
}

bool in_use(CUmemoryPool pool) {
  const Relaxed relaxed;
  cuuint64_t used = 0;
  return real.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used) !=
             CUDA_SUCCESS ||
         used > 0;
}

// A pool that is destroyed with allocations in use lives on until they are freed, and cannot be
// queried any more. So the driver's destroy is delayed until then. Meanwhile the pool gives back
// what it does not use, and is no device's current pool: this is all that a program can see of the
// end.
CUresult end_later(CUmemoryPool pool) {
  const Relaxed relaxed;
  cuuint64_t nothing = 0;
  real.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &nothing);
  for (CUdevice device = 0; device < process.device_count; ++device) {
    CUmemoryPool current = nullptr;
    if (real.cuDeviceGetMemPool(&current, device) == CUDA_SUCCESS && current == pool &&
        real.cuDeviceGetDefaultMemPool(&current, device) == CUDA_SUCCESS)
      real.cuDeviceSetMemPool(device, current);
  }
  Locked locked(process.lock);
  forget_current_pools();
  if (TableValue* value = process.pools.find(key_of(pool))) {
    Pool known = Pool::unpack(*value);
    known.ended = true;
    *value = known.pack();
  }
  return CUDA_SUCCESS;
}

}  // namespace

void settle_pools() {
  if (process.attached.load() != 1) return;
  process.pools_dirty.store(0, std::memory_order_relaxed);
  constexpr int kBatch = 256;
  CUmemoryPool pools[kBatch];
  Pool known[kBatch];
  int count = 0;
  {
    Locked locked(process.lock);
    process.pools.each([&](uint64_t key, TableValue& value) {
      if (count == kBatch) return;
      pools[count] = reinterpret_cast<CUmemoryPool>(key);
      known[count++] = Pool::unpack(value);
    });
  }
  bool holds = false;
  for (int i = 0; i < count; ++i) {
    (void)settle_pool(pools[i], cards_of(known[i]), 0);
    if (known[i].ended && !in_use(pools[i])) (void)end_now(pools[i]);
    Pool now{};
    if (known_pool(pools[i], &now) && now.units > 0) holds = true;
  }
  // The effect of a free on another stream or card shows at the synchronisation of that stream:
  // read all pools again while any of them holds memory.
  if (holds) process.pools_dirty.store(1, std::memory_order_relaxed);
}

void settle_pools_soon() {
  if (process.pools_dirty.load(std::memory_order_relaxed) != 0) settle_pools();
}

void note_plain_free() {
  if (process.attached.load(std::memory_order_acquire) != 1) return;
  {
    Locked locked(process.lock);
    if (process.pools.size() == 0) return;
  }
  settle_pools();
  // The memory may come back at the next synchronisation only.
  process.pools_dirty.store(1, std::memory_order_relaxed);
}

uint64_t settle_graph(int card, uint64_t reserved) {
  CardState& state = process.cards[card];
  for (;;) {
    uint32_t epoch = 0;
    uint64_t before = 0;
    {
      Locked locked(process.lock);
      epoch = state.graph_epoch;
      before = state.graph_units;
    }
    const Relaxed relaxed;
    cuuint64_t bytes = 0;
    if (real.cuDeviceGetGraphMemAttribute(process.device_of_card[card],
                                          CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
                                          &bytes) != CUDA_SUCCESS)
      bytes = before * abi::kUnitBytes;
    const uint64_t held = abi::units_for(bytes);
    {
      Locked locked(process.lock);
      if (state.graph_epoch != epoch) continue;
      ++state.graph_epoch;
      state.graph_units = held;
    }
    settle(card, reserved, held >= before ? held - before : 0);
    if (before > held) release(card, before - held);
    return held > before ? held - before : 0;
  }
}

void note_graph_trim(int card) {
  {
    Locked locked(process.lock);
    ++process.cards[card].graph_trims;
  }
  (void)settle_graph(card, 0);
}

bool trim_own(int card) {
  const Relaxed relaxed;
  settle_stream_frees();
  settle_unbound();
  const uint64_t before = abi::charged_units(*process.grant, static_cast<uint32_t>(my_slot()),
                                             static_cast<uint32_t>(card));
  constexpr int kBatch = 64;
  CUmemoryPool pools[kBatch];
  Cards cards[kBatch];
  int count = 0;
  {
    Locked locked(process.lock);
    process.pools.each([&](uint64_t key, TableValue& value) {
      const Pool pool = Pool::unpack(value);
      if ((!pool.managed && pool.card != card) || pool.units == 0 || count == kBatch) return;
      cards[count] = cards_of(pool);
      pools[count++] = reinterpret_cast<CUmemoryPool>(key);
    });
  }
  for (int i = 0; i < count; ++i) {
    real.cuMemPoolTrimTo(pools[i], 0);
    (void)settle_pool(pools[i], cards[i], 0);
  }
  if (process.cards[card].graph_units > 0) {
    real.cuDeviceGraphMemTrim(process.device_of_card[card]);
    note_graph_trim(card);
  }
  return abi::charged_units(*process.grant, static_cast<uint32_t>(my_slot()),
                            static_cast<uint32_t>(card)) < before;
}

}  // namespace mete::meter

using namespace mete::meter;

extern "C" {

CUresult hook_cuMemAllocAsync(CUdeviceptr* out, size_t bytes, CUstream stream) {
  return allocate_from_current(out, bytes, stream, false,
                               [&] { return real.cuMemAllocAsync(out, bytes, stream); });
}
CUresult hook_cuMemAllocAsync_ptsz(CUdeviceptr* out, size_t bytes, CUstream stream) {
  return allocate_from_current(out, bytes, stream, true,
                               [&] { return real.cuMemAllocAsync_ptsz(out, bytes, stream); });
}
CUresult hook_cuMemAllocFromPoolAsync(CUdeviceptr* out, size_t bytes, CUmemoryPool pool,
                                      CUstream stream) {
  return allocate_from(pool, out, bytes, stream, false,
                       [&] { return real.cuMemAllocFromPoolAsync(out, bytes, pool, stream); });
}
CUresult hook_cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* out, size_t bytes, CUmemoryPool pool,
                                           CUstream stream) {
  return allocate_from(pool, out, bytes, stream, true,
                       [&] { return real.cuMemAllocFromPoolAsync_ptsz(out, bytes, pool, stream); });
}

CUresult hook_cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
  if (CUresult result; free_in_stream_order(pointer, stream, false, &result)) return heed(result);
  return after_free(real.cuMemFreeAsync(pointer, stream), pointer);
}
CUresult hook_cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream) {
  if (CUresult result; free_in_stream_order(pointer, stream, true, &result)) return heed(result);
  return after_free(real.cuMemFreeAsync_ptsz(pointer, stream), pointer);
}

CUresult hook_cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* props) {
  if (props == nullptr || !attach()) return real.cuMemPoolCreate(out, props);
  CUdevice device = 0;
  // A card outside the grant has no room; an ordinal that does not exist gets the driver's own
  // error.
  if (props->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
      card_of(props->location.id) == kNoCard &&
      real.cuDeviceGet(&device, props->location.id) == CUDA_SUCCESS)
    return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = real.cuMemPoolCreate(out, props);
  if (result == CUDA_SUCCESS) remember_pool_of(*out, props->location, props->allocType);
  return result;
}

// Pools that the program did not create are listed when the driver returns them.
CUresult hook_cuMemGetDefaultMemPool(CUmemoryPool* out, CUmemLocation* location,
                                     CUmemAllocationType type) {
  const CUresult result = real.cuMemGetDefaultMemPool(out, location, type);
  if (result == CUDA_SUCCESS && attach()) remember_pool_of(*out, *location, type);
  return result;
}
CUresult hook_cuMemGetMemPool(CUmemoryPool* out, CUmemLocation* location,
                              CUmemAllocationType type) {
  const CUresult result = real.cuMemGetMemPool(out, location, type);
  if (result == CUDA_SUCCESS && attach()) remember_pool_of(*out, *location, type);
  return result;
}

CUresult hook_cuMemPoolDestroy(CUmemoryPool pool) {
  Pool known{};
  if (process.attached.load() != 1 || !known_pool(pool, &known) || known.ended)
    return real.cuMemPoolDestroy(pool);
  return in_use(pool) ? end_later(pool) : end_now(pool);
}

CUresult hook_cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
  const CUresult result = real.cuMemPoolTrimTo(pool, keep);
  if (result == CUDA_SUCCESS) settle_pools();
  return result;
}

CUresult hook_cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  const CUresult result = real.cuDeviceSetMemPool(device, pool);
  forget_current_pools();
  return result;
}

CUresult hook_cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type,
                              CUmemoryPool pool) {
  const CUresult result = real.cuMemSetMemPool(location, type, pool);
  forget_current_pools();
  return result;
}

CUresult hook_cuStreamSynchronize(CUstream stream) {
  return after_sync(real.cuStreamSynchronize(stream));
}
CUresult hook_cuStreamSynchronize_ptsz(CUstream stream) {
  return after_sync(real.cuStreamSynchronize_ptsz(stream));
}
CUresult hook_cuEventSynchronize(CUevent event) {
  return after_sync(real.cuEventSynchronize(event));
}
CUresult hook_cuCtxSynchronize() { return after_sync(real.cuCtxSynchronize()); }
CUresult hook_cuCtxSynchronize_v2(CUcontext context) {
  return after_sync(real.cuCtxSynchronize_v2(context));
}
}
