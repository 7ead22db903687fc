// SPDX-License-Identifier: Apache-2.0
// The list of streams: created and destroyed by the program, or by the first use of a default
// stream. A destroyed stream stays until its queue has run.
#include "simgpu/stream.h"

#include "abi/old_glibc.h"
#include "simgpu/capture.h"

namespace simgpu {
namespace {

// Never destroyed: the driver's thread and the program's exit handlers may still use it.
List<Stream*>& streams() {
  static constinit List<Stream*>* list = nullptr;
  if (list == nullptr) list = make<List<Stream*>>();
  return *list;
}
constinit uint64_t next_stream_id = 1;

Stream* new_stream(Context* context, unsigned flags, int priority) {
  Stream* const stream = make<Stream>();
  if (stream == nullptr || !streams().push(stream)) {
    destroy(stream);
    return nullptr;
  }
  stream->context = context;
  stream->device = context->device;
  stream->flags = flags;
  stream->priority = priority;
  stream->id = next_stream_id++;
  return stream;
}

int thread_id() {
  static thread_local int id = 0;
  if (id == 0) id = mete::abi::thread_id();
  return id;
}

Stream* per_thread_stream(Context* context) {
  const int thread = thread_id();
  for (Stream* const stream : streams())
    if (stream->thread == thread && stream->context == context && !stream->dying) return stream;
  Stream* const stream = new_stream(context, 0, 0);
  if (stream != nullptr) stream->thread = thread;
  return stream;
}

}  // namespace

const List<Stream*>& all_streams() { return streams(); }

Stream* stream_by_id(uint64_t id) {
  for (Stream* const stream : streams())
    if (stream->id == id) return stream;
  return nullptr;
}

Stream* legacy_stream(Context* context) {
  for (Stream* const stream : streams())
    if (stream->legacy && stream->context == context) return stream;
  Stream* const stream = new_stream(context, 0, 0);
  if (stream != nullptr) stream->legacy = true;
  return stream;
}

CUresult find_stream(CUstream handle, bool per_thread, Stream** out) {
  Context* const context = current_context();
  if (handle == nullptr) handle = per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
  if (handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    *out = handle == CU_STREAM_LEGACY ? legacy_stream(context) : per_thread_stream(context);
    return *out == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
  }
  *out = reinterpret_cast<Stream*>(handle);
  return (*out)->magic == Stream::kMagic && !(*out)->dying ? CUDA_SUCCESS
                                                           : CUDA_ERROR_INVALID_HANDLE;
}

CUresult create_stream(Context* context, unsigned flags, int priority, Stream** out) {
  *out = new_stream(context, flags, priority);
  return *out == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

void reap_streams() {
  for (size_t i = 0; i < streams().size();) {
    Stream* const stream = streams()[i];
    if (!stream->dying || stream->running || !is_idle(stream)) {
      i++;
      continue;
    }
    streams().drop(i);
    stream->magic = 0;
    destroy(stream);
  }
}

void destroy_stream(Stream* stream) {
  leave_capture(stream);
  stream->dying = true;
  reap_streams();
}

// The end of a context drops the queued work of its streams: its memory is gone.
void streams_end(Context* context) {
  for (Stream* const stream : streams()) {
    if (stream->context != context) continue;
    leave_capture(stream);
    stream->dying = true;
    stream->busy_until_ns = 0;
    while (stream->first != nullptr) {
      if (stream->running && stream->first->next == nullptr) break;
      // The driver's thread may be working on the first task: take the one behind it.
      Task** const link = stream->running ? &stream->first->next : &stream->first;
      Task* const task = *link;
      *link = task->next;
      if (stream->last == task) stream->last = stream->running ? stream->first : nullptr;
      stream->retired = task->sequence;
      task_release(*task);
      destroy(task);
      pause_pending(-1);
    }
  }
  reap_streams();
}

}  // namespace simgpu
