// SPDX-License-Identifier: Apache-2.0
// Contexts. The cost of a context is measured once per card and driver and stands in the grant; it
// is reserved before the driver creates one. A context that ends gives back its cost and every
// block that lived in it. A context that the meter did not see being created is charged when it is
// first found as the current one.
#include <string.h>

#include "meter/budget.h"
#include "meter/memory.h"
#include "meter/place.h"
#include "meter/pool.h"
#include "meter/real.h"
#include "meter/reserve.h"
#include "meter/state.h"
#include "meter/vmm.h"

namespace mete::meter {
namespace {

constexpr uint64_t kDefaultHeap = 8ull << 20;
constexpr uint64_t kDefaultFifo = 1ull << 20;

// The cost of the next context on a card. The first context of a process also brings what stays
// until its last one ends: the reserve for memory that the driver takes unasked, and the spare
// slab.
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

// A handle may be in the list twice: for a context that is being destroyed, and for a new one that
// got an equal handle.
Context* find_context(CUcontext handle) {
  Context* found = nullptr;
  for (Context& context : process.contexts)
    if (context.handle == handle && (found == nullptr || found->ending)) found = &context;
  return found;
}

// Under the lock. Returns nullptr when the kernel has no memory for the list.
Context* add_context(CUcontext handle, int card, uint64_t units) {
  Context context{};
  context.handle = handle;
  context.id = process.last_context_id + 1;
  context.card = card;
  context.uses = 1;
  context.units = units;
  if (!process.contexts.add(context)) return nullptr;
  ++process.last_context_id;
  ++process.cards[card].contexts;
  return process.contexts.end() - 1;
}

// Makes room in the list before the driver is called: a context that is not in the list would never
// be charged.
bool can_list_one_more() {
  Locked locked(process.lock);
  return process.contexts.has_room();
}

// A new context, for which `cost` is charged. Returns how much of that it keeps: another thread may
// have added the context, or charged the reserve, meanwhile.
uint64_t settle_context(CUcontext handle, int card, const ContextCost& cost, uint32_t* id) {
  Locked locked(process.lock);
  if (const Context* known = find_context(handle); known != nullptr && !known->ending) {
    *id = known->id;
    return 0;
  }
  const Context* context = add_context(handle, card, cost.own);
  *id = context != nullptr ? context->id : 0;
  if (context == nullptr) return 0;  // no memory to list it: NVML's reading charges it
  CardState& state = process.cards[card];
  if (cost.reserve == 0 || state.reserved) return cost.own;
  begin_reserve(card);
  state.spare_slabs = 1;
  return cost.all();
}

// Under the lock: removes a context from the list.
bool take_out(uint32_t id, Context* out) {
  for (size_t i = 0; i < process.contexts.size(); ++i) {
    if (process.contexts[i].id != id) continue;
    *out = process.contexts[i];
    process.contexts.remove(i);
    return true;
  }
  return false;
}

// The driver has ended the context: gives back its cost and everything that lived in it, and the
// reserve with the last context on the card.
void bury(const Context& context) {
  uint64_t units = context.units;
  {
    Locked locked(process.lock);
    CardState& state = process.cards[context.card];
    if (--state.contexts == 0 && state.reserved) {
      // A spare that is in use by a slab is given back with that slab.
      units += end_reserve(context.card) + (state.spare_slabs > 0 ? abi::kGranuleUnits : 0);
      state.spare_slabs = 0;
    }
  }
  release(context.card, units);
  forget_blocks_of(context.id);
  forget_arrays_of(context.id);
  forget_unbound_of(context.id);
}

// Ends a context through `call`, which returns the driver's result. The context stays in the list
// meanwhile, marked: another thread that has it current must not take it for a new one.
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
      for (Context& known : process.contexts)
        if (known.id == id) known.ending = false;
    }
  }
  if (context.id != 0) bury(context);
  return result;
}

void add_use(CUcontext handle) {
  Locked locked(process.lock);
  if (Context* known = find_context(handle)) ++known->uses;
}

