// SPDX-License-Identifier: Apache-2.0
// See cuda_library.h.
#include "park/cuda_library.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <cstdint>

#include "abi/cuda_card.h"
#include "base/text.h"

namespace mete::park {

namespace {

Error failed(const Card& card, const char* function, CUresult result) {
  const std::string message = std::string(function) + " failed: " + card.name_of(result);
  return result == CUDA_ERROR_OUT_OF_MEMORY ? Error::exhausted(message) : Error::io(message);
}

}  // namespace

Result<Cuda> open_cuda(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    return Error::not_found("cannot open " + path).with_evidence(why != nullptr ? why : "");
  }
  Cuda cuda;
#define METE_PARK_CUDA_LOOKUP(name)                                      \
  cuda.name = reinterpret_cast<decltype(&::name)>(dlsym(handle, #name)); \
  if (cuda.name == nullptr) return Error::unsupported(path + " has no " #name);
  METE_PARK_CUDA_FUNCTIONS(METE_PARK_CUDA_LOOKUP)
#undef METE_PARK_CUDA_LOOKUP
  return cuda;
}

std::string Card::name_of(CUresult result) const {
  const char* name = nullptr;
  if (cuda.cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) name = "?";
  return std::string(name) + " (" + std::to_string(static_cast<int>(result)) + ")";
}

Result<Card> open_card(const std::string& library, const std::string& uuid) {
  if (setenv("CUDA_VISIBLE_DEVICES", uuid.c_str(), 1) != 0)
    return Error::io("cannot choose the card");
  Result<Cuda> cuda = open_cuda(library);
  if (!cuda) return std::move(cuda).error();
  Card card{*cuda};
  if (const CUresult result = card.cuda.cuInit(0); result != CUDA_SUCCESS)
    return failed(card, "cuInit", result).within("card " + base::quote(uuid));
  int count = 0;
  if (const CUresult result = card.cuda.cuDeviceGetCount(&count); result != CUDA_SUCCESS)
    return failed(card, "cuDeviceGetCount", result);
  bool found = false;
  for (int i = 0; i < count && !found; ++i) {
    CUuuid bytes{};
    found = card.cuda.cuDeviceGet(&card.device, i) == CUDA_SUCCESS &&
            card.cuda.cuDeviceGetUuid(&bytes, card.device) == CUDA_SUCCESS &&
            abi::uuid_text(bytes.bytes).text == base::to_lower(uuid).replace(0, 3, "GPU");
  }
  if (!found) return Error::not_found("CUDA does not see the card " + base::quote(uuid));
  // A thread that waits for a copy sleeps; the cores are for the jobs.
  (void)card.cuda.cuDevicePrimaryCtxSetFlags_v2(card.device, CU_CTX_SCHED_BLOCKING_SYNC);
  if (const CUresult result = card.cuda.cuDevicePrimaryCtxRetain(&card.context, card.device);
      result != CUDA_SUCCESS)
    return failed(card, "cuDevicePrimaryCtxRetain", result);
  if (const CUresult result = card.enter(); result != CUDA_SUCCESS)
    return failed(card, "cuCtxSetCurrent", result);
  return card;
}

}  // namespace mete::park
