// SPDX-License-Identifier: Apache-2.0
// Green contexts: a number of SMs and the streams that run on them. The simulated card has no SMs
// to set aside, so a green context is its card's primary context with a recorded share; it keeps
// the primary context alive and takes no memory of its own.
#include "simgpu/stream.h"

namespace simgpu {
namespace {

constexpr unsigned kSmStep = 8;  // shares come in multiples of this

struct ResourceDescription {
  static constexpr uint32_t kMagic = 0x52444553;
  uint32_t magic = kMagic;
};

struct GreenContext {
  static constexpr uint32_t kMagic = 0x4752454e;
  uint32_t magic = kMagic;
  int device = 0;
  Context* primary = nullptr;
};

GreenContext* find_green(CUgreenCtx handle) {
  GreenContext* const green = reinterpret_cast<GreenContext*>(handle);
  return green != nullptr && green->magic == GreenContext::kMagic ? green : nullptr;
}

CUresult sm_resource(unsigned sms, CUdevResourceType type, CUdevResource* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  *out = {};
  out->type = CU_DEV_RESOURCE_TYPE_SM;
  out->sm.smCount = sms;
  out->sm.minSmPartitionSize = kSmStep;
  out->sm.smCoscheduledAlignment = kSmStep;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

extern "C" {

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource* out, CUdevResourceType type) {
  SIM_ENTRY(cuDeviceGetDevResource);
  if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
  return sm_resource(driver.devices[device].info.sms, type, out);
}

CUresult cuDevSmResourceSplitByCount(CUdevResource* groups, unsigned int* count,
                                     const CUdevResource* input, CUdevResource* rest, unsigned int,
                                     unsigned int wanted) {
  SIM_ENTRY(cuDevSmResourceSplitByCount);
  if (count == nullptr || input == nullptr || input->type != CU_DEV_RESOURCE_TYPE_SM)
    return CUDA_ERROR_INVALID_VALUE;
  const unsigned size = wanted == 0 ? kSmStep : (wanted + kSmStep - 1) / kSmStep * kSmStep;
  const unsigned most = input->sm.smCount / size;
  if (groups == nullptr) {
    *count = most;
    return CUDA_SUCCESS;
  }
  if (most == 0) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  if (*count > most) *count = most;
  for (unsigned i = 0; i < *count; i++)
    (void)sm_resource(size, CU_DEV_RESOURCE_TYPE_SM, &groups[i]);
  if (rest != nullptr)
    (void)sm_resource(input->sm.smCount - *count * size, CU_DEV_RESOURCE_TYPE_SM, rest);
  return CUDA_SUCCESS;
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* out, CUdevResource* resources,
                                   unsigned int count) {
  SIM_ENTRY(cuDevResourceGenerateDesc);
  if (out == nullptr || resources == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; i++)
    if (resources[i].type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  ResourceDescription* const description = make<ResourceDescription>();
  if (description == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = reinterpret_cast<CUdevResourceDesc>(description);
  return CUDA_SUCCESS;
}

// flags must be 1: streams of a green context are its own, the null stream is not.
CUresult cuGreenCtxCreate(CUgreenCtx* out, CUdevResourceDesc handle, CUdevice device,
                          unsigned int flags) {
  SIM_ENTRY(cuGreenCtxCreate);
  const ResourceDescription* const description =
      reinterpret_cast<const ResourceDescription*>(handle);
  if (out == nullptr || description == nullptr || flags != 1 ||
      description->magic != ResourceDescription::kMagic)
    return CUDA_ERROR_INVALID_VALUE;
  CUcontext primary = nullptr;
  const CUresult result = cuDevicePrimaryCtxRetain(&primary, device);
  if (result != CUDA_SUCCESS) return result;
  const Guard guard;
  GreenContext* const green = make<GreenContext>();
  if (green == nullptr) {
    (void)cuDevicePrimaryCtxRelease_v2(device);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  green->device = device;
  green->primary = find_context(primary);
  *out = reinterpret_cast<CUgreenCtx>(green);
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxDestroy(CUgreenCtx handle) {
  SIM_ENTRY(cuGreenCtxDestroy);
  GreenContext* const green = find_green(handle);
  if (green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const int device = green->device;
  green->magic = 0;
  destroy(green);
  return cuDevicePrimaryCtxRelease_v2(device);
}

CUresult cuCtxFromGreenCtx(CUcontext* out, CUgreenCtx handle) {
  SIM_ENTRY(cuCtxFromGreenCtx);
  const GreenContext* const green = find_green(handle);
  if (out == nullptr || green == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = handle_of(green->primary);
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxStreamCreate(CUstream* out, CUgreenCtx handle, unsigned int flags,
                                int priority) {
  SIM_ENTRY(cuGreenCtxStreamCreate);
  const GreenContext* const green = find_green(handle);
  if (out == nullptr || green == nullptr || flags != CU_STREAM_NON_BLOCKING)
    return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Stream* stream = nullptr;
  const CUresult result = create_stream(green->primary, flags, priority, &stream);
  if (result == CUDA_SUCCESS) *out = reinterpret_cast<CUstream>(stream);
  return result;
}

}  // extern "C"
