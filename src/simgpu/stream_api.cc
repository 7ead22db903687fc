// SPDX-License-Identifier: Apache-2.0
// The entry points of streams, and the two hooks by which copies, fills and the context reach them.
// Creating, waiting, querying and destroying work on one stream; synchronising the legacy default
// stream also waits for every blocking stream of its context.
#include <cstring>

#include "simgpu/capture.h"
#include "simgpu/event.h"
#include "simgpu/pool.h"
#include "simgpu/state.h"
#include "simgpu/stream.h"
#include "simgpu/stream_pair.h"

namespace simgpu {
namespace {

constexpr int kGreatestPriority = -5;
constexpr unsigned kExternal = 1;

bool is_blocking(const Stream* stream) {
  return !stream->legacy && (stream->flags & CU_STREAM_NON_BLOCKING) == 0;
}

Arguments* copy_arguments(const void* data, size_t bytes) {
  Arguments* const copy = static_cast<Arguments*>(malloc(sizeof(Arguments) + bytes));
  if (copy == nullptr) return nullptr;
  copy->references = 1;
  copy->count = 0;
  memcpy(copy->pointers, data, bytes);
  return copy;
}

CUresult find_for_work(CUstream handle, bool per_thread, Stream** stream) {
  const CUresult result = find_stream(handle, per_thread, stream);
  return result == CUDA_SUCCESS ? refuse_legacy(*stream) : result;
}

CUresult submit_or_capture(Stream* stream, const Task& task, CUgraphNodeType type) {
  return is_capturing(stream) ? capture_task(stream, task, type) : submit(stream, task);
}

// The host waits for all submitted work of the stream.
CUresult wait_for_stream(Stream* stream) {
  Context* const context = stream->context;
  if (stream->legacy) {
    // The legacy stream also waits for every blocking stream of the context.
    List<uint64_t> others;
    for (const Stream* const other : all_streams())
      if (other->context == context && is_blocking(other)) others.push(other->id);
    for (const uint64_t id : others) {
      Stream* other = stream_by_id(id);
      if (other != nullptr) wait_until_idle(other);
      other = stream_by_id(id);
      if (other != nullptr) host_saw(other, other->retired);
    }
  }
  const uint64_t upto = stream->submitted;
  wait_until_idle(stream);
  host_saw(stream, upto);
  reap_streams();
  return context->sticky;
}

CUresult synchronize(CUstream handle, bool per_thread) {
  const Guard guard;
  Stream* stream = nullptr;
  CUresult result = find_stream(handle, per_thread, &stream);
  if (result == CUDA_SUCCESS) result = refuse_wait(stream);
  if (result != CUDA_SUCCESS) return result;
  const int device = stream->device;
  result = wait_for_stream(stream);
  pools_after_synchronize(device);
  return result;
}

CUresult query(CUstream handle, bool per_thread) {
  const Guard guard;
  Stream* stream = nullptr;
  CUresult result = find_stream(handle, per_thread, &stream);
  if (result == CUDA_SUCCESS) result = refuse_wait(stream);
  if (result != CUDA_SUCCESS) return result;
  if (!is_idle(stream)) return CUDA_ERROR_NOT_READY;
  host_saw(stream, stream->submitted);
  return stream->context->sticky;
}

CUresult wait_event(CUstream handle, CUevent event_handle, unsigned flags, bool per_thread) {
  const Guard guard;
  Stream* stream = nullptr;
  Event* event = nullptr;
  CUresult result = find_for_work(handle, per_thread, &stream);
  if (result == CUDA_SUCCESS) result = find_event(event_handle, &event);
  if (result != CUDA_SUCCESS) return result;
  if (is_capturing(stream) && (flags & kExternal) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  return stream_wait_event(stream, event);
}

CUresult host_function(CUstream handle, CUhostFn function, void* data, bool per_thread) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Stream* stream = nullptr;
  const CUresult result = find_for_work(handle, per_thread, &stream);
  if (result != CUDA_SUCCESS) return result;
  Task task;
  task.kind = TaskKind::kHost;
  task.context = stream->context;
  task.host = {function, data};
  return submit_or_capture(stream, task, CU_GRAPH_NODE_TYPE_HOST);
}

CUresult callback(CUstream handle, CUstreamCallback function, void* data, unsigned flags,
                  bool per_thread) {
  if (function == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Stream* stream = nullptr;
  CUresult result = find_for_work(handle, per_thread, &stream);
  if (result == CUDA_SUCCESS && is_capturing(stream)) result = refuse_wait(stream);
  if (result != CUDA_SUCCESS) return result;
  Task task;
  task.kind = TaskKind::kCallback;
  task.context = stream->context;
  task.callback.function = function;
  task.callback.data = data;
  task.callback.stream = handle;
  return submit(stream, task);
}

template <class Value>
CUresult tell(CUstream handle, bool per_thread, Value* out, Value (*of)(const Stream*)) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Stream* stream = nullptr;
  const CUresult result = find_stream(handle, per_thread, &stream);
  if (result == CUDA_SUCCESS) *out = of(stream);
  return result;
}

int priority_of(const Stream* stream) { return stream->priority; }
unsigned flags_of(const Stream* stream) { return stream->flags; }
unsigned long long id_of(const Stream* stream) { return stream->id; }
int device_of_stream(const Stream* stream) { return stream->device; }
CUcontext context_of(const Stream* stream) { return handle_of(stream->context); }

CUresult make_stream(CUstream* out, unsigned flags, int priority) {
  if (out == nullptr || (flags & ~1u) != 0) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Stream* stream = nullptr;
  const int clamped = priority > 0                   ? 0
                      : priority < kGreatestPriority ? kGreatestPriority
                                                     : priority;
  const CUresult result = create_stream(current_context(), flags, clamped, &stream);
  if (result == CUDA_SUCCESS) *out = reinterpret_cast<CUstream>(stream);
  return result;
}

}  // namespace

// Copies and fills. The common case, an idle stream, costs no allocation.
CUresult stream_submit(CUstream handle, bool per_thread, Work work, const void* arguments,
                       size_t bytes) {
  const Guard guard;
  Stream* stream = nullptr;
  const CUresult result = find_for_work(handle, per_thread, &stream);
  if (result != CUDA_SUCCESS) return result;
  if (!is_capturing(stream) && stream->first == nullptr) {
    enter_stream(stream);
    if (stream->first == nullptr) return work(const_cast<void*>(arguments));
  }
  Task task;
  task.kind = TaskKind::kOpaque;
  task.context = stream->context;
  task.opaque.function = work;
  task.opaque.arguments = copy_arguments(arguments, bytes);
  if (task.opaque.arguments == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  return submit_or_capture(stream, task, CU_GRAPH_NODE_TYPE_MEMCPY);
}

CUresult wait_for_default_stream(bool per_thread) {
  const Guard guard;
  CUresult result = capture_forbids();
  Stream* stream = nullptr;
  if (result == CUDA_SUCCESS) result = find_stream(nullptr, per_thread, &stream);
  return result == CUDA_SUCCESS ? wait_for_stream(stream) : result;
}

CUresult context_synchronize(Context* context) {
  const Guard guard;
  const CUresult forbidden = capture_forbids();
  if (forbidden != CUDA_SUCCESS) return forbidden;
  List<uint64_t> ids;
  for (const Stream* const stream : all_streams())
    if (stream->context == context) ids.push(stream->id);
  for (const uint64_t id : ids) {
    Stream* stream = stream_by_id(id);
    if (stream == nullptr) continue;
    wait_until_idle(stream);
    stream = stream_by_id(id);
    if (stream != nullptr) host_saw(stream, stream->retired);
  }
  reap_streams();
  pools_after_synchronize(context->device);
  return context->sticky;
}

}  // namespace simgpu

using namespace simgpu;

extern "C" {

CUresult cuStreamCreate(CUstream* out, unsigned int flags) {
  SIM_ENTRY_CONTEXT(cuStreamCreate);
  return make_stream(out, flags, 0);
}
CUresult cuStreamCreateWithPriority(CUstream* out, unsigned int flags, int priority) {
  SIM_ENTRY_CONTEXT(cuStreamCreateWithPriority);
  return make_stream(out, flags, priority);
}

CUresult cuStreamDestroy_v2(CUstream handle) {
  SIM_ENTRY(cuStreamDestroy_v2);
  if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD)
    return CUDA_ERROR_INVALID_HANDLE;
  const Guard guard;
  Stream* stream = nullptr;
  const CUresult result = find_stream(handle, false, &stream);
  if (result == CUDA_SUCCESS) destroy_stream(stream);
  return result;
}
CUresult cuStreamDestroy(CUstream handle) { return cuStreamDestroy_v2(handle); }

SIM_PAIR(cuStreamSynchronize, (CUstream stream), synchronize(stream, per_thread));
SIM_PAIR(cuStreamQuery, (CUstream stream), query(stream, per_thread));
SIM_PAIR(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags),
         wait_event(stream, event, flags, per_thread));
