// SPDX-License-Identifier: Apache-2.0
// Preferences of a context about caches and shared memory: taken, and without effect, as on every
// card of the last ten years.
#include "simgpu/driver.h"

using namespace simgpu;

extern "C" {

CUresult cuCtxGetCacheConfig(CUfunc_cache* out) {
  SIM_ENTRY_CONTEXT(cuCtxGetCacheConfig);
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = 0;  // no preference
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  SIM_ENTRY_CONTEXT(cuCtxSetCacheConfig);
  return config < 0 || config > 3 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
CUresult cuCtxGetSharedMemConfig(CUsharedconfig* out) {
  SIM_ENTRY_CONTEXT(cuCtxGetSharedMemConfig);
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = 1;  // banks of four bytes
  return CUDA_SUCCESS;
}
CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
  SIM_ENTRY_CONTEXT(cuCtxSetSharedMemConfig);
  return config < 0 || config > 2 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
CUresult cuCtxResetPersistingL2Cache(void) {
  SIM_ENTRY_CONTEXT(cuCtxResetPersistingL2Cache);
  return CUDA_SUCCESS;
}

}  // extern "C"
