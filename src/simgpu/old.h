// SPDX-License-Identifier: Apache-2.0
// An entry point of CUDA 3.1 whose meaning changed in 3.2 (32-bit sizes and addresses): it works in
// contexts of its own kind alone, and does there what its successor does elsewhere.
//   SIM_OLD(cuMemFree, (CUdeviceptr_v1 p), cuMemFree_v2(p))
#pragma once

#include "simgpu/state.h"

namespace simgpu {

// While one of them lives, the calling thread may use today's functions in an old context.
class OldCall {
 public:
  OldCall();
  ~OldCall();
  OldCall(const OldCall&) = delete;
  OldCall& operator=(const OldCall&) = delete;
};

// 32 bits out of what a successor answered; CUDA_ERROR_INVALID_VALUE where they do not hold it.
CUresult narrow(CUresult result, uint64_t wide, unsigned int* out);

}  // namespace simgpu

#define SIM_OLD(name, parameters, call)                                        \
  extern "C" CUresult name parameters {                                        \
    SIM_ENTRY_CONTEXT(name);                                                   \
    if (!simgpu::is_old(current_context())) return CUDA_ERROR_INVALID_CONTEXT; \
    const simgpu::OldCall inside;                                              \
    return call;                                                               \
  }                                                                            \
  static_assert(true, "ends with a semicolon")
