// SPDX-License-Identifier: Apache-2.0
// One weak definition for every name the driver exports: CUDA_ERROR_NOT_SUPPORTED. A real
// definition in another file of this folder replaces it at link time. Prototypes do not matter here
// (no argument is used), so abi/cuda_api.h must not be included.
#include "simgpu/trouble.h"

// clang-format off
#define CUDA_SYMBOL(name) \
  extern "C" __attribute__((weak, visibility("default"))) int name() { \
    return ::simgpu::not_modelled(#name); \
  }
#include "abi/cuda_symbols.def"
// clang-format on
