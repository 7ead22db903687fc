// SPDX-License-Identifier: Apache-2.0
// Simulated NVML: every exported name that is not modelled returns "not supported", the documented
// result for a card that lacks a feature. The definitions are weak: a modelled function elsewhere
// in the library takes the name, and nothing has to be listed twice. This file must not see
// nvml_api.h, since here all functions have one signature.
namespace simgpu::nvml {

// nvml_world.h's enter(), with the integer that its enum is: UNINITIALIZED, or SUCCESS.
int enter_plain();

}  // namespace simgpu::nvml

#define NVML_SYMBOL(name)                                              \
  extern "C" __attribute__((weak, visibility("default"))) int name() { \
    const int error = simgpu::nvml::enter_plain();                     \
    return error != 0 ? error : 3;                                     \
  }
#include "abi/nvml_symbols.def"
