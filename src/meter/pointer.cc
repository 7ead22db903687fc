// SPDX-License-Identifier: Apache-2.0
// Memory in chunks looks like the driver's own: where a block begins and ends, its context, its
// number. Also here: uses of pointers and streams that parking must know of, namely captures,
// access by other devices, and addresses that are given to other hardware.
#include <string.h>

#include "meter/chunk.h"
#include "meter/memory.h"
#include "meter/park.h"
#include "meter/place.h"
#include "meter/real.h"
#include "meter/state.h"

namespace mete::meter {
namespace {

CUcontext context_of(uint32_t id) {
  Locked locked(process.lock);
  for (const Context& context : process.contexts)
    if (context.id == id) return context.handle;
  return nullptr;
}

template <class T>
CUresult tell(void* out, T value) {
  memcpy(out, &value, sizeof(value));
  return CUDA_SUCCESS;
}

// Answers what differs between a block in a chunk and a block of the driver; the driver answers the
// rest.
CUresult attribute_in_chunk(void* out, CUpointer_attribute attribute, CUdeviceptr pointer,
                            const ChunkBlock& found) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return tell(out, context_of(found.block.context_id));
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return tell(out, found.base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return tell(out, static_cast<size_t>(found.bytes));
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return tell(out, static_cast<unsigned long long>(found.block.serial));
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return tell(out, 1u);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return tell(out, 0ull);
    default:
      return real.cuPointerGetAttribute(out, attribute, pointer);
  }
}

template <class Call>
CUresult begin_capture(CUstream stream, Call call) {
  const CUresult result = call();
  CUcontext context = nullptr;
  if (result == CUDA_SUCCESS && real.cuCtxGetCurrent(&context) == CUDA_SUCCESS) {
    Locked locked(process.lock);
    process.captures.put(reinterpret_cast<uint64_t>(stream),
                         {reinterpret_cast<uint64_t>(context), 0});
  }
  return result;
}
template <class Call>
CUresult end_capture(CUstream stream, Call call) {
  const CUresult result = call();
  TableValue gone;
  Locked locked(process.lock);
  process.captures.remove(reinterpret_cast<uint64_t>(stream), &gone);
  return result;
}

// Access to the memory of the peer's card for the current context's device. cuCtxEnablePeerAccess
// has no effect on mapped memory, so access is set on each mapping.
CUresult change_peer(CUcontext peer, bool allowed) {
  Place place;
  if (!find_place(&place)) return CUDA_SUCCESS;
  CUcontext ignored = nullptr;
  CUdevice device = -1;
  if (real.cuCtxPushCurrent_v2(peer) != CUDA_SUCCESS) return CUDA_SUCCESS;
  const CUresult result = real.cuCtxGetDevice(&device);
  (void)real.cuCtxPopCurrent_v2(&ignored);
  const int card = result == CUDA_SUCCESS ? card_of(device) : kNoCard;
  return card == kNoCard ? CUDA_SUCCESS : set_peer(card, place.device, allowed);
}

}  // namespace
}  // namespace mete::meter

using namespace mete::meter;
using mete::abi::ParkReason;

extern "C" {

CUresult hook_cuPointerGetAttribute(void* out, CUpointer_attribute attribute, CUdeviceptr pointer) {
  ChunkBlock found{};
  if (out == nullptr || !find_chunk_block(pointer, &found))
    return real.cuPointerGetAttribute(out, attribute, pointer);
  return attribute_in_chunk(out, attribute, pointer, found);
}

CUresult hook_cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes,
                                     void** out, CUdeviceptr pointer) {
  const CUresult result = real.cuPointerGetAttributes(count, attributes, out, pointer);
  ChunkBlock found{};
  if (result != CUDA_SUCCESS || !find_chunk_block(pointer, &found)) return result;
  for (unsigned int i = 0; i < count; ++i)
    if (out[i] != nullptr) (void)attribute_in_chunk(out[i], attributes[i], pointer, found);
  return result;
}

CUresult hook_cuPointerSetAttribute(const void* value, CUpointer_attribute attribute,
                                    CUdeviceptr pointer) {
  // Network adapters ask for this before they write into a card's memory directly.
  if (attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) note_obstacle(ParkReason::kShared, 1);
  return real.cuPointerSetAttribute(value, attribute, pointer);
}

CUresult hook_cuMemGetHandleForAddressRange(void* out, CUdeviceptr pointer, size_t bytes,
                                            CUmemRangeHandleType type, unsigned long long flags) {
  const CUresult result = real.cuMemGetHandleForAddressRange(out, pointer, bytes, type, flags);
  if (result == CUDA_SUCCESS) note_obstacle(ParkReason::kShared, 1);
  return result;
}

CUresult hook_cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr pointer) {
  ChunkBlock found{};
  if (!find_chunk_block(pointer, &found)) return real.cuMemGetAddressRange_v2(base, bytes, pointer);
  if (base != nullptr) *base = found.base;
  if (bytes != nullptr) *bytes = found.bytes;
  return CUDA_SUCCESS;
}

CUresult hook_cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  const CUresult result = real.cuCtxEnablePeerAccess(peer, flags);
  return result == CUDA_SUCCESS ? change_peer(peer, true) : result;
}
CUresult hook_cuCtxDisablePeerAccess(CUcontext peer) {
  const CUresult result = real.cuCtxDisablePeerAccess(peer);
  return result == CUDA_SUCCESS ? change_peer(peer, false) : result;
}

CUresult hook_cuStreamBeginCapture(CUstream stream) {
  return begin_capture(stream, [&] { return real.cuStreamBeginCapture(stream); });
}
CUresult hook_cuStreamBeginCapture_ptsz(CUstream stream) {
  return begin_capture(stream, [&] { return real.cuStreamBeginCapture_ptsz(stream); });
}
CUresult hook_cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return begin_capture(stream, [&] { return real.cuStreamBeginCapture_v2(stream, mode); });
}
CUresult hook_cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
  return begin_capture(stream, [&] { return real.cuStreamBeginCapture_v2_ptsz(stream, mode); });
}
CUresult hook_cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* nodes,
                                          const CUgraphEdgeData* edges, size_t count,
                                          CUstreamCaptureMode mode) {
  return begin_capture(stream, [&] {
    return real.cuStreamBeginCaptureToGraph(stream, graph, nodes, edges, count, mode);
  });
}
CUresult hook_cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph,
                                               const CUgraphNode* nodes,
                                               const CUgraphEdgeData* edges, size_t count,
                                               CUstreamCaptureMode mode) {
  return begin_capture(stream, [&] {
    return real.cuStreamBeginCaptureToGraph_ptsz(stream, graph, nodes, edges, count, mode);
  });
}
CUresult hook_cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return end_capture(stream, [&] { return real.cuStreamEndCapture(stream, graph); });
}
CUresult hook_cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) {
  return end_capture(stream, [&] { return real.cuStreamEndCapture_ptsz(stream, graph); });
}
}
