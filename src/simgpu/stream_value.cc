// SPDX-License-Identifier: Apache-2.0
// Streams that wait for a word of memory, or write one. Memory tells nobody when it changes, so the
// driver's thread looks again every millisecond while a stream waits.
#include "simgpu/capture.h"
#include "simgpu/stream_pair.h"

namespace simgpu {
namespace {

enum : CUstreamBatchMemOpType {
  kWait32 = 1,
  kWrite32 = 2,
  kFlush = 3,
  kWait64 = 4,
  kWrite64 = 5,
  kBarrier = 6,
};

CUresult one(Stream* stream, TaskKind kind, CUdeviceptr address, uint64_t value, unsigned bytes,
             unsigned flags) {
  if (address % bytes != 0) return CUDA_ERROR_INVALID_VALUE;
  Task task;
  task.kind = kind;
  task.context = stream->context;
  task.value.address = address;
  task.value.value = value;
  task.value.bytes = bytes;
  task.value.flags = flags;
  return is_capturing(stream) ? capture_task(stream, task, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
                              : submit(stream, task);
}

CUresult find(CUstream handle, bool per_thread, Stream** stream) {
  const CUresult result = find_stream(handle, per_thread, stream);
  return result == CUDA_SUCCESS ? refuse_legacy(*stream) : result;
}

CUresult value(CUstream handle, bool per_thread, TaskKind kind, CUdeviceptr address,
               uint64_t wanted, unsigned bytes, unsigned flags) {
  const Guard guard;
  Stream* stream = nullptr;
  const CUresult result = find(handle, per_thread, &stream);
  return result == CUDA_SUCCESS ? one(stream, kind, address, wanted, bytes, flags) : result;
}

CUresult batch(CUstream handle, unsigned count, const CUstreamBatchMemOpParams* operations,
               bool per_thread) {
  if (operations == nullptr || count > 256) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Stream* stream = nullptr;
  CUresult result = find(handle, per_thread, &stream);
  for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++) {
    const CUstreamBatchMemOpParams& p = operations[i];
    switch (p.operation) {
      case kWait32:
        result = one(stream, TaskKind::kWaitValue, p.waitValue.address, p.waitValue.value, 4,
                     p.waitValue.flags);
        break;
      case kWait64:
        result = one(stream, TaskKind::kWaitValue, p.waitValue.address, p.waitValue.value64, 8,
                     p.waitValue.flags);
        break;
      case kWrite32:
        result = one(stream, TaskKind::kWriteValue, p.writeValue.address, p.writeValue.value, 4, 0);
        break;
      case kWrite64:
        result =
            one(stream, TaskKind::kWriteValue, p.writeValue.address, p.writeValue.value64, 8, 0);
        break;
      case kFlush:
      case kBarrier:
        enter_stream(stream);
        break;
      default:
        result = CUDA_ERROR_INVALID_VALUE;
    }
  }
  return result;
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

#define SIM_VALUE(name, kind, type)                                                       \
  SIM_PAIR(name, (CUstream stream, CUdeviceptr address, type wanted, unsigned int flags), \
           value(stream, per_thread, kind, address, wanted, sizeof(type), flags))
#define SIM_BATCH(name)                                                                           \
  SIM_PAIR(name,                                                                                  \
           (CUstream stream, unsigned int count, CUstreamBatchMemOpParams* operations, unsigned), \
           batch(stream, count, operations, per_thread))

extern "C" {

SIM_VALUE(cuStreamWaitValue32, TaskKind::kWaitValue, cuuint32_t);
SIM_VALUE(cuStreamWaitValue32_v2, TaskKind::kWaitValue, cuuint32_t);
SIM_VALUE(cuStreamWaitValue64, TaskKind::kWaitValue, cuuint64_t);
SIM_VALUE(cuStreamWaitValue64_v2, TaskKind::kWaitValue, cuuint64_t);
SIM_VALUE(cuStreamWriteValue32, TaskKind::kWriteValue, cuuint32_t);
SIM_VALUE(cuStreamWriteValue32_v2, TaskKind::kWriteValue, cuuint32_t);
SIM_VALUE(cuStreamWriteValue64, TaskKind::kWriteValue, cuuint64_t);
SIM_VALUE(cuStreamWriteValue64_v2, TaskKind::kWriteValue, cuuint64_t);
SIM_BATCH(cuStreamBatchMemOp);
SIM_BATCH(cuStreamBatchMemOp_v2);

}  // extern "C"
