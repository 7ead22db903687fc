// SPDX-License-Identifier: Apache-2.0
// Primary contexts: one per card and process, counted. The struct stays over release and retain, as
// the real driver's handle does; in between it is marked ended.
#include "simgpu/state.h"

using namespace simgpu;

extern "C" CUresult cuDevicePrimaryCtxRetain(CUcontext* handle, CUdevice device) {
  SIM_ENTRY(cuDevicePrimaryCtxRetain);
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
  const Guard guard;
  Device* on = &driver.devices[device];
  if (on->primary_references == 0) {
    Context* made = nullptr;
    const CUresult result = context_make(device, on->primary_flags, true, &made);
    if (result != CUDA_SUCCESS) return result;
    on->primary = made;
  }
  ++on->primary_references;
  *handle = handle_of(on->primary);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  SIM_ENTRY(cuDevicePrimaryCtxRelease_v2);
  if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
  Device* on = &driver.devices[device];
  if (on->primary_references == 1) (void)context_synchronize(on->primary);
  const Guard guard;
  if (on->primary_references == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--on->primary_references == 0) context_end(on->primary);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  SIM_ENTRY_FREE(cuDevicePrimaryCtxRelease);
  return cuDevicePrimaryCtxRelease_v2(device);
}

extern "C" CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  SIM_ENTRY(cuDevicePrimaryCtxReset_v2);
  if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
  Device* on = &driver.devices[device];
  if (on->primary_references > 0) (void)context_synchronize(on->primary);
  const Guard guard;
  if (on->primary_references > 0) context_end(on->primary);
  on->primary_references = 0;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  SIM_ENTRY_FREE(cuDevicePrimaryCtxReset);
  return cuDevicePrimaryCtxReset_v2(device);
}

extern "C" CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags) {
  SIM_ENTRY(cuDevicePrimaryCtxSetFlags_v2);
  if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
  if ((flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) != 0) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Device* on = &driver.devices[device];
  on->primary_flags = flags;
  if (on->primary_references > 0) on->primary->flags = flags;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags) {
  SIM_ENTRY_FREE(cuDevicePrimaryCtxSetFlags);
  return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

extern "C" CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
  SIM_ENTRY(cuDevicePrimaryCtxGetState);
  if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
  const Guard guard;
  const Device& on = driver.devices[device];
  if (flags != nullptr) *flags = on.primary_flags;
  if (active != nullptr) *active = on.primary_references > 0 ? 1 : 0;
  return CUDA_SUCCESS;
}
