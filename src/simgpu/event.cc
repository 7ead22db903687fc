// SPDX-License-Identifier: Apache-2.0
// Events and their entry points. A record that queues behind a host function is not reached until
// the driver's thread gets there; waiting for it waits for that. Each record has a generation, so
// that a wait refers to the record at the time of the call, not to a later one.
#include "simgpu/event.h"

#include "simgpu/capture.h"
#include "simgpu/pool.h"

namespace simgpu {
namespace {

Event* event_of(CUevent handle) {
  Event* const event = reinterpret_cast<Event*>(handle);
  return event != nullptr && event->magic == Event::kMagic ? event : nullptr;
}

CUresult record(CUevent handle, CUstream stream_handle, bool per_thread) {
  const Guard guard;
  Event* event = nullptr;
  Stream* stream = nullptr;
  CUresult result = find_event(handle, &event);
  if (result == CUDA_SUCCESS) result = find_stream(stream_handle, per_thread, &stream);
  if (result == CUDA_SUCCESS) result = refuse_legacy(stream);
  return result == CUDA_SUCCESS ? record_event(event, stream) : result;
}

}  // namespace

CUresult find_event(CUevent handle, Event** out) {
  *out = event_of(handle);
  return *out == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

void event_release(Event* event) {
  if (--event->references != 0) return;
  event->magic = 0;
  destroy(event);
}

bool event_complete(const Event* event) {
  return !event->recorded || (event->done_ns >= 0 && now_ns() >= event->done_ns);
}

CUresult record_event(Event* event, Stream* stream) {
  if (is_capturing(stream)) {
    if (stream->capture->status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
      return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    event->capture_id = stream->capture->id;
    event->capture_nodes.assign(stream->capture_after.begin(), stream->capture_after.size());
    return CUDA_SUCCESS;
  }
  event->capture_id = 0;
  event->recorded = true;
  event->generation++;
  event->done_ns = -1;
  Task task;
  task.kind = TaskKind::kRecord;
  task.record.event = event;
  task.record.generation = event->generation;
  event->references++;
  const CUresult result = submit(stream, task);
  event->mark = {stream->id, stream->submitted};
  event->covered.assign(stream->covered.begin(), stream->covered.size());
  return result;
}

CUresult stream_wait_event(Stream* stream, Event* event) {
  if (event->capture_id != 0) return join_capture(stream, event);
  if (is_capturing(stream)) {
    invalidate(stream->capture);
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (!event->recorded || event->mark.stream == stream->id) return CUDA_SUCCESS;
  for (const Covered& c : event->covered) cover(stream, c.mark);
  if (event->done_ns >= 0 && now_ns() >= event->done_ns)
    cover(stream, event->mark);
  else
    wait_for_mark(stream, event->mark, event->done_ns);
  return CUDA_SUCCESS;
}

void wait_for_event(Event* event) {
  const uint64_t generation = event->generation;
  while (event->recorded && event->done_ns < 0 && event->generation == generation)
    wait_for_change();
  if (event->recorded && event->done_ns > now_ns()) wait_until(event->done_ns);
}

// The host has seen the event: its stream's work up to the record, and everything that this had
// waited for.
static void host_saw_event(Event* event) {
  if (!event->recorded) return;
  Stream* const stream = stream_by_id(event->mark.stream);
  if (stream != nullptr) host_saw(stream, event->mark.sequence);
  for (const Covered& c : event->covered) {
    Stream* const other = stream_by_id(c.mark.stream);
    if (other != nullptr) host_saw(other, c.mark.sequence);
  }
}

}  // namespace simgpu

using namespace simgpu;

extern "C" {

CUresult cuEventCreate(CUevent* out, unsigned int flags) {
  SIM_ENTRY_CONTEXT(cuEventCreate);
  if (out == nullptr || (flags & ~7u) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CU_EVENT_INTERPROCESS) != 0 && (flags & CU_EVENT_DISABLE_TIMING) == 0)
    return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Event* const event = make<Event>();
  if (event == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  event->flags = flags;
  event->context = current_context();
  *out = reinterpret_cast<CUevent>(event);
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent handle) {
  SIM_ENTRY(cuEventDestroy_v2);
  const Guard guard;
  Event* event = nullptr;
  const CUresult result = find_event(handle, &event);
  if (result == CUDA_SUCCESS) event_release(event);
  return result;
}
CUresult cuEventDestroy(CUevent handle) { return cuEventDestroy_v2(handle); }

CUresult cuEventRecord(CUevent event, CUstream stream) {
  SIM_ENTRY_CONTEXT(cuEventRecord);
  return record(event, stream, false);
}
CUresult cuEventRecord_ptsz(CUevent event, CUstream stream) {
  SIM_ENTRY_CONTEXT(cuEventRecord_ptsz);
  return record(event, stream, true);
}

CUresult cuEventQuery(CUevent handle) {
  SIM_ENTRY(cuEventQuery);
  const Guard guard;
  Event* event = nullptr;
  const CUresult result = find_event(handle, &event);
  if (result != CUDA_SUCCESS) return result;
  if (Capture* const capture = capture_by_id(event->capture_id); capture != nullptr) {
    invalidate(capture);
    return CUDA_ERROR_CAPTURED_EVENT;
  }
  if (!event_complete(event)) return CUDA_ERROR_NOT_READY;
  host_saw_event(event);
  return CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent handle) {
  SIM_ENTRY(cuEventSynchronize);
  const Guard guard;
  Event* event = nullptr;
  const CUresult result = find_event(handle, &event);
  if (result != CUDA_SUCCESS) return result;
  if (Capture* const capture = capture_by_id(event->capture_id); capture != nullptr) {
    invalidate(capture);
    return CUDA_ERROR_CAPTURED_EVENT;
  }
  event->references++;
  wait_for_event(event);
  host_saw_event(event);
  pools_after_synchronize(event->context->device);
  event_release(event);
  return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  SIM_ENTRY(cuEventElapsedTime_v2);
  if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Event* from = nullptr;
  Event* to = nullptr;
  CUresult result = find_event(start, &from);
  if (result == CUDA_SUCCESS) result = find_event(end, &to);
  if (result != CUDA_SUCCESS) return result;
  if (((from->flags | to->flags) & CU_EVENT_DISABLE_TIMING) != 0 || !from->recorded ||
      !to->recorded)
    return CUDA_ERROR_INVALID_HANDLE;
  if (!event_complete(from) || !event_complete(to)) return CUDA_ERROR_NOT_READY;
  *milliseconds = static_cast<float>(to->done_ns - from->done_ns) / 1e6f;
  return CUDA_SUCCESS;
}
CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return cuEventElapsedTime_v2(milliseconds, start, end);
}

}  // extern "C"
