// SPDX-License-Identifier: Apache-2.0
// cuGetProcAddress as the real driver answers (checked on driver 580): the second version succeeds
// with a null pointer and a status for a name that is unknown or too new; the first version fails
// with CUDA_ERROR_NOT_FOUND and leaves the pointer alone.
#include "simgpu/procaddr.h"

#include "simgpu/driver.h"

namespace {

constexpr int kDriverVersion = 13000;

CUresult check(const char* name, void** out, int version, cuuint64_t flags) {
  if (name == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return flags > 3 || version > kDriverVersion ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

}  // namespace

using namespace simgpu;

extern "C" CUresult cuGetProcAddress(const char* name, void** out, int version, cuuint64_t flags) {
  SIM_ENTRY_FREE(cuGetProcAddress);
  const CUresult wrong = check(name, out, version, flags);
  if (wrong != CUDA_SUCCESS) return wrong;
  Function function = nullptr;
  if (look_up(name, version, (flags & 2) != 0, &function) != Found::kYes) {
    return CUDA_ERROR_NOT_FOUND;
  }
  *out = reinterpret_cast<void*>(function);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuGetProcAddress_v2(const char* name, void** out, int version, cuuint64_t flags,
                                        CUdriverProcAddressQueryResult* status) {
  SIM_ENTRY_FREE(cuGetProcAddress_v2);
  const CUresult wrong = check(name, out, version, flags);
  if (wrong != CUDA_SUCCESS) return wrong;
  Function function = nullptr;
  const Found found = look_up(name, version, (flags & 2) != 0, &function);
  *out = found == Found::kYes ? reinterpret_cast<void*>(function) : nullptr;
  if (status != nullptr) {
    *status = found == Found::kYes           ? CU_GET_PROC_ADDRESS_SUCCESS
              : found == Found::kUnknownName ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
                                             : CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
  }
  return CUDA_SUCCESS;
}
