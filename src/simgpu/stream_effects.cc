// SPDX-License-Identifier: Apache-2.0
// The effect of a task when its turn has come.
#include "simgpu/event.h"
#include "simgpu/launch.h"
#include "simgpu/stream.h"

namespace simgpu {
namespace {

CUresult set_memory(const CUDA_MEMSET_NODE_PARAMS& what) {
  FillShape shape = {};
  shape.pitch = what.height > 1 ? what.pitch : what.width * what.elementSize;
  shape.width = what.width;
  shape.rows = what.height;
  shape.element = what.elementSize;
  shape.value = what.value;
  return fill_bytes(what.dst, shape);
}

CUresult write_value(const Task& task) {
  return copy_bytes(pointer_of(task.value.address), &task.value.value, sizeof task.value.value);
}

void reach(Stream* stream, int64_t ns) {
  if (ns > stream->busy_until_ns) stream->busy_until_ns = ns;
}

CUresult call_host(Stream* stream, const Task& task) {
  // A copy: other threads may see the task while the lock is released, but it stays ours.
  const Task mine = task;
  const CUresult status = mine.context == nullptr ? CUDA_SUCCESS : mine.context->sticky;
  (void)stream;
  const Unguard open;
  if (mine.kind == TaskKind::kHost)
    mine.host.fn(mine.host.userData);
  else
    mine.callback.function(mine.callback.stream, status, mine.callback.data);
  return CUDA_SUCCESS;
}

}  // namespace

// Flags of cuStreamWaitValue: 0 >=, 1 ==, 2 &, 3 nor.
bool value_reached(const Task& task) {
  uint32_t now = 0;
  if (copy_bytes(&now, pointer_of(task.value.address), sizeof now) != CUDA_SUCCESS)
    return true;  // the memory is gone: do not wait for ever
  const uint32_t wanted = task.value.value;
  switch (task.value.flags & 3) {
    case 0:
      return static_cast<int32_t>(now - wanted) >= 0;
    case 1:
      return now == wanted;
    case 2:
      return (now & wanted) != 0;
    default:
      return ~(now | wanted) != 0;
  }
}

CUresult perform(Stream* stream, const Task& task) {
  switch (task.kind) {
    case TaskKind::kKernel:
      return run_kernel(stream, task);
    case TaskKind::kMemset:
      return set_memory(task.memset);
    case TaskKind::kMemcpy:
      return copy_3d(&task.memcpy);
    case TaskKind::kOpaque:
      return task.opaque.function(task.opaque.arguments->pointers);
    case TaskKind::kHost:
    case TaskKind::kCallback:
      return call_host(stream, task);
    case TaskKind::kRecord:
      if (task.record.event->generation == task.record.generation) {
        const int64_t now = now_ns();
        task.record.event->done_ns = stream->busy_until_ns > now ? stream->busy_until_ns : now;
      }
      return CUDA_SUCCESS;
    case TaskKind::kWaitMark: {
      const Stream* const other = stream_by_id(task.mark.stream);
      if (other != nullptr) reach(stream, other->busy_until_ns);
      return CUDA_SUCCESS;
    }
    case TaskKind::kWaitTime:
      reach(stream, task.until_ns);
      return CUDA_SUCCESS;
    case TaskKind::kWriteValue:
      return write_value(task);
    case TaskKind::kWaitValue:
    case TaskKind::kNothing:
      return CUDA_SUCCESS;
  }
  return CUDA_ERROR_UNKNOWN;
}

}  // namespace simgpu
