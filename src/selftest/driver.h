// SPDX-License-Identifier: Apache-2.0
// The drivers as an ordinary program uses them: libcuda.so.1 and libnvidia-ml.so.1 by dlopen, every
// function by exactly its exported name. CU(cuMemAlloc)(...) is the interface of CUDA 3.1,
// CU(cuMemAlloc_v2)(...) the current one: nothing is renamed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "abi/cuda_card.h"
#include "abi/nvml_api.h"

namespace mete::selftest {

inline constexpr std::size_t kMiB = std::size_t{1} << 20;
inline constexpr std::size_t kGranule = 2 * kMiB;  // physical memory comes in these

// Ends the process with a failed row when there is no such library or function.
void* cuda_function(const char* name);
void* nvml_function(const char* name);
// A function of a library of another name; nullptr when there is none.
void* nvml_function_in(const char* file, const char* name);

template <class Function>
Function* as_function(void* pointer) {
  return reinterpret_cast<Function*>(pointer);
}

#define CU(name) \
  (::mete::selftest::as_function<decltype(::name)>(::mete::selftest::cuda_function(#name)))
#define NVML(name) \
  (::mete::selftest::as_function<decltype(::name)>(::mete::selftest::nvml_function(#name)))

// "2 (CUDA_ERROR_OUT_OF_MEMORY)"
std::string describe(CUresult result);

// The first card that this process sees, with its primary context current. Ends the process with a
// failed row when that does not work.
struct Card {
  CUdevice device = 0;
  CUcontext context = nullptr;
};
Card start_without_context();
Card start();

std::uint64_t reserved_by(CUmemoryPool pool);

}  // namespace mete::selftest