SIM_PAIR(cuLaunchHostFunc, (CUstream stream, CUhostFn function, void* data),
         host_function(stream, function, data, per_thread));
SIM_PAIR(cuStreamAddCallback,
         (CUstream stream, CUstreamCallback function, void* data, unsigned int flags),
         callback(stream, function, data, flags, per_thread));
SIM_PAIR(cuStreamGetPriority, (CUstream stream, int* out),
         tell<int>(stream, per_thread, out, priority_of));
SIM_PAIR(cuStreamGetFlags, (CUstream stream, unsigned int* out),
         tell<unsigned>(stream, per_thread, out, flags_of));
SIM_PAIR(cuStreamGetId, (CUstream stream, unsigned long long* out),
         tell<unsigned long long>(stream, per_thread, out, id_of));
SIM_PAIR(cuStreamGetDevice, (CUstream stream, CUdevice* out),
         tell<int>(stream, per_thread, out, device_of_stream));
SIM_PAIR(cuStreamGetCtx, (CUstream stream, CUcontext* out),
         tell<CUcontext>(stream, per_thread, out, context_of));
SIM_PAIR(cuStreamGetCtx_v2, (CUstream stream, CUcontext* out, CUgreenCtx* green),
         (green != nullptr ? * green = nullptr : nullptr,
          tell<CUcontext>(stream, per_thread, out, context_of)));

}  // extern "C"
