// SPDX-License-Identifier: Apache-2.0
// Contexts: what each costs is measured once per card and driver and stands in the grant; it is
// reserved before the driver makes one. A context that ends gives back its cost and every block
// that lived in it.
#include <string.h>

#include "meter/budget.h"
#include "meter/memory.h"
#include "meter/place.h"
#include "meter/pool.h"
#include "meter/real.h"
#include "meter/state.h"

namespace mete::meter {
namespace {

constexpr uint64_t kDefaultHeap = 8ull << 20;
constexpr uint64_t kDefaultFifo = 1ull << 20;

// What comes with the first context of a process on a card and stays until its last one ends: the
// reserve for what the driver takes unasked, and the spare slab.
constexpr uint64_t kReserveUnits = abi::units_for(abi::kReserveBytes);

// What the next context on a card costs, with the reserve if nobody has brought that yet.
struct ContextCost {
  uint64_t own;
  uint64_t reserve;
  uint64_t all() const { return own + reserve; }
};

ContextCost context_cost(int card) {
  const abi::GrantCard& granted = process.grant->header.cards[card];
  Locked locked(process.lock);
  const bool first = process.cards[card].contexts == 0;
  return {abi::units_for(abi::round_to_granule(first ? granted.context_first_bytes
                                                     : granted.context_more_bytes)),
          process.cards[card].reserved ? 0 : kReserveUnits + abi::kGranuleUnits};
}

// A handle may stand in the list twice: a context that is being destroyed, and a new one with the
// same handle.
Context* find_context(CUcontext handle) {
  Context* found = nullptr;
  for (int i = 0; i < process.context_count; ++i)
    if (process.contexts[i].handle == handle && (found == nullptr || found->ending))
      found = &process.contexts[i];
  return found;
}

// Under the lock. Returns nullptr when the list is full.
Context* add_context(CUcontext handle, int card, uint64_t units) {
  if (process.context_count >= kMaxContexts) return nullptr;
  Context& context = process.contexts[process.context_count++];
  context = {handle, nullptr, ++process.last_context_id, false, card, units, 0, 0, 0};
  ++process.cards[card].contexts;
  return &context;
}

// A new context, for which `cost` is charged. Returns how much of that it keeps: another thread may
// have added it, or brought the reserve, meanwhile.
uint64_t settle_context(CUcontext handle, int card, const ContextCost& cost, uint32_t* id) {
  Locked locked(process.lock);
  if (const Context* known = find_context(handle); known != nullptr && !known->ending) {
    *id = known->id;
    return 0;
  }
  const Context* context = add_context(handle, card, cost.own);
  *id = context != nullptr ? context->id : 0;
  if (context == nullptr) return 0;  // more contexts than we can list: NVML's reading charges them
  CardState& state = process.cards[card];
  if (cost.reserve == 0 || state.reserved) return cost.own;
  state.reserved = true;
  state.spare_slabs = 1;
  return cost.all();
}

// Under the lock: takes a context out of the list.
bool take_out(uint32_t id, Context* out) {
  for (int i = 0; i < process.context_count; ++i) {
    if (process.contexts[i].id != id) continue;
    *out = process.contexts[i];
    process.contexts[i] = process.contexts[--process.context_count];
    return true;
  }
  return false;
}

// The driver has ended it: gives back its cost and everything that lived in it; with the last one
// on the card also the reserve.
void bury(const Context& context) {
  uint64_t units = context.units;
  {
    Locked locked(process.lock);
    CardState& state = process.cards[context.card];
    if (--state.contexts == 0 && state.reserved) {
      // A spare that is in use by a slab is given back with that slab.
      units += kReserveUnits + (state.spare_slabs > 0 ? abi::kGranuleUnits : 0);
      state.spare_slabs = 0;
      state.reserved = false;
    }
  }
  release(context.card, units);
  forget_blocks_of(context.id);
  forget_arrays_of(context.id);
}

// Ends a context through `call`, which returns the driver's result. It stays in the list meanwhile,
// marked: another thread that has it current must not take it for a new one.
template <class Call>
CUresult end_context(CUcontext handle, Call call) {
  uint32_t id = 0;
  if (process.attached.load() == 1) {
    Locked locked(process.lock);
    if (Context* known = find_context(handle); known != nullptr && !known->ending) {
      known->ending = true;
      id = known->id;
    }
  }
  const CUresult result = call();
  if (id == 0) return result;
  Context context{};
  {
    Locked locked(process.lock);
    if (result == CUDA_SUCCESS) {
      take_out(id, &context);
    } else {
      for (int i = 0; i < process.context_count; ++i)
        if (process.contexts[i].id == id) process.contexts[i].ending = false;
    }
  }
  if (context.id != 0) bury(context);
  return result;
}

// Reserves, calls, settles. `call` returns the driver's result and sets the context.
template <class Call>
CUresult create(CUdevice device, CUcontext* out, Call call) {
  if (!attach()) return CUDA_ERROR_OUT_OF_MEMORY;
  const int card = card_of(device);
  if (card == kNoCard) {
    CUdevice handle = 0;
    // An ordinal the driver does not have gets the driver's own error; a card outside the grant has
    // no room.
    return real.cuDeviceGet(&handle, device) == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : call();
  }
  const ContextCost cost = context_cost(card);
  if (!take(card, cost.all())) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = call();
  for (int tries = 0; result == CUDA_ERROR_OUT_OF_MEMORY && worth_another_try(&tries);)
    result = call();
  uint32_t id = 0;
  settle(card, cost.all(), result == CUDA_SUCCESS ? settle_context(*out, card, cost, &id) : 0);
  return result;
}

// The primary context of a device, if it is active: retaining and releasing it once more changes
// nothing else.
CUcontext primary_of(CUdevice device) {
  unsigned flags = 0;
  int active = 0;
  CUcontext context = nullptr;
  if (process.attached.load() != 1 ||
      real.cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || active == 0 ||
      real.cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS)
    return nullptr;
  const auto drop = real.cuDevicePrimaryCtxRelease_v2 != nullptr ? real.cuDevicePrimaryCtxRelease_v2
                                                                 : real.cuDevicePrimaryCtxRelease;
  drop(device);
  return context;
}

// A call that may end the primary context of a device: the last release does, a reset always.
template <class Call>
CUresult maybe_end_primary(CUdevice device, Call call) {
  const CUcontext primary = primary_of(device);
  const CUresult result = call();
  if (result != CUDA_SUCCESS || primary == nullptr) return result;
  unsigned flags = 0;
  int active = 1;
  if (real.cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || active != 0)
    return result;
  Context context{};
  bool known = false;
  {
    Locked locked(process.lock);
    const Context* found = find_context(primary);
    known = found != nullptr && take_out(found->id, &context);
  }
  if (known) bury(context);
  settle_pools();
  return result;
}

// What a larger limit of the current context takes from the card, and where its highest value so
// far is kept.
uint64_t limit_cost(Context& context, CUdevice device, CUlimit limit, size_t value,
                    size_t** highest) {
  size_t now = 0;
  if (real.cuCtxGetLimit(&now, limit) != CUDA_SUCCESS) return 0;
  switch (limit) {
    case CU_LIMIT_STACK_SIZE: {
      *highest = &context.stack_max;
      const size_t paid = context.stack_max > now ? context.stack_max : now;
      int processors = 0;
      int threads = 0;
      real.cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
      real.cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
                                device);
      if (value <= paid) return 0;
      return abi::units_for(static_cast<uint64_t>(processors) * static_cast<uint64_t>(threads) *
                            (value - paid));
    }
    case CU_LIMIT_MALLOC_HEAP_SIZE: {
      *highest = &context.heap_max;
      const size_t paid = context.heap_max > kDefaultHeap ? context.heap_max : kDefaultHeap;
      return value > paid ? abi::units_for(value - paid) : 0;
    }
    case CU_LIMIT_PRINTF_FIFO_SIZE: {
      *highest = &context.fifo_max;
      const size_t paid = context.fifo_max > kDefaultFifo ? context.fifo_max : kDefaultFifo;
      return value > paid ? abi::units_for(value - paid) : 0;
    }
    default:
      return 0;
  }
}

}  // namespace

