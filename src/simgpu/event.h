// SPDX-License-Identifier: Apache-2.0
// Events: a place in a stream's work, and the moment at which it was reached.
#pragma once

#include "simgpu/stream.h"

namespace simgpu {

struct Event {
  static constexpr uint32_t kMagic = 0x45564e54;
  uint32_t magic = kMagic;
  unsigned flags = 0;
  Context* context = nullptr;
  int references = 1;
  bool recorded = false;
  uint64_t generation = 0;  // counts the records
  int64_t done_ns = -1;     // when reached; -1 while the record still queues
  Mark mark;
  List<Covered> covered;  // what the stream had waited for at the record
  Capture* capture = nullptr;
  uint64_t capture_id = 0;
  List<CUgraphNode> capture_nodes;
};

CUresult find_event(CUevent handle, Event** out);
bool event_complete(const Event* event);
CUresult record_event(Event* event, Stream* stream);
CUresult stream_wait_event(Stream* stream, Event* event);
// Blocks until reached (releases the lock meanwhile: the caller holds a reference).
void wait_for_event(Event* event);
void event_release(Event* event);

}  // namespace simgpu
