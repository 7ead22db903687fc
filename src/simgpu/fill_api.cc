// SPDX-License-Identifier: Apache-2.0
// The filling entry points: 8, 16 and 32 bits, flat and in rows, synchronous and in a stream's
// order, for both default streams.
#include "simgpu/copy.h"
#include "simgpu/state.h"

namespace simgpu {
namespace {

struct FillWork {
  CUdeviceptr to;
  FillShape shape;
};

CUresult run_fill(void* arguments) {
  const FillWork* work = static_cast<FillWork*>(arguments);
  return fill_bytes(work->to, work->shape);
}

// Arguments are checked when the call is made, whatever is still before it in the stream.
CUresult check(const FillWork& work) {
  const FillShape& shape = work.shape;
  if (work.to % shape.element != 0) return CUDA_ERROR_INVALID_VALUE;
  const size_t width = shape.width * shape.element;
  if (width == 0 || shape.rows == 0) return CUDA_SUCCESS;
  if (shape.rows > 1 && (shape.pitch % shape.element != 0 || shape.pitch < width)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Guard guard;
  return check_span(work.to, shape.pitch * (shape.rows - 1) + width, true, Side::kKnown);
}

CUresult submit(const FillWork& work, CUstream stream, bool per_thread) {
  const CUresult wrong = check(work);
  if (wrong != CUDA_SUCCESS) return wrong;
  return stream_submit(stream, per_thread, run_fill, &work, sizeof work);
}

CUresult finish(CUresult submitted, bool per_thread) {
  return submitted == CUDA_SUCCESS ? wait_for_default_stream(per_thread) : submitted;
}

FillWork flat(CUdeviceptr to, uint32_t value, unsigned element, size_t count) {
  return {to, {count * element, count, 1, element, value}};
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

#define SIM_FILL(NAME, TYPE, THREAD)                                                      \
  extern "C" CUresult NAME(CUdeviceptr to, TYPE value, size_t count) {                    \
    SIM_ENTRY_CONTEXT(NAME);                                                              \
    return finish(submit(flat(to, value, sizeof value, count), nullptr, THREAD), THREAD); \
  }
#define SIM_FILL_ASYNC(NAME, TYPE, THREAD)                                              \
  extern "C" CUresult NAME(CUdeviceptr to, TYPE value, size_t count, CUstream stream) { \
    SIM_ENTRY_CONTEXT(NAME);                                                            \
    return submit(flat(to, value, sizeof value, count), stream, THREAD);                \
  }
#define SIM_FILL_ROWS(NAME, TYPE, THREAD)                                                         \
  extern "C" CUresult NAME(CUdeviceptr to, size_t pitch, TYPE value, size_t width, size_t rows) { \
    SIM_ENTRY_CONTEXT(NAME);                                                                      \
    return finish(submit({to, {pitch, width, rows, sizeof value, value}}, nullptr, THREAD),       \
                  THREAD);                                                                        \
  }

SIM_FILL(cuMemsetD8_v2, unsigned char, false)
SIM_FILL(cuMemsetD8_v2_ptds, unsigned char, true)
SIM_FILL(cuMemsetD16_v2, unsigned short, false)
SIM_FILL(cuMemsetD16_v2_ptds, unsigned short, true)
SIM_FILL(cuMemsetD32_v2, unsigned int, false)
SIM_FILL(cuMemsetD32_v2_ptds, unsigned int, true)
SIM_FILL_ASYNC(cuMemsetD8Async, unsigned char, false)
SIM_FILL_ASYNC(cuMemsetD8Async_ptsz, unsigned char, true)
SIM_FILL_ASYNC(cuMemsetD32Async, unsigned int, false)
SIM_FILL_ASYNC(cuMemsetD32Async_ptsz, unsigned int, true)
SIM_FILL_ROWS(cuMemsetD2D8_v2, unsigned char, false)
SIM_FILL_ROWS(cuMemsetD2D8_v2_ptds, unsigned char, true)
SIM_FILL_ROWS(cuMemsetD2D32_v2, unsigned int, false)
SIM_FILL_ROWS(cuMemsetD2D32_v2_ptds, unsigned int, true)
