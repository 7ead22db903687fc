// SPDX-License-Identifier: Apache-2.0
// The memory of mem-alloc nodes. Each graph has segments of addresses into which its nodes are
// placed, one behind the other, when they are added. A launch backs the segments it needs, in steps
// of 32 MiB: with the memory of an idle segment, else with new memory. Nothing is returned before a
// trim: "reserved" is all mapped memory, in whichever segment.
#include "simgpu/graph.h"
#include "simgpu/pool.h"

namespace simgpu {

struct GraphAlloc {
  CUdeviceptr address;
  size_t bytes;
  bool live;
};

struct GraphUnit {
  Range range = {};
  bool mapped = false;
};

struct GraphSegment {
  int device = 0;
  CUdeviceptr base = 0;
  size_t window = 0;  // bytes of addresses
  size_t filled = 0;  // bytes given to nodes
  bool orphan = false;
  size_t live = 0;
  List<GraphUnit*> units;  // as far as filled
  Mark last_use;
  bool wanted = false;  // while a launch collects memory
  bool failed = false;  // a launch ran out of memory half way: its memory stays until trimmed
  List<GraphAlloc> allocs;
  GraphSegment* next = nullptr;
};

namespace {

struct GraphMemory {
  GraphSegment* segments = nullptr;
  uint64_t reserved = 0;
  uint64_t reserved_high = 0;
  uint64_t used_high = 0;
};

constexpr size_t kCell = 512;
constexpr size_t kWindow = 8ull << 30;  // addresses of a segment: room for later nodes

GraphMemory* memory_of(int device) {
  Device& card = driver.devices[device];
  if (card.graph_memory == nullptr) card.graph_memory = make<GraphMemory>();
  return static_cast<GraphMemory*>(card.graph_memory);
}

GraphSegment* segment_of(CUdeviceptr address) {
  for (int device = 0; device < driver.device_count; device++) {
    const GraphMemory* const memory =
        static_cast<const GraphMemory*>(driver.devices[device].graph_memory);
    if (memory == nullptr) continue;
    for (GraphSegment* segment = memory->segments; segment != nullptr; segment = segment->next)
      if (address >= segment->base && address < segment->base + segment->window) return segment;
  }
  return nullptr;
}

GraphAlloc* alloc_at(GraphSegment* segment, CUdeviceptr address) {
  if (segment == nullptr) return nullptr;
  for (GraphAlloc& alloc : segment->allocs)
    if (alloc.address == address) return &alloc;
  return nullptr;
}

// Addresses resolve from the moment they are returned, so that copies and fills can be captured;
// without a launch there is nothing behind them. A block that continues in the next unit is
// reported up to the end of this one: the rest has a backing of its own.
bool find_graph_block(Range* range, CUdeviceptr p, Block* out) {
  for (const GraphAlloc& alloc : static_cast<const GraphSegment*>(range->owner)->allocs) {
    if (p < alloc.address || p >= alloc.address + alloc.bytes) continue;
    const CUdeviceptr block_end = alloc.address + alloc.bytes;
    const CUdeviceptr range_end = range->base + range->bytes;
    *out = {alloc.address, (block_end < range_end ? block_end : range_end) - alloc.address};
    return true;
  }
  return false;
}

CUresult release_graph_block(Range*, CUdeviceptr p) { return graph_memory_free(p, nullptr); }

constexpr RangeOps kGraphOps = {find_graph_block, release_graph_block};

constexpr uint64_t kNoPiece = ~0ull;  // no piece of the server has this number

bool add_unit(GraphSegment* segment) {
  GraphUnit* const unit = make<GraphUnit>();
  if (unit == nullptr) return false;
  Range& range = unit->range;
  range.base = segment->base + segment->units.size() * kGrowthStep;
  range.bytes = kGrowthStep;
  range.asked = kGrowthStep;
  range.kind = RangeKind::kGraph;
  range.device = segment->device;
  range.context = driver.devices[segment->device].primary;
  range.piece = kNoPiece;
  range.readable = range.writable = ~0u;
  range.ops = &kGraphOps;
  range.owner = segment;
  if (!segment->units.push(unit)) {
    destroy(unit);
    return false;
  }
  range_add(&range);
  return true;
}

void map_unit(GraphSegment* segment, size_t i, uint64_t piece) {
  segment->units[i]->range.piece = piece;
  segment->units[i]->mapped = true;
}

uint64_t unmap_unit(GraphSegment* segment, size_t i) {
  const uint64_t piece = segment->units[i]->range.piece;
  segment->units[i]->range.piece = kNoPiece;
  segment->units[i]->mapped = false;
  return piece;
}

bool has_mapped(const GraphSegment* segment) {
  for (size_t i = 0; i < segment->units.size(); i++)
    if (segment->units[i]->mapped) return true;
  return false;
}

// An orphan without memory is useless.
void drop_empty_orphans(GraphMemory* memory) {
  for (GraphSegment** link = &memory->segments; *link != nullptr;) {
    GraphSegment* const segment = *link;
    if (!segment->orphan || segment->live != 0 || has_mapped(segment)) {
      link = &segment->next;
      continue;
    }
    *link = segment->next;
    for (GraphUnit* const unit : segment->units) {
      range_remove(&unit->range);
      destroy(unit);
    }
    va_give(segment->base, segment->window);
    destroy(segment);
  }
}

// Whether the segment's memory may serve a launch in `stream` (null: may be returned to the card).
// The work of its last launch must have been done; beyond that the stream's order is enough.
bool is_spare(const GraphSegment* segment, const Stream* stream) {
  if (segment->live != 0 || segment->wanted) return false;
  if (segment->failed && stream != nullptr) return false;
  const Mark& mark = segment->last_use;
  if (mark.stream == 0) return true;
  const Stream* const last = stream_by_id(mark.stream);
  if (last == nullptr) return true;
  if (last->retired < mark.sequence) return false;
  return (stream != nullptr && covers(stream, mark)) || is_complete(mark);
}

bool take_spare(GraphMemory* memory, const Stream* stream, uint64_t* piece) {
  for (GraphSegment* segment = memory->segments; segment != nullptr; segment = segment->next) {
    if (!is_spare(segment, stream)) continue;
    for (size_t i = segment->units.size(); i-- > 0;) {
      if (!segment->units[i]->mapped) continue;
      *piece = unmap_unit(segment, i);
      return true;
    }
  }
  return false;
}

void collect_segments(const Graph* graph, List<GraphSegment*>* out) {
  for (const GraphNode* const node : graph->nodes) {
    if (node->child != nullptr) collect_segments(node->child, out);
    if (node->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC) continue;
    GraphSegment* const segment = segment_of(node->alloc.dptr);
    if (segment != nullptr && !out->contains(segment)) out->push(segment);
  }
}

// "Used" is what graphs hold, in steps, whether a launch needs it at this moment or not.
uint64_t used_now(const GraphMemory* memory) {
  uint64_t used = 0;
  for (const GraphSegment* segment = memory->segments; segment != nullptr; segment = segment->next)
    for (const GraphUnit* const unit : segment->units)
      if (unit->mapped && (!segment->orphan || segment->live != 0)) used += kGrowthStep;
  return used;
}

CUresult map_segment(GraphSegment* segment, const Stream* stream) {
  GraphMemory* const memory = memory_of(segment->device);
  for (size_t i = 0; i < segment->units.size(); i++) {
    if (segment->units[i]->mapped) continue;
    uint64_t piece = 0;
    if (!take_spare(memory, stream, &piece)) {
      const CUresult result = phys_take(segment->device, kGrowthStep, MemoryClass::kGraph, &piece);
      if (result != CUDA_SUCCESS) return result;
      memory->reserved += kGrowthStep;
      if (memory->reserved > memory->reserved_high) memory->reserved_high = memory->reserved;
    }
    map_unit(segment, i, piece);
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult graph_memory_place(Graph* graph, int device, size_t bytes, CUdeviceptr* out) {
  GraphMemory* const memory = memory_of(device);
  if (memory == nullptr || bytes > 1ull << 46) return CUDA_ERROR_OUT_OF_MEMORY;
  const size_t cells = (bytes + kCell - 1) / kCell * kCell;
  GraphSegment* segment = nullptr;
  for (GraphSegment* const s : graph->segments)
    if (s->device == device && s->filled + cells <= s->window) segment = s;
  if (segment == nullptr) {
    segment = make<GraphSegment>();
    if (segment == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    segment->device = device;
    segment->window =
        cells > kWindow ? (cells + kGrowthStep - 1) / kGrowthStep * kGrowthStep : kWindow;
    segment->base = va_take(segment->window, 0, 0);
    if (segment->base == 0 || !graph->segments.push(segment)) {
      destroy(segment);
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    segment->next = memory->segments;
    memory->segments = segment;
  }
  while (segment->units.size() * kGrowthStep < segment->filled + cells)
    if (!add_unit(segment)) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = segment->base + segment->filled;
  segment->filled += cells;
  segment->allocs.push({*out, bytes, false});
  return CUDA_SUCCESS;
}

CUresult graph_memory_map(const GraphExec* exec, Stream* stream) {
  List<GraphSegment*> segments;
  collect_segments(exec->copy, &segments);
  if (segments.empty()) return CUDA_SUCCESS;
  for (GraphSegment* const segment : segments) segment->wanted = true;
  CUresult result = CUDA_SUCCESS;
  for (GraphSegment* const segment : segments) {
    if (result == CUDA_SUCCESS) result = map_segment(segment, stream);
    segment->failed = result != CUDA_SUCCESS;
  }
  for (GraphSegment* const segment : segments) segment->wanted = false;
  for (int device = 0; device < driver.device_count; device++)
    if (driver.devices[device].graph_memory != nullptr) drop_empty_orphans(memory_of(device));
  for (int device = 0; device < driver.device_count; device++) {
    GraphMemory* const memory = static_cast<GraphMemory*>(driver.devices[device].graph_memory);
    if (memory != nullptr && used_now(memory) > memory->used_high)
      memory->used_high = used_now(memory);
  }
  return result;
}

bool graph_memory_knows(CUdeviceptr address) {
  return alloc_at(segment_of(address), address) != nullptr;
}

bool graph_memory_is_live(CUdeviceptr address) {
  const GraphAlloc* const alloc = alloc_at(segment_of(address), address);
  return alloc != nullptr && alloc->live;
}

void graph_memory_start(CUdeviceptr address, Stream* stream) {
  GraphSegment* const segment = segment_of(address);
  GraphAlloc* const alloc = alloc_at(segment, address);
  if (alloc == nullptr || alloc->live) return;
  alloc->live = true;
  segment->live++;
  segment->last_use = {stream->id, stream->submitted};
}

CUresult graph_memory_free(CUdeviceptr address, Stream* stream) {
  GraphSegment* const segment = segment_of(address);
  GraphAlloc* const alloc = alloc_at(segment, address);
  if (alloc == nullptr || !alloc->live) return CUDA_ERROR_INVALID_VALUE;
  alloc->live = false;
  segment->live--;
  if (stream != nullptr) segment->last_use = {stream->id, enter_stream(stream)};
  return CUDA_SUCCESS;
}

void graph_memory_orphan(Graph* graph) {
  for (GraphSegment* const segment : graph->segments) segment->orphan = true;
  graph->segments.clear();
}

// The context ends; if it was the last of its card, nothing of the graph memory is left.
void graphs_end(Context* context) {
  for (const Context* c = driver.contexts; c != nullptr; c = c->next)
    if (c != context && c->device == context->device && !c->ended) return;
  GraphMemory* const memory = static_cast<GraphMemory*>(device_of(context)->graph_memory);
  if (memory == nullptr) return;
  for (GraphSegment* segment = memory->segments; segment != nullptr; segment = segment->next) {
    for (GraphAlloc& alloc : segment->allocs) alloc.live = false;
    segment->live = 0;
    for (size_t i = 0; i < segment->units.size(); i++)
      if (segment->units[i]->mapped) phys_give(unmap_unit(segment, i));
  }
  memory->reserved = 0;
  drop_empty_orphans(memory);
}

}  // namespace simgpu

using namespace simgpu;

extern "C" {

CUresult cuDeviceGraphMemTrim(CUdevice device) {
  SIM_ENTRY(cuDeviceGraphMemTrim);
  if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
  const Guard guard;
  GraphMemory* const memory = memory_of(device);
  if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  for (GraphSegment* segment = memory->segments; segment != nullptr; segment = segment->next) {
    if (!is_spare(segment, nullptr)) continue;
    segment->failed = false;
    for (size_t i = 0; i < segment->units.size(); i++) {
      if (!segment->units[i]->mapped) continue;
      phys_give(unmap_unit(segment, i));
      memory->reserved -= kGrowthStep;
    }
  }
  drop_empty_orphans(memory);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute,
                                      void* value) {
  SIM_ENTRY(cuDeviceGetGraphMemAttribute);
  if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
  const Guard guard;
  const GraphMemory* const memory = memory_of(device);
  if (value == nullptr || memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  cuuint64_t* const out = static_cast<cuuint64_t*>(value);
  switch (attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
      *out = used_now(memory);
      return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
      *out = memory->used_high;
      return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
      *out = memory->reserved;
      return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
      *out = memory->reserved_high;
      return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute,
                                      void* value) {
  SIM_ENTRY(cuDeviceSetGraphMemAttribute);
  if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
  const Guard guard;
  GraphMemory* const memory = memory_of(device);
  if (value == nullptr || memory == nullptr || *static_cast<const cuuint64_t*>(value) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
    memory->used_high = used_now(memory);
  else if (attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
    memory->reserved_high = memory->reserved;
  else
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

}  // extern "C"
