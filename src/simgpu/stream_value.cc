// SPDX-License-Identifier: Apache-2.0
// Streams that wait for a word of memory, or write one. Memory does not notify of changes, so the
// driver's thread checks every millisecond while a stream waits.
#include "simgpu/capture.h"
#include "simgpu/stream_pair.h"

namespace simgpu {
namespace {

CUresult value(CUstream handle, bool per_thread, TaskKind kind, CUdeviceptr address,
               cuuint32_t wanted, unsigned flags) {
  const Guard guard;
  Stream* stream = nullptr;
  CUresult result = find_stream(handle, per_thread, &stream);
  if (result == CUDA_SUCCESS) result = refuse_legacy(stream);
  if (result != CUDA_SUCCESS) return result;
  if (address % sizeof wanted != 0) return CUDA_ERROR_INVALID_VALUE;
  Task task;
  task.kind = kind;
  task.context = stream->context;
  task.value.address = address;
  task.value.value = wanted;
  task.value.flags = flags;
  return is_capturing(stream) ? capture_task(stream, task, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
                              : submit(stream, task);
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

#define SIM_VALUE(name, kind)                                                                   \
  SIM_PAIR(name, (CUstream stream, CUdeviceptr address, cuuint32_t wanted, unsigned int flags), \
           value(stream, per_thread, kind, address, wanted, flags))

extern "C" {

SIM_VALUE(cuStreamWaitValue32, TaskKind::kWaitValue);
SIM_VALUE(cuStreamWaitValue32_v2, TaskKind::kWaitValue);
SIM_VALUE(cuStreamWriteValue32, TaskKind::kWriteValue);
SIM_VALUE(cuStreamWriteValue32_v2, TaskKind::kWriteValue);

}  // extern "C"
