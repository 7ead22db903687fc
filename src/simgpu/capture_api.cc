// SPDX-License-Identifier: Apache-2.0
// The entry points of stream capture.
#include "simgpu/capture.h"
#include "simgpu/stream_pair.h"

namespace simgpu {
namespace {

CUresult begin(CUstream handle, CUstreamCaptureMode mode, Graph* graph, const CUgraphNode* after,
               size_t count, bool per_thread) {
  const Guard guard;
  Stream* stream = nullptr;
  const CUresult result = find_stream(handle, per_thread, &stream);
  return result == CUDA_SUCCESS ? begin_capture(stream, mode, graph, after, count) : result;
}

CUresult begin_in(CUstream handle, CUgraph graph_handle, const CUgraphNode* after, size_t count,
                  CUstreamCaptureMode mode, bool per_thread) {
  Graph* const graph = find_graph(graph_handle);
  if (graph == nullptr || (after == nullptr && count != 0)) return CUDA_ERROR_INVALID_VALUE;
  return begin(handle, mode, graph, after, count, per_thread);
}

CUresult end(CUstream handle, CUgraph* out, bool per_thread) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Stream* stream = nullptr;
  const CUresult result = find_stream(handle, per_thread, &stream);
  return result == CUDA_SUCCESS ? end_capture(stream, out) : result;
}

struct InfoOut {
  CUstreamCaptureStatus* status;
  cuuint64_t* id;
  CUgraph* graph;
  const CUgraphNode** after;
  const CUgraphEdgeData** edges;
  size_t* count;
};

CUresult info(CUstream handle, const InfoOut& out, bool per_thread) {
  if (out.status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Stream* stream = nullptr;
  CUresult result = find_stream(handle, per_thread, &stream);
  if (result == CUDA_SUCCESS) result = refuse_legacy(stream);
  if (result != CUDA_SUCCESS) return result;
  const Capture* const capture = stream->capture;
  *out.status = capture == nullptr ? CU_STREAM_CAPTURE_STATUS_NONE : capture->status;
  if (*out.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  if (out.id != nullptr) *out.id = capture->id;
  if (out.graph != nullptr) *out.graph = handle_of(capture->graph);
  if (out.after != nullptr) *out.after = stream->capture_after.begin();
  if (out.edges != nullptr) *out.edges = nullptr;  // all edges are plain
  if (out.count != nullptr) *out.count = stream->capture_after.size();
  return CUDA_SUCCESS;
}

CUresult is_captured(CUstream handle, CUstreamCaptureStatus* out, bool per_thread) {
  return info(handle, {out, nullptr, nullptr, nullptr, nullptr, nullptr}, per_thread);
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

extern "C" {

SIM_PAIR(cuStreamBeginCapture, (CUstream stream),
         begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL, nullptr, nullptr, 0, per_thread));
SIM_PAIR(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode),
         begin(stream, mode, nullptr, nullptr, 0, per_thread));
SIM_PAIR(cuStreamBeginCaptureToGraph,
         (CUstream stream, CUgraph graph, const CUgraphNode* after, const CUgraphEdgeData*,
          size_t count, CUstreamCaptureMode mode),
         begin_in(stream, graph, after, count, mode, per_thread));
SIM_PAIR(cuStreamEndCapture, (CUstream stream, CUgraph* out), end(stream, out, per_thread));
SIM_PAIR(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus* out),
         is_captured(stream, out, per_thread));
SIM_PAIR(cuStreamGetCaptureInfo, (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id),
         info(stream, {status, id, nullptr, nullptr, nullptr, nullptr}, per_thread));
SIM_PAIR(cuStreamGetCaptureInfo_v2,
         (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
          const CUgraphNode** after, size_t* count),
         info(stream, {status, id, graph, after, nullptr, count}, per_thread));
SIM_PAIR(cuStreamGetCaptureInfo_v3,
         (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
          const CUgraphNode** after, const CUgraphEdgeData** edges, size_t* count),
         info(stream, {status, id, graph, after, edges, count}, per_thread));

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  SIM_ENTRY(cuThreadExchangeStreamCaptureMode);
  const Guard guard;
  return exchange_mode(mode);
}

}  // extern "C"