// Counts one use less. False, and nothing changed: this is the last use, or an unknown context.
bool drop_use(CUcontext handle) {
  if (process.attached.load() != 1) return false;
  Locked locked(process.lock);
  Context* known = find_context(handle);
  if (known == nullptr || known->uses <= 1) return false;
  --known->uses;
  return true;
}

// Reserves, calls, settles. `call` returns the driver's result and sets the context.
template <class Call>
CUresult create(CUdevice device, CUcontext* out, Call call) {
  if (!attach()) return CUDA_ERROR_OUT_OF_MEMORY;
  const int card = card_of(device);
  if (card == kNoCard) {
    CUdevice handle = 0;
    // An ordinal that the driver does not have gets the driver's own error; a card outside the
    // grant has no room.
    return real.cuDeviceGet(&handle, device) == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : call();
  }
  const ContextCost cost = context_cost(card);
  if (!can_list_one_more() || !take(card, cost.all())) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = call();
  for (int tries = 0; result == CUDA_ERROR_OUT_OF_MEMORY && worth_another_try(&tries);)
    result = call();
  uint32_t id = 0;
  settle(card, cost.all(), result == CUDA_SUCCESS ? settle_context(*out, card, cost, &id) : 0);
  return result;
}

// The primary context of a device, if it is active. Retaining and releasing it once more changes
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

// A call that may end the primary context of a device: the last release ends it, a reset always
// does.
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

// Local memory for `stack` bytes per thread beyond what the cost of the context covers. Every
// thread that the card can run has its own stack.
uint64_t stack_units(CUdevice device, size_t stack, size_t base) {
  int processors = 0;
  int threads = 0;
  real.cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
  real.cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device);
  if (stack <= base) return 0;
  return abi::units_for(static_cast<uint64_t>(processors) * static_cast<uint64_t>(threads) *
                        (stack - base));
}

// Calls the driver again while the memory of a dead process may be on its way back.
CUresult set_limit(CUlimit limit, size_t value) {
  CUresult result = real.cuCtxSetLimit(limit, value);
  for (int tries = 0; result == CUDA_ERROR_OUT_OF_MEMORY && worth_another_try(&tries);)
    result = real.cuCtxSetLimit(limit, value);
  return result;
}

// The memory of the stack follows its limit up and down at once. The driver rounds the limit, so
// its own value is queried afterwards.
CUresult set_stack(const Place& place, const Context& context, size_t value) {
  size_t now = 0;
  if (real.cuCtxGetLimit(&now, CU_LIMIT_STACK_SIZE) != CUDA_SUCCESS)
    return real.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, value);
  const size_t base = context.stack_base > 0 ? context.stack_base : now;
  const uint64_t wanted = stack_units(place.device, value, base);
  const uint64_t cost = wanted > context.stack_units ? wanted - context.stack_units : 0;
  if (cost > 0 && !take(place.card, cost)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = set_limit(CU_LIMIT_STACK_SIZE, value);
  uint64_t held = context.stack_units;
  if (result == CUDA_SUCCESS) {
    const bool told = real.cuCtxGetLimit(&now, CU_LIMIT_STACK_SIZE) == CUDA_SUCCESS;
    held = stack_units(place.device, told ? now : value, base);
  }
  uint64_t before = held;
  {
    // If two threads change the limit of one context, each accounts for the difference that it
    // finds.
    Locked locked(process.lock);
    if (Context* found = find_context(place.context)) {
      before = found->stack_units;
      found->stack_base = base;
      found->units += held - before;
      found->stack_units = held;
    }
  }
  settle(place.card, cost, held > before ? held - before : 0);
  if (before > held) release(place.card, before - held);
  return result;
}

