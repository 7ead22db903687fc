// SPDX-License-Identifier: Apache-2.0
// Batches of copies. All are checked before the first is submitted: a batch with a mistake does
// nothing. Copies of a batch may run in any order, so they are submitted one after the other. A
// source that must be read at the call is staged behind its task.
#include <stdlib.h>

#include <initializer_list>

#include "simgpu/copy.h"
#include "simgpu/state.h"

namespace simgpu {
namespace {

constexpr size_t kNone = ~size_t{0};  // the failure is not of a single copy

// Reports which copy of the batch failed, if the caller passed a place for it.
CUresult fail(size_t* index, size_t at, CUresult result) {
  if (index != nullptr && result != CUDA_SUCCESS) *index = at;
  return result;
}

CUresult run_3d(void* arguments) { return copy_3d(static_cast<CUDA_MEMCPY3D*>(arguments)); }

// A copy whose source was read when the call was made: the bytes lie behind it.
struct Staged {
  CUDA_MEMCPY3D box;
  char bytes[];
};
CUresult run_staged(void* arguments) {
  Staged* staged = static_cast<Staged*>(arguments);
  staged->box.srcHost = staged->bytes;
  return copy_3d(&staged->box);
}

CUresult submit_staged(const CUDA_MEMCPY3D& what, CUstream stream, bool per_thread) {
  const size_t bytes = what.WidthInBytes * what.Height * what.Depth;
  Staged* staged = static_cast<Staged*>(malloc(sizeof(Staged) + bytes));
  if (staged == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  CUDA_MEMCPY3D read = what;
  read.dstMemoryType = CU_MEMORYTYPE_HOST;
  read.dstHost = staged->bytes;
  read.dstXInBytes = read.dstY = read.dstZ = 0;
  read.dstPitch = what.WidthInBytes;
  read.dstHeight = what.Height;
  staged->box = what;
  staged->box.srcMemoryType = CU_MEMORYTYPE_HOST;
  staged->box.srcXInBytes = staged->box.srcY = staged->box.srcZ = 0;
  staged->box.srcPitch = what.WidthInBytes;
  staged->box.srcHeight = what.Height;
  CUresult result = copy_3d(&read);
  if (result == CUDA_SUCCESS) {
    result = stream_submit(stream, per_thread, run_staged, staged, sizeof(Staged) + bytes);
  }
  free(staged);
  return result;
}

CUresult submit(const CUDA_MEMCPY3D& what, CUmemcpySrcAccessOrder order, CUstream stream,
                bool per_thread) {
  if (order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL) {
    return submit_staged(what, stream, per_thread);
  }
  return stream_submit(stream, per_thread, run_3d, &what, sizeof what);
}

bool order_ok(CUmemcpySrcAccessOrder order) {
  return order >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM && order <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

// The legacy default stream has no batches.
bool stream_ok(CUstream stream, bool per_thread) {
  return stream != CU_STREAM_LEGACY && (stream != nullptr || per_thread);
}

CUDA_MEMCPY3D line(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  CUDA_MEMCPY3D box = {};
  box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  box.srcDevice = from;
  box.dstDevice = to;
  box.WidthInBytes = bytes;
  box.Height = box.Depth = 1;
  return box;
}

struct Lines {
  const CUdeviceptr* to;
  const CUdeviceptr* from;
  const size_t* bytes;
  size_t count;
  const CUmemcpyAttributes* attributes;
  const size_t* starts;  // the first copy that each set of attributes is for
  size_t sets;
};

bool lines_ok(const Lines& l) {
  if (l.to == nullptr || l.from == nullptr || l.bytes == nullptr || l.count == 0) return false;
  if (l.attributes == nullptr || l.starts == nullptr || l.sets == 0 || l.sets > l.count) {
    return false;
  }
  if (l.starts[0] != 0) return false;
  for (size_t i = 1; i < l.sets; ++i) {
    if (l.starts[i] <= l.starts[i - 1] || l.starts[i] >= l.count) return false;
  }
  return true;
}

CUresult copy_lines(const Lines& l, size_t* failed, CUstream stream, bool per_thread) {
  if (!lines_ok(l) || !stream_ok(stream, per_thread)) {
    return fail(failed, kNone, CUDA_ERROR_INVALID_VALUE);
  }
  for (const bool moving : {false, true}) {
    size_t set = 0;
    for (size_t i = 0; i < l.count; ++i) {
      if (set + 1 < l.sets && l.starts[set + 1] == i) ++set;
      const CUmemcpySrcAccessOrder order = l.attributes[set].srcAccessOrder;
      const CUDA_MEMCPY3D box = line(l.to[i], l.from[i], l.bytes[i]);
      CUresult result = CUDA_SUCCESS;
      if (moving) {
        result = submit(box, order, stream, per_thread);
      } else {
        result = order_ok(order) ? check_3d(box) : CUDA_ERROR_INVALID_VALUE;
      }
      if (result != CUDA_SUCCESS) return fail(failed, i, result);
    }
  }
  return CUDA_SUCCESS;
}

size_t element_of(const CUmemcpy3DOperand& side) {
  if (side.type != CU_MEMCPY_OPERAND_TYPE_ARRAY) return 0;
  const Guard guard;
  const Array* array = find_array(side.op.array.array);
  return array == nullptr ? 0 : element_bytes(array->shape);
}

// Everything counts in elements: of the array that takes part, or bytes.
CUresult box_of(const CUDA_MEMCPY3D_BATCH_OP& op, CUDA_MEMCPY3D* box) {
  const size_t from_element = element_of(op.src), to_element = element_of(op.dst);
  if (from_element != 0 && to_element != 0 && from_element != to_element) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const size_t element = from_element != 0 ? from_element : to_element != 0 ? to_element : 1;
  if (op.extent.width == 0 || op.extent.height == 0 || op.extent.depth == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *box = {};
  box->WidthInBytes = op.extent.width * element;
  box->Height = op.extent.height;
  box->Depth = op.extent.depth;
  if (op.src.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
    box->srcMemoryType = CU_MEMORYTYPE_ARRAY;
    box->srcArray = op.src.op.array.array;
    box->srcXInBytes = op.src.op.array.offset.x * element;
    box->srcY = op.src.op.array.offset.y;
    box->srcZ = op.src.op.array.offset.z;
  } else {
    box->srcMemoryType = CU_MEMORYTYPE_UNIFIED;
    box->srcDevice = op.src.op.ptr.ptr;
    box->srcPitch = op.src.op.ptr.rowLength * element;
    box->srcHeight = op.src.op.ptr.layerHeight;
  }
  if (op.dst.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
    box->dstMemoryType = CU_MEMORYTYPE_ARRAY;
    box->dstArray = op.dst.op.array.array;
    box->dstXInBytes = op.dst.op.array.offset.x * element;
    box->dstY = op.dst.op.array.offset.y;
    box->dstZ = op.dst.op.array.offset.z;
  } else {
    box->dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    box->dstDevice = op.dst.op.ptr.ptr;
    box->dstPitch = op.dst.op.ptr.rowLength * element;
    box->dstHeight = op.dst.op.ptr.layerHeight;
  }
  return CUDA_SUCCESS;
}

bool type_ok(CUmemcpy3DOperandType type) {
  return type == CU_MEMCPY_OPERAND_TYPE_POINTER || type == CU_MEMCPY_OPERAND_TYPE_ARRAY;
}

CUresult copy_boxes(size_t count, const CUDA_MEMCPY3D_BATCH_OP* ops, size_t* failed,
                    unsigned long long flags, CUstream stream, bool per_thread) {
  if (ops == nullptr || count == 0 || flags != 0 || !stream_ok(stream, per_thread)) {
    return fail(failed, kNone, CUDA_ERROR_INVALID_VALUE);
  }
  for (const bool moving : {false, true}) {
    for (size_t i = 0; i < count; ++i) {
      const CUDA_MEMCPY3D_BATCH_OP& op = ops[i];
      CUDA_MEMCPY3D box = {};
      CUresult result = CUDA_ERROR_INVALID_VALUE;
      if (type_ok(op.src.type) && type_ok(op.dst.type) && order_ok(op.srcAccessOrder)) {
        result = box_of(op, &box);
      }
      if (result == CUDA_SUCCESS) {
        result = moving ? submit(box, op.srcAccessOrder, stream, per_thread) : check_3d(box);
      }
      if (result != CUDA_SUCCESS) return fail(failed, i, result);
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

// The second version has no place for the index of a failed copy.
#define SIM_BATCH(NAME, THREAD)                                                                    \
  extern "C" CUresult NAME(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,        \
                           CUmemcpyAttributes* attributes, size_t* starts, size_t sets,            \
                           size_t* failed, CUstream stream) {                                      \
    SIM_ENTRY_CONTEXT(NAME);                                                                       \
    return copy_lines({to, from, bytes, count, attributes, starts, sets}, failed, stream, THREAD); \
  }
#define SIM_BATCH_V2(NAME, THREAD)                                                          \
  extern "C" CUresult NAME(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count, \
                           CUmemcpyAttributes* attributes, size_t* starts, size_t sets,     \
                           CUstream stream) {                                               \
    SIM_ENTRY_CONTEXT(NAME);                                                                \
    return copy_lines({to, from, bytes, count, attributes, starts, sets}, nullptr, stream,  \
                      THREAD);                                                              \
  }
SIM_BATCH(cuMemcpyBatchAsync, false)
SIM_BATCH(cuMemcpyBatchAsync_ptsz, true)
SIM_BATCH_V2(cuMemcpyBatchAsync_v2, false)
SIM_BATCH_V2(cuMemcpyBatchAsync_v2_ptsz, true)

#define SIM_BOX_BATCH(NAME, THREAD)                                                   \
  extern "C" CUresult NAME(size_t count, CUDA_MEMCPY3D_BATCH_OP* ops, size_t* failed, \
                           unsigned long long flags, CUstream stream) {               \
    SIM_ENTRY_CONTEXT(NAME);                                                          \
    return copy_boxes(count, ops, failed, flags, stream, THREAD);                     \
  }
#define SIM_BOX_BATCH_V2(NAME, THREAD)                                                          \
  extern "C" CUresult NAME(size_t count, CUDA_MEMCPY3D_BATCH_OP* ops, unsigned long long flags, \
                           CUstream stream) {                                                   \
    SIM_ENTRY_CONTEXT(NAME);                                                                    \
    return copy_boxes(count, ops, nullptr, flags, stream, THREAD);                              \
  }
SIM_BOX_BATCH(cuMemcpy3DBatchAsync, false)
SIM_BOX_BATCH(cuMemcpy3DBatchAsync_ptsz, true)
SIM_BOX_BATCH_V2(cuMemcpy3DBatchAsync_v2, false)
SIM_BOX_BATCH_V2(cuMemcpy3DBatchAsync_v2_ptsz, true)
