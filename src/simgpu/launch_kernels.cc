// SPDX-License-Identifier: Apache-2.0
// The built-in kernels: fill, add, spin. Touching unmapped memory is a fault of the context,
// reported by later calls, as on a card.
#include <atomic>
#include <cstring>

#include "simgpu/client.h"
#include "simgpu/launch.h"

namespace simgpu {
namespace {

template <class T>
T argument(const Arguments* arguments, unsigned index) {
  T value{};
  if (arguments != nullptr && index < arguments->count)
    memcpy(&value, arguments->pointers[index], sizeof value);
  return value;
}

CUresult fill(const Arguments* arguments) {
  const CUdeviceptr to = argument<CUdeviceptr>(arguments, 0);
  const size_t count = argument<size_t>(arguments, 1);
  if (count == 0) return CUDA_SUCCESS;
  FillShape shape = {};
  shape.pitch = count * sizeof(uint32_t);
  shape.width = count;
  shape.rows = 1;
  shape.element = sizeof(uint32_t);
  shape.value = argument<uint32_t>(arguments, 2);
  return fill_bytes(to, shape);
}

CUresult add(const Arguments* arguments) {
  constexpr size_t kChunk = 4096;
  const CUdeviceptr c = argument<CUdeviceptr>(arguments, 0);
  const CUdeviceptr a = argument<CUdeviceptr>(arguments, 1);
  const CUdeviceptr b = argument<CUdeviceptr>(arguments, 2);
  const size_t count = argument<size_t>(arguments, 3);
  float left[kChunk];
  float right[kChunk];
  for (size_t done = 0; done < count; done += kChunk) {
    const size_t now = count - done < kChunk ? count - done : kChunk;
    const size_t bytes = now * sizeof(float);
    const size_t offset = done * sizeof(float);
    CUresult result = copy_bytes(left, pointer_of(a + offset), bytes);
    if (result == CUDA_SUCCESS) result = copy_bytes(right, pointer_of(b + offset), bytes);
    if (result != CUDA_SUCCESS) return result;
    for (size_t i = 0; i < now; i++) left[i] += right[i];
    result = copy_bytes(pointer_of(c + offset), left, bytes);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult spin(Stream* stream, const Arguments* arguments) {
  const uint64_t microseconds = argument<uint64_t>(arguments, 0);
  Reply reply = {};
  keep_busy(stream, static_cast<int64_t>(microseconds) * 1000);
  // Only utilisation depends on the answer.
  (void)call_server(Op::kBusy, driver.devices[stream->device].card, microseconds, 0, &reply);
  return CUDA_SUCCESS;
}

// Kernels other than spin take no time here; that one ran is reported now and then.
void note_kernel(const Stream* stream) {
  constexpr int64_t kEveryNs = 100'000'000;
  static std::atomic<int64_t> told_ns[kMaxCards];
  const auto card = static_cast<uint32_t>(driver.devices[stream->device].card);
  const int64_t now = now_ns();
  int64_t last = told_ns[card].load(std::memory_order_relaxed);
  if (now - last < kEveryNs || !told_ns[card].compare_exchange_strong(last, now)) return;
  Reply reply = {};
  (void)call_server(Op::kBusy, card, 1, 0, &reply);
}

}  // namespace

CUresult run_kernel(Stream* stream, const Task& task) {
  const Function* const function = reinterpret_cast<const Function*>(task.kernel.params.func);
  CUresult result = CUDA_SUCCESS;
  if (function->builtin != Builtin::kSpin) note_kernel(stream);
  switch (function->builtin) {
    case Builtin::kFill:
      result = fill(task.kernel.arguments);
      break;
    case Builtin::kAdd:
      result = add(task.kernel.arguments);
      break;
    case Builtin::kSpin:
      result = spin(stream, task.kernel.arguments);
      break;
    case Builtin::kNone:
      break;
  }
  if (result == CUDA_ERROR_INVALID_VALUE) {
    (void)set_sticky(stream->context, CUDA_ERROR_ILLEGAL_ADDRESS);
    result = CUDA_SUCCESS;
  }
  return result;
}

}  // namespace simgpu
