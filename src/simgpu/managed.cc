// SPDX-License-Identifier: Apache-2.0
// Where managed memory lives: prefetch moves it to a card (if there is room) or home; advice is
// taken and changes nothing.
#include "simgpu/state.h"

namespace simgpu {
namespace {

struct Prefetch {
  CUdeviceptr p;
  int device;  // -1: the host
};

CUresult run_prefetch(void* arguments) {
  const Prefetch* what = static_cast<Prefetch*>(arguments);
  const Guard guard;
  HostRange* range = host_find(static_cast<uintptr_t>(what->p));
  if (range != nullptr) managed_touch(range, what->device);
  return CUDA_SUCCESS;
}

bool is_managed(CUdeviceptr p, size_t bytes) {
  const Guard guard;
  const HostRange* range = host_find(static_cast<uintptr_t>(p));
  return range != nullptr && range->kind == HostKind::kManaged && bytes > 0 &&
         bytes <= range->base + range->bytes - p;
}

CUresult prefetch(CUdeviceptr p, size_t bytes, int device, CUstream stream, bool per_thread) {
  if (!is_managed(p, bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (device != -1 && !device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
  const Prefetch what{p, device};
  return stream_submit(stream, per_thread, run_prefetch, &what, sizeof what);
}

int device_of_location(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : -1;
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

extern "C" CUresult cuMemPrefetchAsync(CUdeviceptr p, size_t bytes, CUdevice device,
                                       CUstream stream) {
  SIM_ENTRY_CONTEXT(cuMemPrefetchAsync);
  return prefetch(p, bytes, device, stream, false);
}

extern "C" CUresult cuMemPrefetchAsync_ptsz(CUdeviceptr p, size_t bytes, CUdevice device,
                                            CUstream stream) {
  SIM_ENTRY_CONTEXT(cuMemPrefetchAsync_ptsz);
  return prefetch(p, bytes, device, stream, true);
}

extern "C" CUresult cuMemPrefetchAsync_v2(CUdeviceptr p, size_t bytes, CUmemLocation location,
                                          unsigned int flags, CUstream stream) {
  SIM_ENTRY_CONTEXT(cuMemPrefetchAsync_v2);
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return prefetch(p, bytes, device_of_location(location), stream, false);
}

extern "C" CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr p, size_t bytes, CUmemLocation location,
                                               unsigned int flags, CUstream stream) {
  SIM_ENTRY_CONTEXT(cuMemPrefetchAsync_v2_ptsz);
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return prefetch(p, bytes, device_of_location(location), stream, true);
}

extern "C" CUresult cuMemAdvise(CUdeviceptr p, size_t bytes, CUmem_advise, CUdevice) {
  SIM_ENTRY_CONTEXT(cuMemAdvise);
  return is_managed(p, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

extern "C" CUresult cuMemAdvise_v2(CUdeviceptr p, size_t bytes, CUmem_advise, CUmemLocation) {
  SIM_ENTRY_CONTEXT(cuMemAdvise_v2);
  return is_managed(p, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
