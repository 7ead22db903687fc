// SPDX-License-Identifier: Apache-2.0
// The allocating interface of CUDA 3.1: 32-bit sizes and addresses. Each entry does what its
// successor does, in contexts made by the cuCtxCreate of that version, whose memory lies below 4
// GiB; in any other context it returns 201, as on a real card.
#include "simgpu/state.h"

namespace simgpu {
namespace {

// The result of a successor in 32 bits; CUDA_ERROR_INVALID_VALUE if they do not hold it.
CUresult narrow(CUresult result, uint64_t wide, unsigned int* out) {
  if (result != CUDA_SUCCESS) return result;
  if (wide > ~0u) return CUDA_ERROR_INVALID_VALUE;
  *out = static_cast<unsigned int>(wide);
  return CUDA_SUCCESS;
}

CUresult allocate(CUdeviceptr_v1* p, size_t bytes) {
  CUdeviceptr wide = 0;
  const CUresult result = cuMemAlloc_v2(p == nullptr ? nullptr : &wide, bytes);
  return narrow(result, wide, p);
}

CUresult allocate_rows(CUdeviceptr_v1* p, unsigned int* pitch, size_t width, size_t height,
                       unsigned int element) {
  CUdeviceptr wide = 0;
  size_t row = 0;
  CUresult result = cuMemAllocPitch_v2(p == nullptr ? nullptr : &wide,
                                       pitch == nullptr ? nullptr : &row, width, height, element);
  result = narrow(result, wide, p);
  return narrow(result, row, pitch);
}

// A value that does not fit reads as the largest number, as in cuDeviceTotalMem.
unsigned int at_most(uint64_t wide) { return wide > ~0u ? ~0u : static_cast<unsigned int>(wide); }

CUresult get_info(unsigned int* free_bytes, unsigned int* total_bytes) {
  size_t free_wide = 0, total_wide = 0;
  const CUresult result = cuMemGetInfo_v2(&free_wide, &total_wide);
  if (result != CUDA_SUCCESS) return result;
  if (free_bytes != nullptr) *free_bytes = at_most(free_wide);
  if (total_bytes != nullptr) *total_bytes = at_most(total_wide);
  return CUDA_SUCCESS;
}

CUresult create_flat(CUarray* array, const CUDA_ARRAY_DESCRIPTOR_v1* d) {
  if (d == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_ARRAY_DESCRIPTOR wide = {d->Width, d->Height, d->Format, d->NumChannels};
  return cuArrayCreate_v2(array, &wide);
}

CUresult create_deep(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR_v1* d) {
  if (d == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_ARRAY3D_DESCRIPTOR wide = {d->Width,  d->Height,      d->Depth,
                                        d->Format, d->NumChannels, d->Flags};
  return cuArray3DCreate_v2(array, &wide);
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

#define SIM_OLD(name, parameters, call)                                \
  extern "C" CUresult name parameters {                                \
    SIM_ENTRY_CONTEXT(name);                                           \
    if (!is_old(current_context())) return CUDA_ERROR_INVALID_CONTEXT; \
    return call;                                                       \
  }                                                                    \
  static_assert(true, "ends with a semicolon")

SIM_OLD(cuMemAlloc, (CUdeviceptr_v1 * p, unsigned int bytes), allocate(p, bytes));
SIM_OLD(cuMemAllocPitch,
        (CUdeviceptr_v1 * p, unsigned int* pitch, unsigned int width, unsigned int height,
         unsigned int element),
        allocate_rows(p, pitch, width, height, element));
SIM_OLD(cuMemFree, (CUdeviceptr_v1 p), cuMemFree_v2(p));
SIM_OLD(cuMemGetInfo, (unsigned int* free_bytes, unsigned int* total_bytes),
        get_info(free_bytes, total_bytes));
SIM_OLD(cuArrayCreate, (CUarray * array, const CUDA_ARRAY_DESCRIPTOR_v1* shape),
        create_flat(array, shape));
SIM_OLD(cuArray3DCreate, (CUarray * array, const CUDA_ARRAY3D_DESCRIPTOR_v1* shape),
        create_deep(array, shape));