bool find_place(Place* place) {
  if (!attach() || real.cuCtxGetCurrent == nullptr) return false;
  if (real.cuCtxGetCurrent(&place->context) != CUDA_SUCCESS || place->context == nullptr)
    return false;
  if (real.cuCtxGetDevice(&place->device) != CUDA_SUCCESS) return false;
  place->card = card_of(place->device);
  if (place->card == kNoCard) return true;
  place->context_id = 0;
  {
    Locked locked(process.lock);
    if (const Context* known = find_context(place->context)) {
      place->context_id = known->id;
      return true;
    }
  }
  // Made behind our back, and already paid for by the card; unless it is one that another thread
  // destroyed while it was current here.
  unsigned int version = 0;
  if (real.cuCtxGetApiVersion != nullptr &&
      real.cuCtxGetApiVersion(place->context, &version) != CUDA_SUCCESS)
    return false;
  if (my_slot() < 0) return true;
  const ContextCost cost = context_cost(place->card);
  charge_anyway(place->card, cost.all());
  const uint64_t kept = settle_context(place->context, place->card, cost, &place->context_id);
  release(place->card, cost.all() - kept);
  return true;
}

}  // namespace mete::meter

using namespace mete::meter;

extern "C" {

CUresult hook_cuInit(unsigned int flags) {
  // Without a grant that we can trust there is no CUDA here: the driver is not even started.
  if (!attach()) return CUDA_ERROR_OPERATING_SYSTEM;
  // A slot from the start: whoever reads NVML then knows this process as one that has a meter.
  if (my_slot() < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  return real.cuInit(flags);
}

CUresult hook_cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice device) {
  unsigned flags = 0;
  int active = 0;
  if (attach() && real.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS &&
      active != 0)
    return real.cuDevicePrimaryCtxRetain(out, device);  // known, or charged when it is first used
  return create(device, out, [&] { return real.cuDevicePrimaryCtxRetain(out, device); });
}

CUresult hook_cuDevicePrimaryCtxRelease(CUdevice device) {
  return maybe_end_primary(device, [&] { return real.cuDevicePrimaryCtxRelease(device); });
}
CUresult hook_cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return maybe_end_primary(device, [&] { return real.cuDevicePrimaryCtxRelease_v2(device); });
}
CUresult hook_cuDevicePrimaryCtxReset(CUdevice device) {
  return maybe_end_primary(device, [&] { return real.cuDevicePrimaryCtxReset(device); });
}
CUresult hook_cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return maybe_end_primary(device, [&] { return real.cuDevicePrimaryCtxReset_v2(device); });
}

