// SPDX-License-Identifier: Apache-2.0
// The interface of CUDA 3.1 (memory, arrays, modules; old_copy.cc has copies and fills), and the
// rule that keeps it and today's functions apart.
#include "simgpu/old.h"

#include <string.h>

namespace simgpu {
namespace {

thread_local constinit int inside __attribute__((tls_model("initial-exec"))) = 0;

struct Versioned {
  const char* name;
  int version;
  const char* symbol;
};
constexpr Versioned kVersions[] = {
#define CUDA_VERSIONED(name, version, per_thread, symbol) {#name, version, #symbol},
#include "abi/cuda_versions.def"
#undef CUDA_VERSIONED
};

// The successor, in CUDA 3.2, of a function of 3.1; or its per-thread variant.
bool is_successor(const char* symbol) {
  size_t length = strlen(symbol);
  if (length > 5 &&
      (strcmp(symbol + length - 5, "_ptds") == 0 || strcmp(symbol + length - 5, "_ptsz") == 0)) {
    length -= 5;
  }
  for (const Versioned& v : kVersions) {
    if (v.version == 3020 && strncmp(v.symbol, symbol, length) == 0 && v.symbol[length] == '\0') {
      return strcmp(v.name, v.symbol) != 0;
    }
  }
  return false;
}

CUDA_ARRAY_DESCRIPTOR widen(const CUDA_ARRAY_DESCRIPTOR_v1& d) {
  return {d.Width, d.Height, d.Format, d.NumChannels};
}
CUDA_ARRAY3D_DESCRIPTOR widen(const CUDA_ARRAY3D_DESCRIPTOR_v1& d) {
  return {d.Width, d.Height, d.Depth, d.Format, d.NumChannels, d.Flags};
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

// What does not fit reads as the largest number, as in cuDeviceTotalMem.
unsigned int at_most(uint64_t wide) { return wide > ~0u ? ~0u : static_cast<unsigned int>(wide); }

CUresult get_info(unsigned int* free_bytes, unsigned int* total_bytes) {
  size_t free_wide = 0, total_wide = 0;
  const CUresult result = cuMemGetInfo_v2(&free_wide, &total_wide);
  if (result != CUDA_SUCCESS) return result;
  if (free_bytes != nullptr) *free_bytes = at_most(free_wide);
  if (total_bytes != nullptr) *total_bytes = at_most(total_wide);
  return CUDA_SUCCESS;
}

CUresult get_range(CUdeviceptr_v1* base, unsigned int* bytes, CUdeviceptr_v1 p) {
  CUdeviceptr wide = 0;
  size_t length = 0;
  CUresult result = cuMemGetAddressRange_v2(&wide, &length, p);
  if (base != nullptr) result = narrow(result, wide, base);
  return bytes != nullptr ? narrow(result, length, bytes) : result;
}

CUresult get_global(CUdeviceptr_v1* p, unsigned int* bytes, CUmodule module, const char* name) {
  CUdeviceptr wide = 0;
  size_t length = 0;
  CUresult result = cuModuleGetGlobal_v2(&wide, &length, module, name);
  if (p != nullptr) result = narrow(result, wide, p);
  return bytes != nullptr ? narrow(result, length, bytes) : result;
}

CUresult get_device_pointer(CUdeviceptr_v1* p, void* host, unsigned int flags) {
  CUdeviceptr wide = 0;
  const CUresult result = cuMemHostGetDevicePointer_v2(p == nullptr ? nullptr : &wide, host, flags);
  return narrow(result, wide, p);
}

CUresult create_flat(CUarray* array, const CUDA_ARRAY_DESCRIPTOR_v1* shape) {
  if (shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_ARRAY_DESCRIPTOR wide = widen(*shape);
  return cuArrayCreate_v2(array, &wide);
}

CUresult create_deep(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR_v1* shape) {
  if (shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_ARRAY3D_DESCRIPTOR wide = widen(*shape);
  return cuArray3DCreate_v2(array, &wide);
}

// No array is so large that 32 bits do not hold its sides.
CUresult describe_deep(CUDA_ARRAY3D_DESCRIPTOR_v1* shape, CUarray array) {
  CUDA_ARRAY3D_DESCRIPTOR wide{};
  const CUresult result = cuArray3DGetDescriptor_v2(shape == nullptr ? nullptr : &wide, array);
  if (result != CUDA_SUCCESS) return result;
  *shape = {at_most(wide.Width), at_most(wide.Height), at_most(wide.Depth),
            wide.Format,         wide.NumChannels,     wide.Flags};
  return CUDA_SUCCESS;
}

CUresult describe_flat(CUDA_ARRAY_DESCRIPTOR_v1* shape, CUarray array) {
  CUDA_ARRAY_DESCRIPTOR wide{};
  const CUresult result = cuArrayGetDescriptor_v2(shape == nullptr ? nullptr : &wide, array);
  if (result != CUDA_SUCCESS) return result;
  *shape = {at_most(wide.Width), at_most(wide.Height), wide.Format, wide.NumChannels};
  return CUDA_SUCCESS;
}

}  // namespace

OldCall::OldCall() { ++inside; }
OldCall::~OldCall() { --inside; }

bool refused_by_old_context(const char* symbol) { return inside == 0 && is_successor(symbol); }

CUresult narrow(CUresult result, uint64_t wide, unsigned int* out) {
  if (result != CUDA_SUCCESS) return result;
  if (wide > ~0u) return CUDA_ERROR_INVALID_VALUE;
  *out = static_cast<unsigned int>(wide);
  return CUDA_SUCCESS;
}

}  // namespace simgpu

using namespace simgpu;

SIM_OLD(cuMemAlloc, (CUdeviceptr_v1 * p, unsigned int bytes), allocate(p, bytes));
SIM_OLD(cuMemAllocPitch,
        (CUdeviceptr_v1 * p, unsigned int* pitch, unsigned int width, unsigned int height,
         unsigned int element),
        allocate_rows(p, pitch, width, height, element));
SIM_OLD(cuMemFree, (CUdeviceptr_v1 p), cuMemFree_v2(p));
SIM_OLD(cuMemGetInfo, (unsigned int* free_bytes, unsigned int* total_bytes),
        get_info(free_bytes, total_bytes));
SIM_OLD(cuMemGetAddressRange, (CUdeviceptr_v1 * base, unsigned int* bytes, CUdeviceptr_v1 p),
        get_range(base, bytes, p));
SIM_OLD(cuMemHostGetDevicePointer, (CUdeviceptr_v1 * p, void* host, unsigned int flags),
        get_device_pointer(p, host, flags));
SIM_OLD(cuModuleGetGlobal,
        (CUdeviceptr_v1 * p, unsigned int* bytes, CUmodule module, const char* name),
        get_global(p, bytes, module, name));
SIM_OLD(cuArrayCreate, (CUarray * array, const CUDA_ARRAY_DESCRIPTOR_v1* shape),
        create_flat(array, shape));
SIM_OLD(cuArray3DCreate, (CUarray * array, const CUDA_ARRAY3D_DESCRIPTOR_v1* shape),
        create_deep(array, shape));
SIM_OLD(cuArrayGetDescriptor, (CUDA_ARRAY_DESCRIPTOR_v1 * shape, CUarray array),
        describe_flat(shape, array));
SIM_OLD(cuArray3DGetDescriptor, (CUDA_ARRAY3D_DESCRIPTOR_v1 * shape, CUarray array),
        describe_deep(shape, array));
