// SPDX-License-Identifier: Apache-2.0
// The inside of the simulated libcuda.so.1: what every entry point may use.
//
// How to add an entry point: write `extern "C" CUresult cuX(...)` in any .cc of this folder, with
// SIM_ENTRY as its first line. Every name of src/abi/cuda_symbols.def has a weak default that
// returns CUDA_ERROR_NOT_SUPPORTED (defaults.cc); your definition replaces it, and cuGetProcAddress
// finds it by itself (its table is made from the names). Prototypes come from abi/cuda_api.h; one
// that is not there is declared at its definition. The entry point must be called:
// tests/checks/reached.py fails on an entry that no program and no test reaches.
//
//   extern "C" CUresult cuMemThing(CUdeviceptr p) {
//     SIM_ENTRY_CONTEXT(cuMemThing);  // faults, delays; 3, 201, or the context's sticky error
//     const Guard guard;              // the driver's one lock
//     ...
//   }
//
// Lock: `Guard`, one recursive mutex for the whole client side. Never hold it while calling back
// into the program (host functions, callbacks) or while waiting for another thread. The
// connection's mutex is taken inside it, never the other way round. Memory: libc's
// malloc/calloc/free; no operator new with a constructor, no std containers, no function-local
// statics with constructors: the library needs only libc. State is constinit. After a fork of an
// initialised process every call returns CUDA_ERROR_NOT_INITIALIZED, as the real driver does.
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/cuda_api.h"
#include "simgpu/protocol.h"

