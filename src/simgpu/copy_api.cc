// SPDX-License-Identifier: Apache-2.0
// The copying entry points. Each exists four times: synchronous and in a stream's order, for the
// legacy and for the per-thread default stream. A synchronous copy is ordered after the default
// stream, so all of them are submitted; only how the caller waits differs.
#include <string.h>

#include "simgpu/copy.h"
#include "simgpu/state.h"

namespace simgpu {
namespace {

CUresult run_copy(void* arguments) { return copy_checked(*static_cast<Copy*>(arguments)); }
CUresult run_3d(void* arguments) { return copy_3d(static_cast<CUDA_MEMCPY3D*>(arguments)); }

// Arguments are checked when the call is made, whatever is still before it in the stream.
CUresult submit_copy(const Copy& copy, CUstream stream, bool per_thread) {
  {
    const Guard guard;
    CUresult wrong = check_span(copy.to, copy.bytes, true, copy.to_side);
    if (wrong == CUDA_SUCCESS) wrong = check_span(copy.from, copy.bytes, false, copy.from_side);
    if (wrong != CUDA_SUCCESS) return wrong;
  }
  return stream_submit(stream, per_thread, run_copy, &copy, sizeof copy);
}

// A synchronous call: in the default stream's order, and complete when it returns.
CUresult finish(CUresult submitted, bool per_thread) {
  return submitted == CUDA_SUCCESS ? wait_for_default_stream(per_thread) : submitted;
}

CUdeviceptr bits(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

Copy to_device(CUdeviceptr to, const void* from, size_t bytes) {
  return {to, bits(from), bytes, Side::kKnown, Side::kAny};
}
Copy to_host(void* to, CUdeviceptr from, size_t bytes) {
  return {bits(to), from, bytes, Side::kAny, Side::kKnown};
}
Copy on_device(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return {to, from, bytes, Side::kKnown, Side::kKnown};
}
Copy anywhere(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return {to, from, bytes, Side::kAny, Side::kAny};
}

CUresult submit_3d(const CUDA_MEMCPY3D* what, CUstream stream, bool per_thread) {
  const CUresult wrong = what == nullptr ? CUDA_ERROR_INVALID_VALUE : check_3d(*what);
  if (wrong != CUDA_SUCCESS) return wrong;
  return stream_submit(stream, per_thread, run_3d, what, sizeof *what);
}
CUresult submit_2d(const CUDA_MEMCPY2D* what, CUstream stream, bool per_thread) {
  if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_MEMCPY3D box = one_slice(*what);
  return submit_3d(&box, stream, per_thread);
}

// Copies to and from the first row of an array: the purpose of these old entry points.
CUDA_MEMCPY3D row_of(size_t bytes) {
  CUDA_MEMCPY3D box = {};
  box.WidthInBytes = bytes;
  box.Height = box.Depth = 1;
  return box;
}
void from_array(CUDA_MEMCPY3D* box, CUarray array, size_t offset) {
  box->srcMemoryType = CU_MEMORYTYPE_ARRAY;
  box->srcArray = array;
  box->srcXInBytes = offset;
}
void to_array(CUDA_MEMCPY3D* box, CUarray array, size_t offset) {
  box->dstMemoryType = CU_MEMORYTYPE_ARRAY;
  box->dstArray = array;
  box->dstXInBytes = offset;
}

CUDA_MEMCPY3D host_to_array(CUarray to, size_t offset, const void* from, size_t bytes) {
  CUDA_MEMCPY3D box = row_of(bytes);
  to_array(&box, to, offset);
  box.srcMemoryType = CU_MEMORYTYPE_HOST;
  box.srcHost = from;
  return box;
}
CUDA_MEMCPY3D array_to_host(void* to, CUarray from, size_t offset, size_t bytes) {
  CUDA_MEMCPY3D box = row_of(bytes);
  from_array(&box, from, offset);
  box.dstMemoryType = CU_MEMORYTYPE_HOST;
  box.dstHost = to;
  return box;
}
CUDA_MEMCPY3D device_to_array(CUarray to, size_t offset, CUdeviceptr from, size_t bytes) {
  CUDA_MEMCPY3D box = row_of(bytes);
  to_array(&box, to, offset);
  box.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  box.srcDevice = from;
  return box;
}
CUDA_MEMCPY3D array_to_device(CUdeviceptr to, CUarray from, size_t offset, size_t bytes) {
  CUDA_MEMCPY3D box = row_of(bytes);
  from_array(&box, from, offset);
  box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  box.dstDevice = to;
  return box;
}
CUDA_MEMCPY3D array_to_array(CUarray to, size_t to_offset, CUarray from, size_t from_offset,
                             size_t bytes) {
  CUDA_MEMCPY3D box = row_of(bytes);
  from_array(&box, from, from_offset);
  to_array(&box, to, to_offset);
  return box;
}

bool both_contexts(CUcontext a, CUcontext b) {
  return find_context(a) != nullptr && find_context(b) != nullptr;
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

// P is the suffix of the version, "_v2" or nothing.
#define SIM_COPY(NAME, P, PARAMETERS, ARGUMENTS, COPY)                 \
  extern "C" CUresult NAME##P PARAMETERS {                             \
    SIM_ENTRY_CONTEXT(NAME##P);                                        \
    return finish(submit_copy(COPY ARGUMENTS, nullptr, false), false); \
  }                                                                    \
  extern "C" CUresult NAME##P##_ptds PARAMETERS {                      \
    SIM_ENTRY_CONTEXT(NAME##P##_ptds);                                 \
    return finish(submit_copy(COPY ARGUMENTS, nullptr, true), true);   \
  }
#define SIM_COPY_ASYNC(NAME, P, PARAMETERS, ARGUMENTS, COPY) \
  extern "C" CUresult NAME##P PARAMETERS {                   \
    SIM_ENTRY_CONTEXT(NAME##P);                              \
    return submit_copy(COPY ARGUMENTS, stream, false);       \
  }                                                          \
  extern "C" CUresult NAME##P##_ptsz PARAMETERS {            \
    SIM_ENTRY_CONTEXT(NAME##P##_ptsz);                       \
    return submit_copy(COPY ARGUMENTS, stream, true);        \
  }

SIM_COPY(cuMemcpyHtoD, _v2, (CUdeviceptr to, const void* from, size_t bytes), (to, from, bytes),
         to_device)
SIM_COPY(cuMemcpyDtoH, _v2, (void* to, CUdeviceptr from, size_t bytes), (to, from, bytes), to_host)
SIM_COPY(cuMemcpyDtoD, _v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes), (to, from, bytes),
         on_device)
SIM_COPY(cuMemcpy, , (CUdeviceptr to, CUdeviceptr from, size_t bytes), (to, from, bytes), anywhere)
SIM_COPY_ASYNC(cuMemcpyHtoDAsync, _v2,
               (CUdeviceptr to, const void* from, size_t bytes, CUstream stream), (to, from, bytes),
               to_device)
SIM_COPY_ASYNC(cuMemcpyDtoHAsync, _v2, (void* to, CUdeviceptr from, size_t bytes, CUstream stream),
               (to, from, bytes), to_host)
SIM_COPY_ASYNC(cuMemcpyDtoDAsync, _v2,
               (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream), (to, from, bytes),
               on_device)
SIM_COPY_ASYNC(cuMemcpyAsync, , (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
               (to, from, bytes), anywhere)

// Copies between the memory of two contexts.
#define SIM_PEER(NAME, THREAD)                                                       \
  extern "C" CUresult NAME(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,   \
                           CUcontext from_context, size_t bytes) {                   \
    SIM_ENTRY_CONTEXT(NAME);                                                         \
    if (!both_contexts(to_context, from_context)) return CUDA_ERROR_INVALID_CONTEXT; \
    return finish(submit_copy(on_device(to, from, bytes), nullptr, THREAD), THREAD); \
  }
SIM_PEER(cuMemcpyPeer, false)
SIM_PEER(cuMemcpyPeer_ptds, true)

#define SIM_BOX(NAME, TYPE, SUBMIT, THREAD)               \
  extern "C" CUresult NAME(const TYPE* what) {            \
    SIM_ENTRY_CONTEXT(NAME);                              \
    return finish(SUBMIT(what, nullptr, THREAD), THREAD); \
  }
#define SIM_BOX_ASYNC(NAME, TYPE, SUBMIT, THREAD)               \
  extern "C" CUresult NAME(const TYPE* what, CUstream stream) { \
    SIM_ENTRY_CONTEXT(NAME);                                    \
    return SUBMIT(what, stream, THREAD);                        \
  }
SIM_BOX(cuMemcpy2D_v2, CUDA_MEMCPY2D, submit_2d, false)
SIM_BOX(cuMemcpy2D_v2_ptds, CUDA_MEMCPY2D, submit_2d, true)
SIM_BOX(cuMemcpy3D_v2, CUDA_MEMCPY3D, submit_3d, false)
SIM_BOX(cuMemcpy3D_v2_ptds, CUDA_MEMCPY3D, submit_3d, true)
SIM_BOX_ASYNC(cuMemcpy2DAsync_v2, CUDA_MEMCPY2D, submit_2d, false)
SIM_BOX_ASYNC(cuMemcpy2DAsync_v2_ptsz, CUDA_MEMCPY2D, submit_2d, true)

#define SIM_ARRAY(NAME, PARAMETERS, ARGUMENTS, BOX)        \
  extern "C" CUresult NAME##_v2 PARAMETERS {               \
    SIM_ENTRY_CONTEXT(NAME##_v2);                          \
    const CUDA_MEMCPY3D box = BOX ARGUMENTS;               \
    return finish(submit_3d(&box, nullptr, false), false); \
  }                                                        \
  extern "C" CUresult NAME##_v2_ptds PARAMETERS {          \
    SIM_ENTRY_CONTEXT(NAME##_v2_ptds);                     \
    const CUDA_MEMCPY3D box = BOX ARGUMENTS;               \
    return finish(submit_3d(&box, nullptr, true), true);   \
  }
SIM_ARRAY(cuMemcpyHtoA, (CUarray to, size_t offset, const void* from, size_t bytes),
          (to, offset, from, bytes), host_to_array)
SIM_ARRAY(cuMemcpyAtoH, (void* to, CUarray from, size_t offset, size_t bytes),
          (to, from, offset, bytes), array_to_host)
SIM_ARRAY(cuMemcpyDtoA, (CUarray to, size_t offset, CUdeviceptr from, size_t bytes),
          (to, offset, from, bytes), device_to_array)
SIM_ARRAY(cuMemcpyAtoD, (CUdeviceptr to, CUarray from, size_t offset, size_t bytes),
          (to, from, offset, bytes), array_to_device)
SIM_ARRAY(cuMemcpyAtoA,
          (CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t bytes),
          (to, to_offset, from, from_offset, bytes), array_to_array)
