// SPDX-License-Identifier: Apache-2.0
// Stream capture: while a stream captures, its operations become nodes of a graph.
#pragma once

#include "simgpu/graph.h"
#include "simgpu/stream.h"

namespace simgpu {

struct Capture {
  uint64_t id = 0;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  int thread = 0;
  bool own_graph = true;
  Graph* graph = nullptr;
  Stream* origin = nullptr;
  List<Stream*> members;
};

// The stream's capture is active: new work becomes nodes.
inline bool is_capturing(const Stream* stream) { return stream->capture != nullptr; }
void invalidate(Capture* capture);
// Appends a node to the stream's capture. Takes over `node` (destroyed on failure).
CUresult capture_node(Stream* stream, GraphNode* node);
CUresult capture_task(Stream* stream, const Task& task, CUgraphNodeType type);
// For operations that a capturing stream forbids (waiting, querying): 900, and the capture is
// invalid.
CUresult refuse_wait(Stream* stream);
// Work in the legacy stream while a blocking stream captures: 906.
CUresult refuse_legacy(Stream* stream);
// For cuMemAlloc and other calls that a capture must not contain: 900 unless allowed.
CUresult capture_forbids();
// An event of a capture: waiting for it joins the capture.
CUresult join_capture(Stream* stream, Event* event);
CUresult begin_capture(Stream* stream, CUstreamCaptureMode mode, Graph* graph,
                       const CUgraphNode* after, size_t count);
CUresult end_capture(Stream* stream, CUgraph* out);
CUresult exchange_mode(CUstreamCaptureMode* mode);
// The live capture of this number, or null.
Capture* capture_by_id(uint64_t id);
// The stream is being destroyed.
void leave_capture(Stream* stream);

}  // namespace simgpu