CUresult hook_cuCtxCreate(CUcontext* out, unsigned int flags, CUdevice device) {
  return create(device, out, [&] { return real.cuCtxCreate(out, flags, device); });
}
CUresult hook_cuCtxCreate_v2(CUcontext* out, unsigned int flags, CUdevice device) {
  return create(device, out, [&] { return real.cuCtxCreate_v2(out, flags, device); });
}
CUresult hook_cuCtxCreate_v3(CUcontext* out, CUexecAffinityParam* params, int count,
                             unsigned int flags, CUdevice device) {
  return create(device, out,
                [&] { return real.cuCtxCreate_v3(out, params, count, flags, device); });
}
CUresult hook_cuCtxCreate_v4(CUcontext* out, CUctxCreateParams* params, unsigned int flags,
                             CUdevice device) {
  return create(device, out, [&] { return real.cuCtxCreate_v4(out, params, flags, device); });
}

CUresult hook_cuCtxDestroy(CUcontext context) {
  return end_context(context, [&] { return real.cuCtxDestroy(context); });
}
CUresult hook_cuCtxDestroy_v2(CUcontext context) {
  return end_context(context, [&] { return real.cuCtxDestroy_v2(context); });
}
CUresult hook_cuCtxDetach(CUcontext context) {
  return end_context(context, [&] { return real.cuCtxDetach(context); });
}

// A green context is a context of its own to the card; its handle stands in our list, and so does
// the ordinary context that cuCtxFromGreenCtx shows of it, at no further cost.
CUresult hook_cuGreenCtxCreate(CUgreenCtx* out, CUdevResourceDesc desc, CUdevice device,
                               unsigned int flags) {
  return create(device, reinterpret_cast<CUcontext*>(out),
                [&] { return real.cuGreenCtxCreate(out, desc, device, flags); });
}
CUresult hook_cuCtxFromGreenCtx(CUcontext* out, CUgreenCtx green) {
  const CUresult result = real.cuCtxFromGreenCtx(out, green);
  if (result != CUDA_SUCCESS || process.attached.load() != 1) return result;
  Locked locked(process.lock);
  const auto handle = reinterpret_cast<CUcontext>(green);
  if (const Context* owner = find_context(handle);
      owner != nullptr && find_context(*out) == nullptr)
    if (Context* view = add_context(*out, owner->card, 0)) view->green = handle;
  return result;
}
CUresult hook_cuGreenCtxDestroy(CUgreenCtx green) {
  const auto handle = reinterpret_cast<CUcontext>(green);
  const CUresult result = end_context(handle, [&] { return real.cuGreenCtxDestroy(green); });
  if (result != CUDA_SUCCESS) return result;
  for (;;) {
    Context view{};
    {
      Locked locked(process.lock);
      for (int i = 0; i < process.context_count; ++i)
        if (process.contexts[i].green == handle) view = process.contexts[i];
      if (view.handle == nullptr) return result;
      take_out(view.id, &view);
    }
    bury(view);
  }
}

CUresult hook_cuCtxSetLimit(CUlimit limit, size_t value) {
  Place place;
  if (!find_place(&place) || place.card == kNoCard) return real.cuCtxSetLimit(limit, value);
  size_t* highest = nullptr;
  uint64_t cost = 0;
  Context context{};
  {
    Locked locked(process.lock);
    if (const Context* found = find_context(place.context)) context = *found;
  }
  cost = limit_cost(context, place.device, limit, value, &highest);
  if (cost == 0) return real.cuCtxSetLimit(limit, value);
  if (!take(place.card, cost)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = real.cuCtxSetLimit(limit, value);
  settle(place.card, cost, result == CUDA_SUCCESS ? cost : 0);
  if (result == CUDA_SUCCESS) {
    *highest = value;
    Locked locked(process.lock);
    if (Context* found = find_context(place.context)) {
      found->units += cost;
      found->stack_max = context.stack_max;
      found->heap_max = context.heap_max;
      found->fifo_max = context.fifo_max;
    }
  }
  return result;
}
}
