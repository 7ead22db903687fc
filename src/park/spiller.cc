// SPDX-License-Identifier: Apache-2.0
// See spiller.h. The thread takes a piece from its queue, maps it, and copies its parts: a part in
// pinned memory directly, a part in the spill file through two buffers in turn, so that the card
// fills or drains one while the other is written or read. Freed extents are punched out of the file
// first.
#include "park/spiller.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace mete::park {

Result<Fd> open_spill(const std::string& folder) {
  Result<Fd> file = base::open_fd(folder, O_RDWR | O_TMPFILE | O_EXCL, 0600);
  if (!file) return std::move(file).error().within("a file for what does not fit the arena");
  return file;
}

Spiller::Spiller(const Card& card, Bell bell, Fd file)
    : card_(card), bell_(bell), file_(std::move(file)), window_(card), thread_([this] { run(); }) {
  thread_.detach();
}

CUresult Spiller::prepare() {
  const Cuda& cuda = card_.cuda;
  CUresult result = card_.enter();
  if (result == CUDA_SUCCESS) result = cuda.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING);
  for (Buffer& buffer : buffers_) {
    if (result == CUDA_SUCCESS)
      result = cuda.cuEventCreate(&buffer.event, CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING);
    void* memory = nullptr;
    if (result == CUDA_SUCCESS) result = cuda.cuMemHostAlloc(&memory, kBuffer, 0);
    buffer.memory = static_cast<char*>(memory);
  }
  return result;
}

void Spiller::run() {
  const CUresult prepared = prepare();
  for (;;) {
    Work work = work_.take();
    punch(work.forget);
    if (work.task.number == 0) continue;
    const Outcome outcome = prepared == CUDA_SUCCESS ? copy(work.task) : Outcome{prepared, false};
    done_.put({work.task.number, outcome.result, outcome.disk_full});
    bell_.ring();
  }
}

// A file system that cannot punch holes keeps the space until the file is closed; it is reused
// anyway.
void Spiller::punch(const std::vector<Extent>& extents) const {
  for (const Extent& extent : extents)
    (void)fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    static_cast<off_t>(extent.offset), static_cast<off_t>(extent.bytes));
}

Spiller::Outcome Spiller::copy(CopyTask& task) {
  if (task.off && task.off->load(std::memory_order_relaxed)) return {CUDA_ERROR_NOT_READY, false};
  Outcome outcome{window_.open(std::move(task.descriptor), task.bytes), false};
  if (!outcome.good()) return outcome;
  CUdeviceptr at = window_.address();
  for (const Part& part : task.parts) {
    if (!outcome.good()) break;
    if (part.memory == nullptr)
      outcome = task.out ? part_out(at, part) : part_in(at, part);
    else
      outcome.result = task.out
                           ? card_.cuda.cuMemcpyDtoHAsync_v2(part.memory, at, part.bytes, stream_)
                           : card_.cuda.cuMemcpyHtoDAsync_v2(at, part.memory, part.bytes, stream_);
    at += part.bytes;
  }
  // Memory must not be unmapped during a copy, and no buffer may be in use when the next piece
  // comes.
  const CUresult settled = settle();
  const CUresult closed = window_.close();
  if (outcome.result == CUDA_SUCCESS) outcome.result = settled;
  if (outcome.result == CUDA_SUCCESS) outcome.result = closed;
  return outcome;
}

CUresult Spiller::settle() {
  for (Buffer& buffer : buffers_) buffer.bytes = 0;
  return card_.cuda.cuStreamSynchronize(stream_);
}

Spiller::Outcome Spiller::write_out(Buffer& buffer) const {
  const uint64_t bytes = std::exchange(buffer.bytes, 0);
  if (bytes == 0) return {};
  if (const CUresult result = card_.cuda.cuEventSynchronize(buffer.event); result != CUDA_SUCCESS)
    return {result, false};
  // Whatever the disk says: there is no room for this on it.
  return {CUDA_SUCCESS, !base::write_at(file_.get(), {buffer.memory, bytes}, buffer.offset)};
}

// While one buffer is written to disk the card fills the other one.
Spiller::Outcome Spiller::part_out(CUdeviceptr at, const Part& part) {
  std::size_t next = 0;
  Outcome outcome;
  for (uint64_t done = 0; done < part.bytes && outcome.good(); next = (next + 1) % kBuffers) {
    Buffer& buffer = buffers_[next];
    outcome = write_out(buffer);
    if (!outcome.good()) break;
    const uint64_t bytes = std::min(kBuffer, part.bytes - done);
    outcome.result = card_.cuda.cuMemcpyDtoHAsync_v2(buffer.memory, at + done, bytes, stream_);
    if (outcome.result == CUDA_SUCCESS)
      outcome.result = card_.cuda.cuEventRecord(buffer.event, stream_);
    buffer.offset = part.offset + done;
    buffer.bytes = bytes;
    done += bytes;
  }
  for (int i = 0; i < kBuffers && outcome.good(); ++i, next = (next + 1) % kBuffers)
    outcome = write_out(buffers_[next]);
  return outcome;
}

Spiller::Outcome Spiller::part_in(CUdeviceptr at, const Part& part) {
  std::size_t next = 0;
  for (uint64_t done = 0; done < part.bytes; next = (next + 1) % kBuffers) {
    Buffer& buffer = buffers_[next];
    CUresult result = CUDA_SUCCESS;
    // The card must have read the previous content.
    if (buffer.bytes > 0) result = card_.cuda.cuEventSynchronize(buffer.event);
    if (result != CUDA_SUCCESS) return {result, false};
    const uint64_t bytes = std::min(kBuffer, part.bytes - done);
    if (!base::read_at(file_.get(), buffer.memory, bytes, part.offset + done))
      return {CUDA_ERROR_OPERATING_SYSTEM, false};
    result = card_.cuda.cuMemcpyHtoDAsync_v2(at + done, buffer.memory, bytes, stream_);
    if (result == CUDA_SUCCESS) result = card_.cuda.cuEventRecord(buffer.event, stream_);
    if (result != CUDA_SUCCESS) return {result, false};
    buffer.bytes = bytes;
    done += bytes;
  }
  return {};
}

}  // namespace mete::park
