// SPDX-License-Identifier: Apache-2.0
// What the meter knows in this process: its grant, its slot, its cards, its tables.
//
// All of it lies in pages that the kernel wipes in a forked child (MADV_WIPEONFORK): a child starts
// with nothing, claims a slot of its own when it first takes memory, and can never free or hold
// memory of its parent. The real drivers' pointers (real.h) stay valid across fork and lie
// elsewhere.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "abi/account.h"
#include "abi/cuda_types.h"
#include "abi/grant.h"
#include "abi/process.h"
#include "meter/chunk.h"
#include "meter/ipc.h"
#include "meter/list.h"
#include "meter/lock.h"
#include "meter/mover_link.h"
#include "meter/owned.h"
#include "meter/region.h"
#include "meter/table.h"

namespace mete::meter {

inline constexpr int kNoCard = -1;
inline constexpr int kMaxDevices = 64;  // ordinals that this process may see

// A context that costs memory: created by a hooked call, or found as the current one.
struct Context {
  CUcontext handle;
  CUcontext green;  // the green context that this handle is a view of, or nullptr
  uint32_t id;      // never used twice, unlike handles
  bool ending;      // the driver is destroying it
  int card;
  uint32_t uses;         // cuCtxAttach adds one, cuCtxDetach takes one; the last ends it
  uint64_t units;        // its cost, with what larger limits take
  size_t stack_base;     // bytes of stack per thread that its own cost covers; 0 = not asked yet
  uint64_t stack_units;  // what the stack takes beyond that, part of `units`
  size_t heap_max;       // the largest limits that are charged
  size_t fifo_max;
};

// What this process holds on one card besides single blocks.
struct CardState {
  uint32_t contexts;
  bool reserved;                    // the reserve came with the first context (reserve.h)
  bool lendable;                    // the sampler may give back part of it
  uint64_t reserve_left;            // once not lendable: how much of it is charged
  std::atomic<bool> keeps_reserve;  // all of it is charged, and stays
  int spare_slabs;  // slabs charged and not in use, for the next small block: 0 or 1
  int small_calls;  // small allocations now inside the driver that count on the spare
  std::atomic<CUmemoryPool> current_pool;  // cached; nullptr = ask the driver
  std::atomic<uint32_t>
      inside;  // 1: a thread allocates from room inside a pool, without a reservation
  std::atomic<bool> grew_past;    // such an allocation was undone, and its memory may still be held
  std::atomic<uint64_t> healthy;  // when a context here last worked (query.cc)
  std::atomic<uint64_t> unanswered;  // the number of an ask that got no answer in time (grow.cc)
  uint64_t graph_units;              // charged for graph memory
  uint32_t graph_epoch;
  uint32_t graph_trims;  // how often graph memory was trimmed
  bool graph_surprised;  // a launch took new memory where it should have found its own
};

// Memory whose last binding was undone in stream order: held until the stream has passed that
// point.
struct Unbound {
  CUmemGenericAllocationHandle handle;
  TableValue said;  // its value in Process::handles
  CUevent event;    // recorded behind it; nullptr: held until the next synchronisation
  uint32_t context_id;
};

struct Inside;  // gate.h

struct alignas(4096) Process {
  Lock load_lock;             // around loading the drivers
  Lock attach_lock;           // around attaching to the grant; taken before `lock`
  Lock lock;                  // tables and slot; the innermost
  std::atomic<int> attached;  // 0 not tried, 1 attached, 2 refused
  abi::Grant* grant;
  char grant_path[4096];  // where it was found: leases are asked for there
  uint64_t owner;
  std::atomic<int> slot;  // index + 1; 0 = none yet
  uint32_t part;
  std::atomic<int> mapped;  // the ordinals are mapped to cards
  int device_count;
  int card_of_device[kMaxDevices];
  CUdevice device_of_card[abi::kMaxCards];

  CardState cards[abi::kMaxCards];
  List<Context> contexts;
  uint32_t last_context_id;

  Table blocks;    // device pointer → {units | card | kind, context id}; slab keys have bit 0 set
  Table freed;     // blocks freed in stream order: the driver frees them later
  Table handles;   // VMM handle → {units | card, references | mappings}
  Table mappings;  // address → {handle, bytes}
  Table accesses;  // address of a mapping → devices that may read it, write it, as bits
  Table pools;     // pool → {charged units, card | epoch}
  Table execs;     // executable graph with memory nodes → {bytes, card}
  Table arrays;    // array or mipmap → {units, card}
  Table imports;   // address or handle from another process → {export index + 1, units | card}
  Table exports;   // address or handle that was exported → {export index + 1, units | card}
  uint64_t largest_mapping;  // bytes
  Bindings bindings;         // what is bound to sparse arrays and multicast objects
  List<Unbound> unbound;
  std::atomic<uint64_t> execs_with_memory;
  std::atomic<uint64_t> next_look_ns;  // when a query may look for dead processes again
  std::atomic<uint32_t> pools_dirty;   // a free whose effect on RESERVED has not been read yet

  // For parkable processes (gate.h, chunk.h, park.h).
  std::atomic<bool> parkable;  // it takes memory in chunks, and its park thread listens
  // 0 = open. Every call reads it, so nothing that changes lies beside it.
  alignas(128) std::atomic<uint64_t> gate;
  alignas(128) Lock gate_lock;  // the threads below
  Inside* insides;              // a word for each thread that was ever registered
  size_t inside_count;
  size_t inside_look_at;              // the number of threads at which ended ones are looked for
  std::atomic<bool> uncounted;        // a thread got no word
  List<Chunk> chunks;                 // ascending by address
  List<Owned> owned;                  // memory that the program created itself; places do not move
  uint32_t free_owned;                // the first place that is free: index + 1
  uint64_t last_chunk_id;             // of chunks and owned memory
  std::atomic<uint32_t> last_serial;  // of a block
  Table late;                         // blocks whose free waits until the card can be synchronised
  Table captures;                     // streams that are being captured
  struct {
    Lock lock;
    int listener;  // 0: no handle was asked for yet
    uint32_t nonce;
    uint8_t secret[16];
  } ipc;
  List<Opened> opened;  // memory of other processes (ipc.h); not only in parkable processes
  std::atomic<uint32_t> obstacles[16];  // how many obstacles to parking there are, by ParkReason
  MoverLink movers[abi::kMaxCards];
  uint64_t peers[abi::kMaxCards];  // devices that may access a card's memory, as bits
};

extern Process process [[gnu::visibility("hidden")]];  // direct, not through the GOT

// Makes the state above vanish in forked children. Before the first of its locks is taken.
void empty_in_children();

// Opens the grant of this process, once. False: there is no trustworthy grant, and CUDA is refused.
bool attach();

// The card of an ordinal, or kNoCard when the grant has no such card.
int card_of(CUdevice device);

// The slot of this process, claimed on first use. -1 when the grant has none left.
int my_slot();

inline abi::Viewer viewer() { return {process.owner, process.grant_path}; }

inline abi::AccountId account_of(int card) { return {process.part, static_cast<uint32_t>(card)}; }

}  // namespace mete::meter