namespace simgpu {

struct Context;

// ---- cards and contexts ------------------------------------------------------------------------

struct Device {
  CardInfo info;     // as it was at cuInit
  uint32_t card;     // the server's index
  uint64_t total;    // what CUDA reports: info.total - info.reserved
  Context* primary;  // made at the first retain, kept (marked ended) after the last release
  unsigned primary_references;
  unsigned primary_flags;
  void* pools;         // pool.cc
  void* graph_memory;  // graph.cc
};

struct Range;
struct Array;

struct Context {
  uint64_t magic;
  uint64_t id;  // unique in this process, never used again
  int device;   // ordinal in driver.devices
  unsigned flags;
  bool primary;
  bool ended;     // destroyed; the struct is never freed, so stale handles are recognised
  unsigned uses;  // cuCtxCreate and cuCtxAttach, less cuCtxDetach
  unsigned api_version;
  CUresult sticky;  // a fault: every later call in this context returns it
  size_t limits[CU_LIMIT_MAX];
  uint64_t piece;        // the context's own memory
  uint64_t stack_piece;  // local memory: SMs x 2048 x stack limit, in granules
  uint64_t heap_piece;   // malloc heap, taken at the first launch (launch.cc)
  uint32_t peers;        // devices whose memory is accessible, by cuCtxEnablePeerAccess
  Range* ranges;         // memory that ends with the context
  struct SlabPool* slabs;
  Array* arrays;
  void* streams;  // stream.cc
  void* modules;  // module.cc
  Context* next;  // all contexts ever made
};

struct Driver {
  pthread_mutex_t mutex;
  bool initialised;
  bool forked;  // an initialised parent forked: nothing works here any more
  int device_count;
  Device devices[kMaxCards];
  Context* contexts;
  uint64_t next_id;  // buffer ids, context ids
};
extern constinit Driver driver;

inline constexpr size_t kContextBytes = 518ull << 20;      // primary, as measured (H200)
inline constexpr size_t kNextContextBytes = 524ull << 20;  // 523.6 MiB, in granules
inline constexpr size_t kDefaultStack = 1024;
inline constexpr int kThreadsPerSm = 2048;

struct Guard {
  Guard() { pthread_mutex_lock(&driver.mutex); }
  ~Guard() { pthread_mutex_unlock(&driver.mutex); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
};

// The calling thread's contexts; the top of the stack is the current one.
struct ThreadState {
  Context* current;
  int depth;  // how many of `below` are in use
  Context* below[14];
};
extern thread_local constinit ThreadState thread_state __attribute__((tls_model("initial-exec")));

inline Context* current_context() { return thread_state.current; }
inline Device* device_of(const Context* context) { return &driver.devices[context->device]; }
// Null when the handle is not one of our contexts (ended ones are returned, check `ended`).
Context* find_context(CUcontext handle);
inline CUcontext handle_of(Context* context) { return reinterpret_cast<CUcontext>(context); }
inline bool device_ok(CUdevice device) { return device >= 0 && device < driver.device_count; }
// Makes the fault permanent for the context and returns it.
CUresult set_sticky(Context* context, CUresult fault);

// ---- physical memory: one request to the server each -------------------------------------------

// Takes at least `bytes` (rounded up to 2 MiB) on the device: CUDA_SUCCESS and an id, or
// CUDA_ERROR_OUT_OF_MEMORY, or CUDA_ERROR_DEVICE_UNAVAILABLE (card or server gone).
CUresult phys_take(int device, size_t bytes, MemoryClass use, uint64_t* id);
// Grows or shrinks a piece in one step: done, or CUDA_ERROR_OUT_OF_MEMORY and nothing changed.
CUresult phys_resize(uint64_t id, size_t bytes);
// Gives back one reference. Unknown ids are ignored.
void phys_give(uint64_t id);
// Used and total bytes of the card as CUDA sees them.
CUresult phys_usage(int device, uint64_t* used, uint64_t* total);
inline size_t round_granule(size_t bytes) { return (bytes + kGranule - 1) & ~(kGranule - 1); }

// ---- device addresses --------------------------------------------------------------------------

// Device pointers are addresses of one region that this process has reserved without access, so
// they never equal a host pointer. The region is cut into 2 MiB granules; each belongs to at most
// one Range.

enum class RangeKind : uint8_t {
  kBlock,        // one cuMemAlloc above 1 MiB
  kSlab,         // 2 MiB of small blocks
  kReservation,  // cuMemAddressReserve without a mapping
  kMapping,      // cuMemMap
  kIpc,          // cuIpcOpenMemHandle
  kPool,         // pool.cc
  kGraph,        // graph.cc
  kGlobal,       // module.cc
};

struct Block {
  CUdeviceptr base;
  size_t bytes;
};

struct RangeOps {
  // The block of the range that holds `p` (for ranges that are cut into blocks); false: none.
  bool (*find_block)(Range* range, CUdeviceptr p, Block* block);
  // cuMemFree of `p`, which lies in the range. May destroy the range.
  CUresult (*release)(Range* range, CUdeviceptr p);
};

struct Range {
  CUdeviceptr base;  // a multiple of the granule
  size_t bytes;      // of addresses, a multiple of the granule
  size_t asked;      // what the program asked for (find_block of a range that is one block)
  RangeKind kind;
  bool legacy_ipc;   // cuIpcGetMemHandle may export it
  int device;        // ordinal of the backing's card
  Context* context;  // that allocated it; null: the process (VMM)
  uint64_t piece;    // backing; 0: none
  uint64_t piece_offset;
  uint32_t readable;  // devices that may read, one bit each (all ones: all devices)
  uint32_t writable;
  uint64_t buffer_id;
  CUmemoryPool pool;    // for CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE
  const RangeOps* ops;  // null: the range is one block, freed only by its owner
  void* owner;
  Range* next;  // in context->ranges when linked
  Range** link;
};

// Addresses: null on failure. `align` is a power of two (0: the granule); `hint` 0: anywhere.
CUdeviceptr va_take(size_t bytes, size_t align, CUdeviceptr hint);
void va_give(CUdeviceptr base, size_t bytes);
// True when the address lies in our region at all.
bool va_ours(CUdeviceptr p);

// Makes pointers into the range resolve to it: copies, fills and pointer attributes then work. The
// struct stays the caller's; it must live until range_remove. `buffer_id` is filled in when 0.
void range_add(Range* range);
void range_remove(Range* range);
// Makes part of the range's addresses resolve to it (again).
void range_cover(Range* range, CUdeviceptr base, size_t bytes);
Range* range_find(CUdeviceptr p);
bool block_find(CUdeviceptr p, Range** range, Block* block);
// Links the range to its context, so that it ends with it (ops->release is called, or the owner's
// *_end hook below takes care).
void range_link(Range* range);
void range_unlink(Range* range);

// ---- copies and fills, through whatever backs the addresses ------------------------------------

// Host pointers, managed memory and device pointers may be mixed. They check access rights and
// bounds (CUDA_ERROR_INVALID_VALUE), run at once, and need no context.

CUresult copy_bytes(void* to, const void* from, size_t bytes);
struct FillShape {
  size_t pitch;  // between rows, bytes
  size_t width;  // of a row, elements
  size_t rows;
  unsigned element;  // 1, 2 or 4 bytes
  uint32_t value;
};
CUresult fill_bytes(CUdeviceptr to, const FillShape& shape);
CUresult copy_3d(const CUDA_MEMCPY3D* what);

// ---- asynchronous work -------------------------------------------------------------------------

using Work = CUresult (*)(void* arguments);
// Runs `work` in the stream's order: at once when nothing is pending and nothing is captured; a
// capturing stream records it. `arguments` (bytes long) are copied when it has to wait.
// `per_thread`: stream 0 means the per-thread default stream (the _ptsz and _ptds entries).
CUresult stream_submit(CUstream stream, bool per_thread, Work work, const void* arguments,
                       size_t bytes);
// Waits for everything the context has pending. cuMemFree, cuCtxSynchronize and the like call it,
// without holding the Guard.
CUresult context_synchronize(Context* context);
// The context ends: its streams, events, modules, graphs and pools are destroyed. Called under the
// Guard, before the context's linked ranges are released.
void streams_end(Context* context);
void modules_end(Context* context);
void graphs_end(Context* context);
// The last context of the device ended.
void pools_end(Device* device);

// ---- entry -------------------------------------------------------------------------------------

enum class Need : uint8_t { kNothing, kInit, kContext, kTool };

// pause.cc: a process that is locked by cuCheckpointProcessLock waits outside. kTool calls, which
// lock other processes, never wait.
bool pause_enter();
void pause_leave();
// The queue of a stream has grown or shrunk, or a kernel was begun.
void pause_pending(int change);
void pause_busy_until(int64_t ns);
// At cuInit; and in a forked child, which does not take part.
void pause_begin();
void pause_forget();

// 0: no METE_SIM_FAULT and no METE_SIM_DELAY_US; -1: not read yet; 1: look for a match.
extern int trouble;

class Entry {
 public:
  explicit Entry(const char* name, Need need) : name_(name) {
    inside_ = need != Need::kTool && need != Need::kNothing && pause_enter();
    if (__builtin_expect(trouble != 0, 0)) begin();
    if (result_ != CUDA_SUCCESS || need == Need::kNothing) return;
    if (__builtin_expect(!driver.initialised || driver.forked, 0)) {
      result_ = CUDA_ERROR_NOT_INITIALIZED;
    } else if (need == Need::kContext) {
      const Context* context = thread_state.current;
      if (context == nullptr) {
        result_ = CUDA_ERROR_INVALID_CONTEXT;
      } else if (context->ended) {
        result_ = CUDA_ERROR_CONTEXT_IS_DESTROYED;
      } else {
        result_ = context->sticky;
      }
    }
  }
  ~Entry() {
    if (__builtin_expect(after_ != 0, 0)) finish();
    if (inside_) pause_leave();
  }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  bool refused() const { return result_ != CUDA_SUCCESS; }
  CUresult result() const { return result_; }

 private:
  void begin();   // applies faults and delays
  void finish();  // after-kill, after-stop, delay
  const char* name_;
  CUresult result_ = CUDA_SUCCESS;
  int after_ = 0;
  bool inside_ = false;
};

#define SIM_ENTRY_(name, need)                                  \
  const ::simgpu::Entry sim_entry(#name, ::simgpu::Need::need); \
  if (sim_entry.refused()) return sim_entry.result()
// Works before cuInit.
#define SIM_ENTRY_FREE(name) SIM_ENTRY_(name, kNothing)
// CUDA_ERROR_NOT_INITIALIZED before cuInit.
#define SIM_ENTRY(name) SIM_ENTRY_(name, kInit)
// SIM_ENTRY for calls about other processes: they do not wait while this one is locked.
#define SIM_ENTRY_TOOL(name) SIM_ENTRY_(name, kTool)
// ... and CUDA_ERROR_INVALID_CONTEXT without a current context, and the context's sticky error.
#define SIM_ENTRY_CONTEXT(name) SIM_ENTRY_(name, kContext)

}  // namespace simgpu
