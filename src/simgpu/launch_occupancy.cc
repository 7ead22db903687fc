// SPDX-License-Identifier: Apache-2.0
// What a kernel would need and how many blocks of it fit: attributes and occupancy, by the limits
// of an SM (2048 threads, 32 blocks, 64 Ki registers, 228 KiB of shared memory).
#include "simgpu/launch.h"

namespace simgpu {
namespace {

constexpr int kThreads = 2048;
constexpr int kBlocks = 32;
constexpr int kRegisters = 65536;
constexpr size_t kShared = 233472;
constexpr size_t kSharedPerBlockReserve = 1024;
constexpr int kMaxDynamicShared = 232448;

using BlockToShared = size_t (*)(int block);

int blocks_per_sm(const Function* function, int block, size_t dynamic) {
  const int threads = (block + 31) / 32 * 32;
  int blocks = kThreads / threads;
  if (blocks > kBlocks) blocks = kBlocks;
  const int registers = static_cast<int>(function->spec->registers) * threads;
  if (registers > 0 && blocks > kRegisters / registers) blocks = kRegisters / registers;
  const size_t shared = function->spec->shared_bytes + dynamic + kSharedPerBlockReserve;
  const int by_shared = static_cast<int>(kShared / shared);
  return blocks < by_shared ? blocks : by_shared;
}

CUresult attribute_of(const Function* function, CUfunction_attribute id, int* out) {
  const CardInfo& card = device_of(function->module->context)->info;
  const int version = static_cast<int>(card.cc_major * 10 + card.cc_minor);
  switch (id) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *out = static_cast<int>(function->spec->max_threads);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *out = static_cast<int>(function->spec->shared_bytes);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *out = static_cast<int>(function->spec->local_bytes);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *out = static_cast<int>(function->spec->registers);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *out = version;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *out = function->max_dynamic_shared;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *out = function->carveout;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      *out = 0;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult set_attribute(Function* function, CUfunction_attribute id, int value) {
  switch (id) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      if (value < 0 || value > kMaxDynamicShared) return CUDA_ERROR_INVALID_VALUE;
      function->max_dynamic_shared = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
      function->carveout = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult active_blocks(int* out, CUfunction handle, int block, size_t dynamic) {
  const Guard guard;
  CUresult result = CUDA_SUCCESS;
  const Function* const function = find_function(handle, &result);
  if (function == nullptr) return result;
  if (out == nullptr || block <= 0) return CUDA_ERROR_INVALID_VALUE;
  *out = block > static_cast<int>(function->spec->max_threads)
             ? 0
             : blocks_per_sm(function, block, dynamic);
  return CUDA_SUCCESS;
}

// The block size with the most threads on an SM, the largest such; and the grid that fills the
// card.
CUresult best_block(int* grid, int* block, CUfunction handle, BlockToShared shared_of,
                    size_t dynamic, int limit) {
  CUresult result = CUDA_SUCCESS;
  const Function* function = nullptr;
  {
    const Guard guard;
    function = find_function(handle, &result);
  }
  if (function == nullptr) return result;
  if (grid == nullptr || block == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const int most = limit > 0 && limit < 1024 ? limit : 1024;
  int best_threads = 0;
  *block = 0;
  for (int size = most / 32 * 32; size >= 32; size -= 32) {
    const size_t shared = shared_of != nullptr ? shared_of(size) : dynamic;
    const int threads = blocks_per_sm(function, size, shared) * size;
    if (threads <= best_threads) continue;
    best_threads = threads;
    *block = size;
  }
  const int sms = static_cast<int>(device_of(function->module->context)->info.sms);
  *grid = *block == 0 ? 0 : best_threads / *block * sms;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

extern "C" {

CUresult cuFuncGetAttribute(int* out, CUfunction_attribute id, CUfunction handle) {
  SIM_ENTRY(cuFuncGetAttribute);
  const Guard guard;
  CUresult result = CUDA_SUCCESS;
  const Function* const function = find_function(handle, &result);
  if (function == nullptr) return result;
  return out == nullptr ? CUDA_ERROR_INVALID_VALUE : attribute_of(function, id, out);
}
CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute id, int value) {
  SIM_ENTRY(cuFuncSetAttribute);
  const Guard guard;
  CUresult result = CUDA_SUCCESS;
  Function* const function = find_function(handle, &result);
  return function == nullptr ? result : set_attribute(function, id, value);
}
CUresult cuKernelGetAttribute(int* out, CUfunction_attribute id, CUkernel handle, CUdevice) {
  SIM_ENTRY_CONTEXT(cuKernelGetAttribute);
  return cuFuncGetAttribute(out, id, reinterpret_cast<CUfunction>(handle));
}
CUresult cuKernelSetAttribute(CUfunction_attribute id, int value, CUkernel handle, CUdevice) {
  SIM_ENTRY_CONTEXT(cuKernelSetAttribute);
  return cuFuncSetAttribute(reinterpret_cast<CUfunction>(handle), id, value);
}
CUresult cuFuncSetCacheConfig(CUfunction, CUfunc_cache) {
  SIM_ENTRY(cuFuncSetCacheConfig);
  return CUDA_SUCCESS;
}
CUresult cuKernelSetCacheConfig(CUkernel, CUfunc_cache, CUdevice) {
  SIM_ENTRY(cuKernelSetCacheConfig);
  return CUDA_SUCCESS;
}
CUresult cuFuncSetSharedMemConfig(CUfunction, CUsharedconfig) {
  SIM_ENTRY(cuFuncSetSharedMemConfig);
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* out, CUfunction function, int block,
                                                     size_t dynamic) {
  SIM_ENTRY_CONTEXT(cuOccupancyMaxActiveBlocksPerMultiprocessor);
  return active_blocks(out, function, block, dynamic);
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* out, CUfunction function,
                                                              int block, size_t dynamic,
                                                              unsigned int) {
  SIM_ENTRY_CONTEXT(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags);
  return active_blocks(out, function, block, dynamic);
}
CUresult cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction function,
                                          BlockToShared shared_of, size_t dynamic, int limit) {
  SIM_ENTRY_CONTEXT(cuOccupancyMaxPotentialBlockSize);
  return best_block(grid, block, function, shared_of, dynamic, limit);
}
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, CUfunction function,
                                                   BlockToShared shared_of, size_t dynamic,
                                                   int limit, unsigned int) {
  SIM_ENTRY_CONTEXT(cuOccupancyMaxPotentialBlockSizeWithFlags);
  return best_block(grid, block, function, shared_of, dynamic, limit);
}
CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* out, CUfunction handle, int blocks,
                                                 int block) {
  SIM_ENTRY_CONTEXT(cuOccupancyAvailableDynamicSMemPerBlock);
  const Guard guard;
  CUresult result = CUDA_SUCCESS;
  const Function* const function = find_function(handle, &result);
  if (function == nullptr) return result;
  if (out == nullptr || blocks <= 0 || block <= 0) return CUDA_ERROR_INVALID_VALUE;
  const size_t share = kShared / static_cast<size_t>(blocks);
  const size_t fixed = function->spec->shared_bytes + kSharedPerBlockReserve;
  *out = share > fixed ? share - fixed : 0;
  return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxPotentialClusterSize(int* out, CUfunction, const CUlaunchConfig* config) {
  SIM_ENTRY_CONTEXT(cuOccupancyMaxPotentialClusterSize);
  if (out == nullptr || config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = 8;
  return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveClusters(int* out, CUfunction, const CUlaunchConfig* config) {
  SIM_ENTRY_CONTEXT(cuOccupancyMaxActiveClusters);
  if (out == nullptr || config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = static_cast<int>(device_of(current_context())->info.sms / 8);
  return CUDA_SUCCESS;
}

}  // extern "C"
