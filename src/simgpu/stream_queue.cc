// SPDX-License-Identifier: Apache-2.0
// How a stream's work gets done: at once, or by the driver's thread once the work before it is
// done. The thread starts with the first host function, blocks all signals, and holds the driver's
// lock except while it is inside a host function.
#include <errno.h>
#include <signal.h>
#include <time.h>

#include <cstring>

#include "abi/old_glibc.h"
#include "simgpu/event.h"
#include "simgpu/stream.h"

METE_OLD_SYMBOL(pthread_create);
METE_OLD_SYMBOL(pthread_sigmask);
METE_OLD_SYMBOL_2_3_3(pthread_condattr_setclock);

namespace simgpu {
namespace {

pthread_cond_t changed;
// Waits use the monotonic clock.
__attribute__((constructor)) void make_condition() {
  pthread_condattr_t kind;
  pthread_condattr_init(&kind);
  pthread_condattr_setclock(&kind, CLOCK_MONOTONIC);
  pthread_cond_init(&changed, &kind);
  pthread_condattr_destroy(&kind);
}

constinit bool thread_runs = false;

timespec timespec_of(int64_t ns) { return {ns / 1'000'000'000, ns % 1'000'000'000}; }

// The driver's lock is recursive, and a context may end (and wait for its streams) while it is held
// more than once. A wait must release it completely.
unsigned let_go_but_once() {
  const unsigned held = driver.mutex.__data.__count;
  for (unsigned i = 1; i < held; i++) pthread_mutex_unlock(&driver.mutex);
  return held;
}
void take_again(unsigned held) {
  for (unsigned i = 1; i < held; i++) pthread_mutex_lock(&driver.mutex);
}

void wait_changed_until(int64_t ns) {
  const timespec until = timespec_of(ns);
  const unsigned held = let_go_but_once();
  pthread_cond_timedwait(&changed, &driver.mutex, &until);
  take_again(held);
}

void announce_change() { pthread_cond_broadcast(&changed); }

bool is_host_work(const Task& task) {
  return task.kind == TaskKind::kHost || task.kind == TaskKind::kCallback;
}

// Whether the first work of a stream may be done now; if only the clock prevents it, *wake_ns says
// when to check again.
bool may_run(const Stream* stream, const Task& task, int64_t now, int64_t* wake_ns) {
  switch (task.kind) {
    case TaskKind::kHost:
    case TaskKind::kCallback:
      if (now >= stream->busy_until_ns) return true;
      if (stream->busy_until_ns < *wake_ns) *wake_ns = stream->busy_until_ns;
      return false;
    case TaskKind::kWaitMark: {
      const Stream* const other = stream_by_id(task.mark.stream);
      return other == nullptr || other->retired >= task.mark.sequence;
    }
    case TaskKind::kWaitValue:
      if (value_reached(task)) return true;
      if (now + 1'000'000 < *wake_ns)
        *wake_ns = now + 1'000'000;  // memory does not notify: check again
      return false;
    default:
      return true;
  }
}

void retire_first(Stream* stream) {
  Task* const task = stream->first;
  stream->first = task->next;
  if (stream->first == nullptr) stream->last = nullptr;
  // Places without a task (a free, say) retire with the last task before them.
  stream->retired = stream->first == nullptr ? stream->submitted : task->sequence;
  task_release(*task);
  destroy(task);
  pause_pending(-1);
  announce_change();
}

// One pass over all streams. Returns whether anything was done.
bool drain_once(int64_t* wake_ns) {
  bool any = false;
  for (size_t i = 0; i < all_streams().size(); i++) {
    Stream* const stream = all_streams()[i];
    while (stream->first != nullptr && may_run(stream, *stream->first, now_ns(), wake_ns)) {
      stream->running = true;
      (void)perform(stream, *stream->first);  // a failure is the context's fault, kept there
      stream->running = false;
      retire_first(stream);
      any = true;
    }
  }
  return any;
}

void* drain_forever(void*) {
  pthread_mutex_lock(&driver.mutex);
  for (;;) {
    int64_t wake_ns = now_ns() + 3'600'000'000'000;
    if (!drain_once(&wake_ns)) wait_changed_until(wake_ns);
  }
}

bool start_thread() {
  if (thread_runs) return true;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  thread_runs = pthread_create(&thread, &attributes, drain_forever, nullptr) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  return thread_runs;
}

CUresult enqueue(Stream* stream, const Task& task) {
  if (!start_thread()) return CUDA_ERROR_OPERATING_SYSTEM;
  Task* const queued = make<Task>();
  if (queued == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *queued = task;
  queued->next = nullptr;
  queued->sequence = stream->submitted;
  if (stream->last != nullptr)
    stream->last->next = queued;
  else
    stream->first = queued;
  stream->last = queued;
  pause_pending(1);
  announce_change();
  return CUDA_SUCCESS;
}

void wait_for_stream(Stream* stream, Stream* other) {
  if (!is_idle(other))
    wait_for_mark(stream, {other->id, other->submitted},
                  other->first == nullptr ? other->busy_until_ns : -1);
}

bool is_blocking(const Stream* stream) {
  return !stream->legacy && (stream->flags & CU_STREAM_NON_BLOCKING) == 0;
}

}  // namespace

int64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

// The legacy default stream comes after all blocking streams of its context, and they after it.
uint64_t enter_stream(Stream* stream) {
  if (stream->legacy) {
    for (Stream* const other : all_streams())
      if (other != stream && other->context == stream->context && is_blocking(other))
        wait_for_stream(stream, other);
  } else if (is_blocking(stream)) {
    for (Stream* const other : all_streams())
      if (other->legacy && other->context == stream->context) wait_for_stream(stream, other);
  }
  stream->submitted++;
  if (stream->first == nullptr) stream->retired = stream->submitted;
  return stream->submitted;
}

CUresult submit(Stream* stream, const Task& task) {
  enter_stream(stream);
  int64_t ignored = 0;
  if (stream->first != nullptr || is_host_work(task) ||
      !may_run(stream, task, now_ns(), &ignored)) {
    stream->retired = stream->first == nullptr ? stream->submitted - 1 : stream->retired;
    const CUresult result = enqueue(stream, task);
    if (result != CUDA_SUCCESS) {
      if (stream->first == nullptr) stream->retired = stream->submitted;
      task_release(task);
    }
    return result;
  }
  const CUresult result = perform(stream, task);
  task_release(task);
  return result;
}

void keep_busy(Stream* stream, int64_t ns) {
  const int64_t now = now_ns();
  const int64_t from = stream->busy_until_ns > now ? stream->busy_until_ns : now;
  stream->busy_until_ns = from + ns;
  pause_busy_until(stream->busy_until_ns);
}

void wait_for_mark(Stream* stream, Mark mark, int64_t at_ns) {
  cover(stream, mark);
  if (at_ns >= 0 && stream->first == nullptr) {
    if (at_ns > stream->busy_until_ns) stream->busy_until_ns = at_ns;
    return;
  }
  Task task;
  if (at_ns >= 0) {
    task.kind = TaskKind::kWaitTime;
    task.until_ns = at_ns;
  } else {
    task.kind = TaskKind::kWaitMark;
    task.mark.stream = mark.stream;
    task.mark.sequence = mark.sequence;
  }
  stream->submitted++;
  (void)enqueue(stream, task);  // without host memory the order is lost, not the work
}

void cover(Stream* stream, Mark mark) {
  for (Covered& c : stream->covered) {
    if (c.mark.stream != mark.stream) continue;
    if (mark.sequence > c.mark.sequence) c = {stream->submitted, mark};
    return;
  }
  stream->covered.push({stream->submitted, mark});
}

bool covers(const Stream* stream, Mark mark) {
  if (stream->id == mark.stream) return true;
  for (const Covered& c : stream->covered)
    if (c.mark.stream == mark.stream && c.mark.sequence >= mark.sequence) return true;
  return false;
}

bool is_idle(const Stream* stream) {
  return stream->first == nullptr && now_ns() >= stream->busy_until_ns;
}

void wait_until(int64_t ns) {
  const unsigned held = let_go_but_once();
  pthread_mutex_unlock(&driver.mutex);
  const timespec until = timespec_of(ns);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
  pthread_mutex_lock(&driver.mutex);
  take_again(held);
}

void wait_for_change() { wait_changed_until(now_ns() + 1'000'000'000); }

void wait_until_idle(Stream* stream) {
  const uint64_t upto = stream->submitted;
  while (stream->retired < upto) wait_for_change();
  const int64_t busy_until = stream->busy_until_ns;
  if (busy_until > now_ns()) wait_until(busy_until);
}

void host_saw(Stream* stream, uint64_t sequence) {
  if (sequence <= stream->seen && stream->covered.empty()) return;
  if (sequence > stream->seen) stream->seen = sequence;
  for (size_t i = 0; i < stream->covered.size();) {
    if (stream->covered[i].at > sequence) {
      i++;
      continue;
    }
    const Mark mark = stream->covered[i].mark;
    stream->covered.drop(i);
    Stream* const other = stream_by_id(mark.stream);
    if (other != nullptr) host_saw(other, mark.sequence);
  }
}

bool was_seen(Mark mark) {
  const Stream* const stream = stream_by_id(mark.stream);
  return stream == nullptr || stream->seen >= mark.sequence;
}

bool is_complete(Mark mark) {
  const Stream* const stream = stream_by_id(mark.stream);
  return stream == nullptr || stream->seen >= mark.sequence ||
         (stream->retired >= mark.sequence && now_ns() >= stream->busy_until_ns);
}

void task_retain(const Task& task) {
  if (task.kind == TaskKind::kKernel && task.kernel.arguments != nullptr)
    task.kernel.arguments->references++;
  if (task.kind == TaskKind::kOpaque) task.opaque.arguments->references++;
  if (task.kind == TaskKind::kRecord) task.record.event->references++;
}

void task_release(const Task& task) {
  if (task.kind == TaskKind::kKernel && task.kernel.arguments != nullptr &&
      --task.kernel.arguments->references == 0)
    free(task.kernel.arguments);
  if (task.kind == TaskKind::kOpaque && --task.opaque.arguments->references == 0)
    free(task.opaque.arguments);
  if (task.kind == TaskKind::kRecord) event_release(task.record.event);
}

}  // namespace simgpu
