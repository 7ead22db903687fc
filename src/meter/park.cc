// SPDX-License-Identifier: Apache-2.0
// See park.h. The park thread sleeps on the order in the grant file. "park": close the gate, drain
// every context, send the descriptor of each handle to its card's mover, and unmap and release each
// handle once the mover has its bytes. "run": create and map new memory, let the mover fill it,
// open the gate. Whenever a kill comes, the memory of a chunk is mapped here, or a mover has its
// bytes, or both; never neither.
#include "meter/park.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/cuda_card.h"
#include "abi/park.h"
#include "abi/process.h"
#include "meter/budget.h"
#include "meter/chunk.h"
#include "meter/gate.h"
#include "meter/mover_link.h"
#include "meter/owned.h"
#include "meter/real.h"
#include "meter/relaxed.h"
#include "meter/state.h"

namespace mete::meter {
namespace {

using abi::ParkAnswer;
using abi::ParkOrder;
using abi::ParkReason;

struct Refusal {
  ParkReason reason = ParkReason::kNone;
  uint32_t detail = 0;
  explicit operator bool() const { return reason != ParkReason::kNone; }
};
Refusal refused_by_driver(CUresult result) {
  return {ParkReason::kDriver, static_cast<uint32_t>(result)};
}

abi::Slot& slot() { return process.grant->slots[process.slot.load() - 1]; }

void answer(const ParkOrder& order, ParkAnswer::Kind kind, Refusal refusal = {}) {
  const ParkAnswer word{order.number, refusal.detail, static_cast<uint32_t>(refusal.reason), kind};
  slot().park.store(word.pack(), std::memory_order_release);
  abi::Word& answers = process.grant->header.park_answers;
  answers.fetch_add(1);
  syscall(SYS_futex, &answers, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// Publishes what this process waits for, for a runner that gives up.
void say_waiting(const ParkOrder& order, ParkReason reason) {
  slot().park.store(
      ParkAnswer{order.number, 0, static_cast<uint32_t>(reason), ParkAnswer::kNone}.pack());
}

bool is_current(const ParkOrder& order) {
  return ParkOrder::unpack(current_order()).number == order.number;
}

// ---- coming to rest -----------------------------------------------------------------------------

Refusal standing_in_the_way() {
  if (process.uncounted.load()) return {ParkReason::kThread, 0};
  for (uint32_t reason = 0; reason < 16; ++reason)
    if ((abi::kOnlyOfTheDriver >> reason & 1) == 0 && process.obstacles[reason].load() != 0)
      return {static_cast<ParkReason>(reason), 0};
  return {};
}

// Whether a stream is being captured, as the driver sees it: a stream that was destroyed is not.
bool is_any_captured() {
  const Relaxed relaxed;
  for (;;) {
    CUstream stream = nullptr;
    CUcontext context = nullptr;
    {
      Locked locked(process.lock);
      process.captures.each([&](uint64_t key, TableValue& value) {
        stream = reinterpret_cast<CUstream>(key);
        context = reinterpret_cast<CUcontext>(value.a);
      });
    }
    if (stream == nullptr) return false;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUcontext ignored = nullptr;
    if (real.cuCtxPushCurrent_v2(context) == CUDA_SUCCESS) {
      if (real.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS)
        status = CU_STREAM_CAPTURE_STATUS_NONE;
      (void)real.cuCtxPopCurrent_v2(&ignored);
    }
    if (status == CU_STREAM_CAPTURE_STATUS_ACTIVE) return true;
    TableValue gone;
    Locked locked(process.lock);
    process.captures.remove(reinterpret_cast<uint64_t>(stream), &gone);
  }
}

// Waits until the work of every context is done. Blocks as long as the driver does.
Refusal drain() {
  const Relaxed relaxed;
  for (size_t i = 0;; ++i) {
    CUcontext context = nullptr;
    {
      Locked locked(process.lock);
      if (i >= process.contexts.size()) return {};
      if (process.contexts[i].ending) continue;
      context = process.contexts[i].handle;
    }
    CUcontext ignored = nullptr;
    // The own handle of a green context cannot be made current; its ordinary view is in the list
    // too.
    if (real.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS) continue;
    const CUresult result = real.cuCtxSynchronize();
    (void)real.cuCtxPopCurrent_v2(&ignored);
    if (result != CUDA_SUCCESS) return {ParkReason::kSticky, static_cast<uint32_t>(result)};
  }
}

// With the gate closed and no thread inside. Capturing goes on only with the gate open, so it is
// waited for before the gate is closed, and checked again afterwards.
bool quiesce(const ParkOrder& order, Refusal* refusal) {
  *refusal = standing_in_the_way();
  if (*refusal) return true;
  for (;;) {
    while (is_any_captured()) {
      say_waiting(order, ParkReason::kCapture);
      abi::sleep_quietly(1'000'000);
      if (!is_current(order)) return false;
    }
    say_waiting(order, ParkReason::kBusy);
    if (!close_gate(order.number)) return false;
    if (!is_any_captured()) break;
    open_gate(order.number);
  }
  say_waiting(order, ParkReason::kWork);
  *refusal = drain();
  if (!*refusal) *refusal = standing_in_the_way();
  return is_current(order);
}

// ---- out and in ---------------------------------------------------------------------------------

// Memory that was announced to a mover, oldest first: the mover answers in this order.
struct Told {
  Movable* memory;
  CUmemGenericAllocationHandle fresh;  // on the way in: the new memory
};
class Window {
 public:
  bool full() const { return end_ - begin_ == kSize; }
  bool empty() const { return end_ == begin_; }
  void push(const Told& told) { items_[end_++ % kSize] = told; }
  Told pop() { return items_[begin_++ % kSize]; }

 private:
  static constexpr size_t kSize = 32;
  Told items_[kSize] = {};
  size_t begin_ = 0;
  size_t end_ = 0;
};

Refusal refused_by(const MoverAnswer& said) { return {said.reason, said.detail}; }

// Calls visit(memory) for all movable memory of a card, until one refuses. No thread is inside the
// gate.
template <class Visit>
Refusal each_movable(int card, Visit visit) {
  for (Chunk& chunk : process.chunks)
    if (chunk.card == card)
      if (const Refusal refusal = visit(chunk)) return refusal;
  for (Owned& owned : process.owned)
    if (owned.used && !owned.fixed && owned.card == card)
      if (const Refusal refusal = visit(owned)) return refusal;
  return {};
}

CUresult map_again(const Movable& memory, CUmemGenericAllocationHandle handle) {
  return memory.owned ? map_owned(static_cast<const Owned&>(memory), handle)
                      : map_chunk(static_cast<const Chunk&>(memory), handle);
}
CUresult unmap_all(const Movable& memory) {
  return memory.owned ? unmap_owned(static_cast<const Owned&>(memory))
                      : unmap_chunk(static_cast<const Chunk&>(memory));
}
CUmemAllocationProp properties_of(const Movable& memory) {
  return memory.owned ? movable_properties(static_cast<const Owned&>(memory).wanted)
                      : abi::memory_on(memory.device, true);  // with the properties of a new chunk
}

Refusal connect_mover(int card) {
  if (process.movers[card].is_open()) return {};
  uint64_t bytes = 0;
  (void)each_movable(card, [&](const Movable& memory) {
    bytes += memory.bytes;
    return Refusal{};
  });
  return refused_by(process.movers[card].open(process.grant->header, card, bytes));
}

// The mover has the bytes: the memory on the card is released.
Refusal let_go(Movable& memory) {
  CUresult result = unmap_all(memory);
  if (result == CUDA_SUCCESS) result = real.cuMemRelease(memory.handle);
  if (result != CUDA_SUCCESS) {
    // Undo: the memory stays where it was.
    (void)unmap_all(memory);
    (void)map_again(memory, memory.handle);
    return refused_by_driver(result);
  }
  memory.handle = 0;
  release(memory.card, abi::units_for(memory.bytes));
  slot().moved_bytes.fetch_add(memory.bytes);
  process.grant->header.park_disk_bytes.fetch_add(memory.on_disk);
  return {};
}

Refusal export_to(abi::MoverMessage::Kind kind, const Movable& memory,
                  CUmemGenericAllocationHandle handle) {
  int descriptor = -1;
  const CUresult result = real.cuMemExportToShareableHandle(
      &descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  if (result != CUDA_SUCCESS) return refused_by_driver(result);
  const bool sent = process.movers[memory.card].send(kind, memory.id, memory.bytes, descriptor);
  abi::close_quietly(descriptor);
  return sent ? Refusal{} : Refusal{ParkReason::kNoMover, 0};
}

Refusal finish_out(const Told& told) {
  const MoverAnswer said = process.movers[told.memory->card].receive();
  if (const Refusal refusal = refused_by(said)) return refusal;
  told.memory->kept = true;
  told.memory->on_disk = said.on_disk;
  return let_go(*told.memory);
}

// Gives all memory of a card to its mover. Memory that came back and was not used since is still
// with the mover.
Refusal give_away(int card) {
  Window window;
  Refusal refusal = each_movable(card, [&](Movable& memory) -> Refusal {
    if (memory.handle == 0) return {};
    if (memory.kept && process.movers[card].is_alive()) return let_go(memory);
    if (memory.kept) {  // the mover has died since: give it to another one
      memory.kept = false;
      process.movers[card].close();
    }
    Refusal one;
    if (window.full()) one = finish_out(window.pop());
    if (!one) one = connect_mover(card);
    if (!one) one = export_to(abi::MoverMessage::kOut, memory, memory.handle);
    if (!one) window.push({&memory, 0});
    return one;
  });
  while (!window.empty()) {
    const Refusal one = finish_out(window.pop());
    if (!refusal) refusal = one;
  }
  return refusal;
}

// Memory that is away is with that mover only: without the mover it is lost.
Refusal lost_with(Refusal refusal) {
  if (refusal.reason == ParkReason::kNoMover) refusal.reason = ParkReason::kLost;
  return refusal;
}

// New memory, charged, for the mover to fill.
Refusal make_again(const Movable& memory, CUmemGenericAllocationHandle* fresh) {
  const uint64_t units = abi::units_for(memory.bytes);
  if (!take(memory.card, units)) return {ParkReason::kNoRoom, 0};
  const CUmemAllocationProp properties = properties_of(memory);
  CUresult result = real.cuMemCreate(fresh, memory.bytes, &properties, 0);
  for (int tries = 0; result == CUDA_ERROR_OUT_OF_MEMORY && worth_another_try(&tries);)
    result = real.cuMemCreate(fresh, memory.bytes, &properties, 0);
  Refusal refusal;
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    refusal = {ParkReason::kNoRoom, static_cast<uint32_t>(result)};
  else if (result != CUDA_SUCCESS)
    refusal = refused_by_driver(result);
  if (!refusal) {
    refusal = lost_with(export_to(abi::MoverMessage::kIn, memory, *fresh));
    if (refusal) (void)real.cuMemRelease(*fresh);
  }
  settle(memory.card, units, refusal ? 0 : units);
  return refusal;
}

Refusal finish_in(const Told& told) {
  Movable& memory = *told.memory;
  Refusal refusal = lost_with(refused_by(process.movers[memory.card].receive()));
  if (!refusal)
    if (const CUresult result = map_again(memory, told.fresh); result != CUDA_SUCCESS)
      refusal = refused_by_driver(result);
  if (refusal) {
    (void)real.cuMemRelease(told.fresh);
    release(memory.card, abi::units_for(memory.bytes));
    return refusal;
  }
  memory.handle = told.fresh;
  slot().moved_bytes.fetch_sub(memory.bytes);
  process.grant->header.park_disk_bytes.fetch_sub(memory.on_disk);
  return {};
}

Refusal take_back(int card) {
  Window window;
  Refusal refusal = each_movable(card, [&](Movable& memory) -> Refusal {
    if (memory.handle != 0) return {};
    Told told{&memory, 0};
    Refusal one;
    if (window.full()) one = finish_in(window.pop());
    if (!one) one = make_again(memory, &told.fresh);
    if (!one) window.push(told);
    return one;
  });
  while (!window.empty()) {
    const Refusal one = finish_in(window.pop());
    if (!refusal) refusal = one;
  }
  return refusal;
}

template <class Move>
Refusal each_card(Move move) {
  for (uint32_t card = 0; card < process.grant->header.card_count; ++card)
    if (const Refusal refusal = move(static_cast<int>(card))) return refusal;
  return {};
}

// Other threads may be running, so the lists are read under the lock.
bool anything_away() {
  Locked locked(process.lock);
  for (const Chunk& chunk : process.chunks)
    if (chunk.handle == 0) return true;
  for (const Owned& owned : process.owned)
    if (owned.used && owned.handle == 0) return true;
  return false;
}

// All memory is here: the movers can drop their copies.
void let_movers_forget() {
  if (anything_away()) return;
  for (MoverLink& link : process.movers) link.close();
  Locked locked(process.lock);
  for (Chunk& chunk : process.chunks) chunk.kept = false;
  for (Owned& owned : process.owned) owned.kept = false;
}

// ---- orders -------------------------------------------------------------------------------------

void obey(const ParkOrder& order) {
  Refusal refusal;
  switch (order.kind) {
    case ParkOrder::kRun:
      let_movers_forget();
      open_gate(order.number);
      slot().park.store(0);
      return;
    case ParkOrder::kQuiesce:
      // This order may have overtaken an order to run: the copies of the movers are old.
      let_movers_forget();
      if (!quiesce(order, &refusal)) return;
      return answer(order, refusal ? ParkAnswer::kRefused : ParkAnswer::kQuiet, refusal);
    case ParkOrder::kMove:
      // For a process that is new in the job: it did not exist when the others came to rest.
      if (!quiesce(order, &refusal)) return;
      if (!refusal) refusal = each_card(give_away);
      return answer(order, refusal ? ParkAnswer::kRefused : ParkAnswer::kParked, refusal);
    case ParkOrder::kBack:
      if (!close_gate(order.number)) return;
      refusal = each_card(take_back);
      return answer(order, refusal ? ParkAnswer::kRefused : ParkAnswer::kReturned, refusal);
    default:
      return answer(order, ParkAnswer::kRefused, {ParkReason::kThread, 0});
  }
}

void* park_main(void*) {
  uint64_t obeyed = 0;
  for (;;) {
    const uint64_t word = current_order();
    const ParkOrder order = ParkOrder::unpack(word);
    if (order.number == obeyed) {
      wait_for_order(word);
      continue;
    }
    // Driver calls need a context; each of these calls sets its own.
    obey(order);
    obeyed = order.number;
  }
  return nullptr;
}

bool has_virtual_memory() {
  return real.cuMemAddressReserve != nullptr && real.cuMemSetAccess != nullptr &&
         real.cuMemExportToShareableHandle != nullptr;
}

}  // namespace

// pthread_create is looked up: before glibc 2.34 it is in a library of its own, which every program
// that loads a driver has.
bool start_thread(void* (*main)(void*)) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  const auto create = reinterpret_cast<Create>(find_anywhere("pthread_create"));
  if (create == nullptr) return false;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  (void)sigprocmask(SIG_SETMASK, &all, &before);  // the program's signals are for its own threads
  pthread_t thread{};
  const bool started = create(&thread, nullptr, main, nullptr) == 0;
  (void)sigprocmask(SIG_SETMASK, &before, nullptr);
  return started;
}

void note_obstacle(ParkReason reason, int change) {
  std::atomic<uint32_t>& count = process.obstacles[static_cast<uint32_t>(reason)];
  const uint32_t before = count.fetch_add(static_cast<uint32_t>(change));
  if (process.slot.load() == 0) return;
  const uint64_t bit = 1ull << static_cast<uint32_t>(reason);
  if (change > 0 && before == 0) slot().unparkable.fetch_or(bit);
  if (change < 0 && before == 1) slot().unparkable.fetch_and(~bit);
}

bool gates_wanted() {
  const char* said = getenv("METE_PARKABLE");
  return said != nullptr && strcmp(said, "1") == 0;
}

void listen_for_orders() {
  if ((process.grant->header.features & abi::kParkable) == 0) return;
  const uint64_t bit = 1ull << static_cast<int>(ParkReason::kThread);
  if (!gates_wanted() || !has_virtual_memory()) {
    slot().unparkable.store(bit);
    return;
  }
  slot().unparkable.store(0);
  slot().moved_bytes.store(0);
  slot().park.store(0);
  prepare_gate();
  const ParkOrder order = ParkOrder::unpack(current_order());
  if (order.kind != ParkOrder::kRun) shut_gate(order.number);  // this call is inside itself
  if (start_thread(&park_main))
    process.parkable.store(true);
  else
    slot().unparkable.store(bit);
}

}  // namespace mete::meter
