// SPDX-License-Identifier: Apache-2.0
// Streams. Work is done at once, in the order of the calls, except behind a host function that has
// not run: then it queues, and a thread of the driver drains the queues. A kernel that takes time
// only moves the moment at which its stream is idle again. Completed work that the host has *seen*
// is tracked separately from completed work, because pools may only shrink by the former.
// Everything here runs under the driver's one lock (Guard), held once: waiting releases it.
#pragma once

#include <pthread.h>

#include "abi/cuda_api.h"
#include "simgpu/driver.h"
#include "simgpu/stream_list.h"
#include "simgpu/stream_work.h"

namespace simgpu {

struct Capture;

// A stream waited for another one: from our `at` on, that one's work up to `mark` is done too.
struct Covered {
  uint64_t at;
  Mark mark;
};

struct Stream {
  static constexpr uint32_t kMagic = 0x5354524d;
  uint32_t magic = kMagic;
  unsigned flags = 0;
  int priority = 0;
  int device = 0;
  Context* context = nullptr;
  uint64_t id = 0;
  bool legacy = false;
  int thread = 0;  // per-thread default stream: whose
  bool dying = false;
  bool running = false;    // the driver's thread is working on its first task
  uint64_t submitted = 0;  // sequence of the last submitted work
  uint64_t retired = 0;    // and of the last one whose effects are there
  uint64_t seen = 0;       // and of the last one that the host has seen complete
  int64_t busy_until_ns = 0;
  List<Covered> covered;
  Task* first = nullptr;
  Task* last = nullptr;
  Capture* capture = nullptr;
  List<CUgraphNode> capture_after;  // dependencies of the next captured node
};

// Releases the driver's lock while the program's own code runs. It must be held exactly once.
struct Unguard {
  Unguard() { pthread_mutex_unlock(&driver.mutex); }
  ~Unguard() { pthread_mutex_lock(&driver.mutex); }
  Unguard(const Unguard&) = delete;
  Unguard& operator=(const Unguard&) = delete;
};

int64_t now_ns();

// The stream that a handle means for the calling thread; `per_thread`: what null means. Fails with
// 201 without a context, 400 for an unknown stream.
CUresult find_stream(CUstream handle, bool per_thread, Stream** out);
Stream* stream_by_id(uint64_t id);
const List<Stream*>& all_streams();
Stream* legacy_stream(Context* context);
CUresult create_stream(Context* context, unsigned flags, int priority, Stream** out);
void destroy_stream(Stream* stream);
void reap_streams();

// The beginning of every operation: a place in the order, after what the default streams demand.
uint64_t enter_stream(Stream* stream);
// Does `task` now or queues it. Takes over the task's references.
CUresult submit(Stream* stream, const Task& task);
// The kernel that was just submitted takes this long.
void keep_busy(Stream* stream, int64_t ns);
// Later work of `stream` comes after `mark`, which is reached at `at_ns` (-1: not known yet).
void wait_for_mark(Stream* stream, Mark mark, int64_t at_ns);
// From now on the stream is behind `mark` (one entry per stream: the latest).
void cover(Stream* stream, Mark mark);
bool covers(const Stream* stream, Mark mark);
bool is_idle(const Stream* stream);
// Blocks until idle (releases the lock meanwhile; the stream must not be destroyed by then).
void wait_until_idle(Stream* stream);
void wait_until(int64_t ns);
// The host has seen that all work up to here is complete (and what it waited for).
void host_saw(Stream* stream, uint64_t sequence);
bool was_seen(Mark mark);
bool is_complete(Mark mark);
// Waits for the next change of any stream (or 1 s).
void wait_for_change();

// Runs one task (stream_effects.cc); the lock is released only during host functions.
bool value_reached(const Task& task);
CUresult perform(Stream* stream, const Task& task);

}  // namespace simgpu
