// SPDX-License-Identifier: Apache-2.0
// The needs of a kernel and how many blocks of it fit: attributes and occupancy, by the limits of
// an SM (2048 threads, 32 blocks, 64 Ki registers, 228 KiB of shared memory).
#include "simgpu/launch.h"

namespace simgpu {
namespace {

constexpr int kThreads = 2048;
constexpr int kBlocks = 32;
constexpr int kRegisters = 65536;
constexpr size_t kShared = 233472;
constexpr size_t kSharedPerBlockReserve = 1024;

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
      *out = kMaxDynamicShared;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *out = -1;
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

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* out, CUfunction function, int block,
                                                     size_t dynamic) {
  SIM_ENTRY_CONTEXT(cuOccupancyMaxActiveBlocksPerMultiprocessor);
  return active_blocks(out, function, block, dynamic);
}

}  // extern "C"
