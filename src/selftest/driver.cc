// SPDX-License-Identifier: Apache-2.0
// See driver.h.
#include "selftest/driver.h"

#include <dlfcn.h>

#include <cstdlib>

#include "selftest/rows.h"

namespace mete::selftest {

namespace {

[[noreturn]] void give_up(const char* entry, const std::string& why) {
  { Check(kRoads, entry).that(false, why); }
  std::exit(1);
}

void* function_of(void* library, const char* file, const char* name) {
  if (library == nullptr) give_up(name, std::string(file) + " cannot be opened");
  void* found = dlsym(library, name);
  if (found == nullptr) give_up(name, std::string(file) + " has no such name");
  return found;
}

void must(CUresult result, const char* call) {
  if (result != CUDA_SUCCESS) give_up(call, "answered " + describe(result));
}

}  // namespace

void* cuda_function(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return function_of(library, "libcuda.so.1", name);
}

void* nvml_function(const char* name) {
  static void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  return function_of(library, "libnvidia-ml.so.1", name);
}

void* nvml_function_in(const char* file, const char* name) {
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : dlsym(library, name);
}

std::string describe(CUresult result) {
  const char* name = nullptr;
  if (CU(cuGetErrorName)(result, &name) != CUDA_SUCCESS || name == nullptr) name = "unknown";
  return std::to_string(static_cast<int>(result)) + " (" + name + ")";
}

Card start_without_context() {
  Card card;
  must(CU(cuInit)(0), "cuInit");
  must(CU(cuDeviceGet)(&card.device, 0), "cuDeviceGet");
  return card;
}

Card start() {
  Card card = start_without_context();
  must(CU(cuDevicePrimaryCtxRetain)(&card.context, card.device), "cuDevicePrimaryCtxRetain");
  must(CU(cuCtxSetCurrent)(card.context), "cuCtxSetCurrent");
  // A context that was not charged when it was created is charged at its first use: now, so that it
  // is part of what the checks compare with.
  std::size_t free = 0;
  std::size_t total = 0;
  must(CU(cuMemGetInfo_v2)(&free, &total), "cuMemGetInfo_v2");
  CUdeviceptr first = 0;
  must(CU(cuMemAlloc_v2)(&first, kGranule), "cuMemAlloc_v2");
  must(CU(cuMemFree_v2)(first), "cuMemFree_v2");
  return card;
}

std::uint64_t reserved_by(CUmemoryPool pool) {
  cuuint64_t bytes = 0;
  (void)CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes);
  return bytes;
}

}  // namespace mete::selftest
