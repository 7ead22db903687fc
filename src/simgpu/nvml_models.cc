// SPDX-License-Identifier: Apache-2.0
#include "simgpu/nvml_models.h"

#include <string.h>

#include "abi/nvml_api.h"

namespace simgpu::nvml {
namespace {

constexpr Model kModels[] = {
    // word, architecture, NVLinks, MIG, datacenter
    {"B200", NVML_DEVICE_ARCH_BLACKWELL, 18, true, true},
    {"GH200", NVML_DEVICE_ARCH_HOPPER, 18, true, true},
    {"H200", NVML_DEVICE_ARCH_HOPPER, 18, true, true},
    {"H100 PCIe", NVML_DEVICE_ARCH_HOPPER, 0, true, true},
    {"H100", NVML_DEVICE_ARCH_HOPPER, 18, true, true},
    {"H20", NVML_DEVICE_ARCH_HOPPER, 18, true, true},
    {"L40S", NVML_DEVICE_ARCH_ADA, 0, false, true},
    {"L40", NVML_DEVICE_ARCH_ADA, 0, false, true},
    {"L4", NVML_DEVICE_ARCH_ADA, 0, false, true},
    {"A100-PCIE", NVML_DEVICE_ARCH_AMPERE, 0, true, true},
    {"A100", NVML_DEVICE_ARCH_AMPERE, 12, true, true},
    {"A30", NVML_DEVICE_ARCH_AMPERE, 0, true, true},
    {"A10G", NVML_DEVICE_ARCH_AMPERE, 0, false, true},
    {"A10", NVML_DEVICE_ARCH_AMPERE, 0, false, true},
    {"A40", NVML_DEVICE_ARCH_AMPERE, 0, false, true},
    {"A6000", NVML_DEVICE_ARCH_AMPERE, 0, false, true},
    {"T4", NVML_DEVICE_ARCH_TURING, 0, false, true},
    {"V100", NVML_DEVICE_ARCH_VOLTA, 6, false, true},
    {"P100", NVML_DEVICE_ARCH_PASCAL, 4, false, true},
    {"K80", NVML_DEVICE_ARCH_KEPLER, 0, false, true},
    {"M60", NVML_DEVICE_ARCH_MAXWELL, 0, false, true},
    {"RTX 5090", NVML_DEVICE_ARCH_BLACKWELL, 0, false, false},
    {"RTX 4090", NVML_DEVICE_ARCH_ADA, 0, false, false},
    {"RTX 3090", NVML_DEVICE_ARCH_AMPERE, 0, false, false},
    {"", NVML_DEVICE_ARCH_UNKNOWN, 0, false, true},
};

}  // namespace

const Model& model_of(const char* name) {
  for (const Model& model : kModels)
    if (strstr(name, model.word) != nullptr) return model;
  return kModels[sizeof(kModels) / sizeof(kModels[0]) - 1];
}

}  // namespace simgpu::nvml
