// SPDX-License-Identifier: Apache-2.0
// The CUDA driver, opened at run time, and one card of it. Nothing of ours links with the driver;
// it is never closed, since its threads live as long as the process.
#pragma once

#include <string>

#include "abi/cuda_api.h"
#include "base/result.h"

namespace mete::park {

// By exported name; all of them are in every libcuda since CUDA 11.0.
#define METE_PARK_CUDA_FUNCTIONS(F) \
  F(cuInit)                         \
  F(cuGetErrorName)                 \
  F(cuDeviceGetCount)               \
  F(cuDeviceGet)                    \
  F(cuDeviceGetUuid)                \
  F(cuDevicePrimaryCtxRetain)       \
  F(cuDevicePrimaryCtxSetFlags_v2)  \
  F(cuCtxSetCurrent)                \
  F(cuMemHostAlloc)                 \
  F(cuMemFreeHost)                  \
  F(cuMemAddressReserve)            \
  F(cuMemAddressFree)               \
  F(cuMemImportFromShareableHandle) \
  F(cuMemMap)                       \
  F(cuMemSetAccess)                 \
  F(cuMemUnmap)                     \
  F(cuMemRelease)                   \
  F(cuMemcpyDtoHAsync_v2)           \
  F(cuMemcpyHtoDAsync_v2)           \
  F(cuStreamCreate)                 \
  F(cuStreamSynchronize)            \
  F(cuEventCreate)                  \
  F(cuEventRecord)                  \
  F(cuEventSynchronize)

struct Cuda {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a name cannot stand in parentheses here
#define METE_PARK_CUDA_MEMBER(name) decltype(&::name) name = nullptr;
  METE_PARK_CUDA_FUNCTIONS(METE_PARK_CUDA_MEMBER)
#undef METE_PARK_CUDA_MEMBER
};

// By path, or by name through the loader's search. not_found without one, unsupported when it lacks
// a function.
Result<Cuda> open_cuda(const std::string& path);

// A card with its primary context. Each thread that calls the driver enters first.
struct Card {
  Cuda cuda;
  CUdevice device = 0;
  CUcontext context = nullptr;

  CUresult enter() const { return cuda.cuCtxSetCurrent(context); }
  // "CUDA_ERROR_OUT_OF_MEMORY (2)".
  std::string name_of(CUresult result) const;
};

// `uuid` as "GPU-8-4-4-4-12". The process then sees only this card, so that memory of another one
// cannot be imported; for that it must come before any other call into the driver. exhausted: the
// card has no room for a context.
Result<Card> open_card(const std::string& library, const std::string& uuid);

}  // namespace mete::park
