// SPDX-License-Identifier: Apache-2.0
// See capture.h. A capture has one origin stream; others join by waiting for an event recorded in
// it, and must be joined back (their last node is before the origin's last) when it ends. A
// forbidden call invalidates the capture, which then only ends with an error.
#include "simgpu/capture.h"

#include "abi/old_glibc.h"
#include "simgpu/event.h"

namespace simgpu {
namespace {

// Never destroyed: the program's exit handlers may still use it.
List<Capture*>& captures() {
  static constinit List<Capture*>* list = nullptr;
  if (list == nullptr) list = make<List<Capture*>>();
  return *list;
}
constinit uint64_t next_capture_id = 1;
thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

bool is_blocking(const Stream* stream) {
  return !stream->legacy && (stream->flags & CU_STREAM_NON_BLOCKING) == 0;
}

void enter_capture(Stream* stream, Capture* capture) {
  stream->capture = capture;
  stream->capture_after.clear();
  capture->members.push(stream);
}

void drop_capture(Capture* capture) {
  for (Stream* const member : capture->members) {
    member->capture = nullptr;
    member->capture_after.clear();
  }
  captures().remove(capture);
  destroy(capture);
}

// Whether `node` is `last` or comes before it.
bool reaches(GraphNode* node, GraphNode* last, int depth = 0) {
  if (node == last) return true;
  if (depth > 1000) return false;
  for (GraphNode* const next : node->before)
    if (reaches(next, last, depth + 1)) return true;
  return false;
}

// Every last node of a joined stream must be before a last node of the origin.
bool all_joined(const Capture* capture) {
  for (const Stream* const member : capture->members) {
    if (member == capture->origin) continue;
    for (const CUgraphNode tail : member->capture_after) {
      bool joined = false;
      for (const CUgraphNode end : capture->origin->capture_after)
        joined = joined || reaches(find_node(tail), find_node(end));
      if (!joined) return false;
    }
  }
  return true;
}

}  // namespace

Capture* capture_by_id(uint64_t id) {
  if (id == 0) return nullptr;
  for (Capture* const capture : captures())
    if (capture->id == id) return capture;
  return nullptr;
}

void invalidate(Capture* capture) { capture->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED; }

CUresult capture_node(Stream* stream, GraphNode* node) {
  Capture* const capture = stream->capture;
  CUresult result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (capture->status == CU_STREAM_CAPTURE_STATUS_ACTIVE)
    result =
        add_node(capture->graph, stream->capture_after.begin(), stream->capture_after.size(), node);
  if (result != CUDA_SUCCESS) {
    task_release(node->task);
    destroy(node);
    return result;
  }
  const CUgraphNode handle = handle_of(node);
  stream->capture_after.assign(&handle, 1);
  return CUDA_SUCCESS;
}

CUresult capture_task(Stream* stream, const Task& task, CUgraphNodeType type) {
  GraphNode* const node = make<GraphNode>();
  if (node == nullptr) {
    task_release(task);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  node->type = type;
  node->task = task;
  return capture_node(stream, node);
}

CUresult refuse_wait(Stream* stream) {
  if (is_capturing(stream)) {
    invalidate(stream->capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return refuse_legacy(stream);
}

CUresult refuse_legacy(Stream* stream) {
  if (!stream->legacy || captures().empty()) return CUDA_SUCCESS;
  CUresult result = CUDA_SUCCESS;
  for (Capture* const capture : captures()) {
    for (const Stream* const member : capture->members) {
      if (member->context != stream->context || !is_blocking(member)) continue;
      invalidate(capture);
      result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
  }
  return result;
}

// Global: no capture of any thread that began as global, none of this thread that is not relaxed.
// Thread-local: none of this thread that is not relaxed. Relaxed: everything is allowed.
CUresult capture_forbids() {
  if (captures().empty() || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  CUresult result = CUDA_SUCCESS;
  const int thread = mete::abi::thread_id();
  for (Capture* const capture : captures()) {
    const bool mine = capture->thread == thread && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    const bool global = thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                        capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!mine && !global) continue;
    invalidate(capture);
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

CUresult join_capture(Stream* stream, Event* event) {
  Capture* const capture = capture_by_id(event->capture_id);
  if (capture == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (capture->status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (stream->legacy) {
    invalidate(capture);
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  if (stream->capture != nullptr && stream->capture != capture) {
    invalidate(capture);
    invalidate(stream->capture);
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  if (stream->capture == nullptr) enter_capture(stream, capture);
  for (const CUgraphNode node : event->capture_nodes)
    if (!stream->capture_after.contains(node)) stream->capture_after.push(node);
  return CUDA_SUCCESS;
}

CUresult begin_capture(Stream* stream, CUstreamCaptureMode mode, Graph* graph,
                       const CUgraphNode* after, size_t count) {
  if (static_cast<unsigned>(mode) > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  if (stream->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  Capture* const capture = make<Capture>();
  if (capture == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  capture->own_graph = graph == nullptr;
  capture->graph = graph != nullptr ? graph : make_graph(stream->context);
  if (capture->graph == nullptr || !captures().push(capture)) {
    destroy(capture);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  capture->id = next_capture_id++;
  capture->mode = mode;
  capture->thread = mete::abi::thread_id();
  capture->origin = stream;
  enter_capture(stream, capture);
  stream->capture_after.assign(after, count);
  return CUDA_SUCCESS;
}

CUresult end_capture(Stream* stream, CUgraph* out) {
  Capture* const capture = stream->capture;
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != mete::abi::thread_id())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  CUresult result = CUDA_SUCCESS;
  if (capture->status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  else if (!all_joined(capture))
    result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  *out = nullptr;
  if (result == CUDA_SUCCESS)
    *out = handle_of(capture->graph);
  else if (capture->own_graph)
    destroy_graph(capture->graph);
  drop_capture(capture);
  return result;
}

CUresult exchange_mode(CUstreamCaptureMode* mode) {
  if (mode == nullptr || static_cast<unsigned>(*mode) > CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_ERROR_INVALID_VALUE;
  const CUstreamCaptureMode old = thread_mode;
  thread_mode = *mode;
  *mode = old;
  return CUDA_SUCCESS;
}

void leave_capture(Stream* stream) {
  Capture* const capture = stream->capture;
  if (capture == nullptr) return;
  if (capture->origin == stream) {
    if (capture->own_graph) destroy_graph(capture->graph);
    drop_capture(capture);
    return;
  }
  invalidate(capture);
  capture->members.remove(stream);
  stream->capture = nullptr;
}

}  // namespace simgpu
