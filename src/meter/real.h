// SPDX-License-Identifier: Apache-2.0
// The real drivers: found where ld.so would have found them, loaded once, called by pointer.
#pragma once

#include <cstddef>

#include "abi/cuda_api.h"
#include "abi/nvml_api.h"

namespace mete::meter {

// One member for each entry of hooks.def and gates.def. A function that the driver lacks is
// nullptr.
struct Real {
#define HOOK(name, why) decltype(&::name) name;
#define CALL(name) decltype(&::name) name;
#define NVML_HOOK(name)
#define NVML_CALL(name)
#include "meter/hooks.def"
#undef HOOK
#undef CALL
#undef NVML_HOOK
#undef NVML_CALL
#define GATE(name) decltype(&::name) name;
#define PARK_HOOK(name) decltype(&::name) name;
#define PARK_GATED(name) decltype(&::name) name;
#define PARK_CALL(name) decltype(&::name) name;
#include "meter/gates.def"
#undef GATE
#undef PARK_HOOK
#undef PARK_GATED
#undef PARK_CALL
};

struct RealNvml {
#define HOOK(name, why)
#define CALL(name)
#define NVML_HOOK(name) decltype(&::name) name;
#define NVML_CALL(name) decltype(&::name) name;
#include "meter/hooks.def"
#undef HOOK
#undef CALL
#undef NVML_HOOK
#undef NVML_CALL
};

extern Real real;
extern RealNvml real_nvml;

// Loads libcuda (or NVML) on first use; safe from any thread and after fork. False when there is
// none.
bool load_cuda();
bool load_nvml();

// A function of any library in the program, or nullptr.
void* find_anywhere(const char* name);

// The hook for a function of the driver, or nullptr when the function is not hooked.
void* hook_for(void* driver_function);

}  // namespace mete::meter
