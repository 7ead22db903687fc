// SPDX-License-Identifier: Apache-2.0
// How the test programs reach the driver: libcuda.so.1 by dlopen, as ordinary programs do, and each
// function by exactly its exported name: CU(cuMemAlloc_v2)(&pointer, bytes).
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "abi/cuda_api.h"

namespace driver_calls {

inline void* library = nullptr;

// The library that functions are taken from, from here on; the default is libcuda.so.1.
inline bool open_library(const char* path) {
  library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return library != nullptr;
}

// Ends the program when the library or the name is missing.
inline void* symbol(const char* name) {
  if (library != nullptr || open_library("libcuda.so.1"))
    if (void* const found = dlsym(library, name); found != nullptr) return found;
  std::fprintf(stderr, "no %s: %s\n", name, dlerror());
  std::_Exit(3);
}

}  // namespace driver_calls

#define CU(name) (reinterpret_cast<decltype(&::name)>(driver_calls::symbol(#name)))
