// SPDX-License-Identifier: Apache-2.0
// See copier.h.
#include "park/copier.h"

#include <utility>

namespace mete::park {

Copier::Copier(const Card& card, Bell bell) : card_(card), bell_(bell), thread_([this] { run(); }) {
  thread_.detach();
}

CUresult Copier::prepare() {
  const Cuda& cuda = card_.cuda;
  CUresult result = card_.enter();
  CUstream streams[kStreams] = {};
  for (CUstream& stream : streams)
    if (result == CUDA_SUCCESS) result = cuda.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  for (int i = 0; i < kLanes; ++i) {
    lanes_.push_back(std::make_unique<Lane>(card_));
    lanes_.back()->stream = streams[i % kStreams];
    if (result == CUDA_SUCCESS)
      result = cuda.cuEventCreate(&lanes_.back()->event,
                                  CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING);
  }
  return result;
}

CUresult Copier::enqueue(const Lane& lane, const CopyTask& task) const {
  CUdeviceptr at = lane.window.address();
  for (const Part& part : task.parts) {
    const CUresult result =
        task.out ? card_.cuda.cuMemcpyDtoHAsync_v2(part.memory, at, part.bytes, lane.stream)
                 : card_.cuda.cuMemcpyHtoDAsync_v2(at, part.memory, part.bytes, lane.stream);
    if (result != CUDA_SUCCESS) return result;
    at += part.bytes;
  }
  return card_.cuda.cuEventRecord(lane.event, lane.stream);
}

void Copier::begin(Lane& lane, CopyTask task) const {
  lane.number = task.number;
  lane.copying = false;
  if (task.off && task.off->load(std::memory_order_relaxed)) {
    lane.result = CUDA_ERROR_NOT_READY;  // no process waits for the result
    return;
  }
  lane.result = lane.window.open(std::move(task.descriptor), task.bytes);
  if (lane.result != CUDA_SUCCESS) return;
  lane.result = enqueue(lane, task);
  lane.copying = lane.result == CUDA_SUCCESS;
  // A part of it may be under way already, and memory must not be unmapped during a copy.
  if (!lane.copying) (void)card_.cuda.cuStreamSynchronize(lane.stream);
}

void Copier::finish(Lane& lane) {
  if (lane.copying) lane.result = card_.cuda.cuEventSynchronize(lane.event);
  const CUresult closed = lane.window.close();
  if (lane.result == CUDA_SUCCESS) lane.result = closed;
  done_.put({lane.number, lane.result, false});
  bell_.ring();
}

void Copier::run() {
  const CUresult prepared = prepare();
  std::size_t first = 0, busy = 0;
  for (;;) {
    while (busy < lanes_.size()) {
      std::optional<CopyTask> task = tasks_.try_take();
      if (!task && busy > 0) break;
      if (!task) task = tasks_.take();
      if (prepared != CUDA_SUCCESS) {
        done_.put({task->number, prepared, false});
        bell_.ring();
        continue;
      }
      begin(*lanes_[(first + busy) % lanes_.size()], std::move(*task));
      ++busy;
    }
    finish(*lanes_[first]);
    first = (first + 1) % lanes_.size();
    --busy;
  }
}

}  // namespace mete::park
