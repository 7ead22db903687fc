// SPDX-License-Identifier: Apache-2.0
// Names and texts of results. The texts are our own; programs print them, none compares them.
#include "simgpu/driver.h"

namespace {

const char* name_of(CUresult result) {
  switch (static_cast<int>(result)) {
#define CUDA_RESULT(name, value) \
  case value:                    \
    return #name;
#include "abi/cuda_results.def"
#undef CUDA_RESULT
    default:
      return nullptr;
  }
}

const char* text_of(CUresult result) {
  switch (result) {
    case CUDA_SUCCESS:
      return "no error";
    case CUDA_ERROR_INVALID_VALUE:
      return "invalid argument";
    case CUDA_ERROR_OUT_OF_MEMORY:
      return "out of memory";
    case CUDA_ERROR_NOT_INITIALIZED:
      return "the driver is not initialised in this process";
    case CUDA_ERROR_NO_DEVICE:
      return "no card was found";
    case CUDA_ERROR_INVALID_DEVICE:
      return "no such card";
    case CUDA_ERROR_INVALID_CONTEXT:
      return "there is no valid current context";
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
      return "the card is busy or gone";
    case CUDA_ERROR_NOT_SUPPORTED:
      return "not supported";
    default:
      return nullptr;
  }
}

}  // namespace

extern "C" CUresult cuGetErrorName(CUresult result, const char** text) {
  SIM_ENTRY_FREE(cuGetErrorName);
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *text = name_of(result);
  return *text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

extern "C" CUresult cuGetErrorString(CUresult result, const char** text) {
  SIM_ENTRY_FREE(cuGetErrorString);
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *text = text_of(result);
  if (*text == nullptr) *text = name_of(result);
  return *text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// The private tables of the CUDA runtime are not simulated: programs of the runtime do not run
// here.
extern "C" CUresult cuGetExportTable(const void** table, const CUuuid*) {
  SIM_ENTRY_FREE(cuGetExportTable);
  if (table != nullptr) *table = nullptr;
  return CUDA_ERROR_INVALID_VALUE;
}