// The device heap and the printf buffer are taken at a launch and stay, so the highest limit is
// charged until the context ends. A charge without memory behind it would pass for unused reserve.
CUresult set_buffer(const Place& place, CUlimit limit, size_t value, size_t Context::*highest,
                    size_t usual) {
  size_t paid = usual;
  {
    Locked locked(process.lock);
    if (const Context* found = find_context(place.context); found != nullptr)
      paid = found->*highest > usual ? found->*highest : usual;
  }
  const uint64_t cost = value > paid ? abi::units_for(value - paid) : 0;
  if (cost > 0) close_reserve(place.card);
  if (cost > 0 && !take(place.card, cost)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = set_limit(limit, value);
  uint64_t kept = 0;
  if (result == CUDA_SUCCESS && cost > 0) {
    Locked locked(process.lock);
    if (Context* found = find_context(place.context); found != nullptr && found->*highest < value) {
      found->*highest = value;
      found->units += cost;
      kept = cost;
    }
  }
  settle(place.card, cost, kept);
  return result;
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
  // A context that was created unseen, and that the card has already paid for; unless another
  // thread destroyed it while it was current here.
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
  // Without a trustworthy grant CUDA is refused: the driver is not even initialised.
  if (!attach()) return CUDA_ERROR_OPERATING_SYSTEM;
  // Claim a slot from the start, so that a reader of NVML recognises this process as one with a
  // meter.
  if (my_slot() < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  return real.cuInit(flags);
}

CUresult hook_cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice device) {
  unsigned flags = 0;
  int active = 0;
  if (attach() && real.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS &&
      active != 0)
    return real.cuDevicePrimaryCtxRetain(out, device);  // listed already, or charged at its first
                                                        // use
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

// Attaching adds a use of the current context; detaching removes one, and the last ends the
// context.
CUresult hook_cuCtxAttach(CUcontext* out, unsigned int flags) {
  const CUresult result = real.cuCtxAttach(out, flags);
  if (result == CUDA_SUCCESS && out != nullptr && process.attached.load() == 1) add_use(*out);
  return result;
}
CUresult hook_cuCtxDetach(CUcontext context) {
  if (drop_use(context)) {
    const CUresult result = real.cuCtxDetach(context);
    if (result != CUDA_SUCCESS) add_use(context);
    return result;
  }
  return end_context(context, [&] { return real.cuCtxDetach(context); });
}

// Contexts that share memory with a graphics driver cost as much as other contexts.
CUresult hook_cuGLCtxCreate(CUcontext* out, unsigned int flags, CUdevice device) {
  return create(device, out, [&] { return real.cuGLCtxCreate(out, flags, device); });
}
CUresult hook_cuGLCtxCreate_v2(CUcontext* out, unsigned int flags, CUdevice device) {
  return create(device, out, [&] { return real.cuGLCtxCreate_v2(out, flags, device); });
}
CUresult hook_cuVDPAUCtxCreate(CUcontext* out, unsigned int flags, CUdevice device,
                               unsigned int vdpau, void* lookup) {
  return create(device, out,
                [&] { return real.cuVDPAUCtxCreate(out, flags, device, vdpau, lookup); });
}
CUresult hook_cuVDPAUCtxCreate_v2(CUcontext* out, unsigned int flags, CUdevice device,
                                  unsigned int vdpau, void* lookup) {
  return create(device, out,
                [&] { return real.cuVDPAUCtxCreate_v2(out, flags, device, vdpau, lookup); });
}

// A green context is a context of its own for the card. Its handle is in the list, and so is the
// ordinary context that cuCtxFromGreenCtx returns for it, at no further cost.
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
      for (const Context& known : process.contexts)
        if (known.green == handle) view = known;
      if (view.handle == nullptr) return result;
      take_out(view.id, &view);
    }
    bury(view);
  }
}

CUresult hook_cuCtxSetLimit(CUlimit limit, size_t value) {
  Place place;
  if (!find_place(&place) || place.card == kNoCard) return real.cuCtxSetLimit(limit, value);
  switch (limit) {
    case CU_LIMIT_STACK_SIZE: {
      Context context{};
      {
        Locked locked(process.lock);
        if (const Context* found = find_context(place.context)) context = *found;
      }
      return set_stack(place, context, value);
    }
    case CU_LIMIT_MALLOC_HEAP_SIZE:
      return set_buffer(place, limit, value, &Context::heap_max, kDefaultHeap);
    case CU_LIMIT_PRINTF_FIFO_SIZE:
      return set_buffer(place, limit, value, &Context::fifo_max, kDefaultFifo);
    default:
      return real.cuCtxSetLimit(limit, value);
  }
}
}
