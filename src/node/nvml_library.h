// SPDX-License-Identifier: Apache-2.0
// NVML, opened at run time: nothing of ours links with the driver. Every function is a pointer that
// may be null, since an old NVML lacks the newer names; callers check first. Opening does not
// initialise.
#pragma once

#include <memory>
#include <string>

#include "abi/nvml_api.h"
#include "base/result.h"

namespace mete::node {

// The functions that node uses, by exported name.
#define METE_NODE_NVML_FUNCTIONS(F)             \
  F(nvmlInit)                                   \
  F(nvmlInit_v2)                                \
  F(nvmlInitWithFlags)                          \
  F(nvmlShutdown)                               \
  F(nvmlSystemGetDriverVersion)                 \
  F(nvmlSystemGetCudaDriverVersion)             \
  F(nvmlSystemGetCudaDriverVersion_v2)          \
  F(nvmlDeviceGetCount)                         \
  F(nvmlDeviceGetCount_v2)                      \
  F(nvmlDeviceGetHandleByIndex)                 \
  F(nvmlDeviceGetHandleByIndex_v2)              \
  F(nvmlDeviceGetName)                          \
  F(nvmlDeviceGetUUID)                          \
  F(nvmlDeviceGetPciInfo_v2)                    \
  F(nvmlDeviceGetPciInfo_v3)                    \
  F(nvmlDeviceGetMemoryInfo)                    \
  F(nvmlDeviceGetMemoryInfo_v2)                 \
  F(nvmlDeviceGetUtilizationRates)              \
  F(nvmlDeviceGetTemperature)                   \
  F(nvmlDeviceGetTemperatureV)                  \
  F(nvmlDeviceGetPowerUsage)                    \
  F(nvmlDeviceGetEnforcedPowerLimit)            \
  F(nvmlDeviceGetComputeMode)                   \
  F(nvmlDeviceGetMigMode)                       \
  F(nvmlDeviceGetPersistenceMode)               \
  F(nvmlDeviceGetMemoryAffinity)                \
  F(nvmlDeviceGetNvLinkState)                   \
  F(nvmlDeviceGetNvLinkRemoteDeviceType)        \
  F(nvmlDeviceGetNvLinkRemotePciInfo_v2)        \
  F(nvmlDeviceGetP2PStatus)                     \
  F(nvmlDeviceGetComputeRunningProcesses)       \
  F(nvmlDeviceGetComputeRunningProcesses_v2)    \
  F(nvmlDeviceGetComputeRunningProcesses_v3)    \
  F(nvmlDeviceGetGraphicsRunningProcesses)      \
  F(nvmlDeviceGetGraphicsRunningProcesses_v2)   \
  F(nvmlDeviceGetGraphicsRunningProcesses_v3)   \
  F(nvmlDeviceGetMPSComputeRunningProcesses)    \
  F(nvmlDeviceGetMPSComputeRunningProcesses_v2) \
  F(nvmlDeviceGetMPSComputeRunningProcesses_v3) \
  F(nvmlDeviceGetProcessUtilization)

class NvmlLibrary {
 public:
  // By path, or by name through the loader's search. not_found without one, corrupt if it is not
  // NVML.
  static Result<std::unique_ptr<NvmlLibrary>> open(const std::string& path);
  ~NvmlLibrary();
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;

// NOLINTNEXTLINE(bugprone-macro-parentheses): a name cannot stand in parentheses here
#define METE_NODE_NVML_MEMBER(name) decltype(&::name) name = nullptr;
  METE_NODE_NVML_FUNCTIONS(METE_NODE_NVML_MEMBER)
#undef METE_NODE_NVML_MEMBER

 private:
  explicit NvmlLibrary(void* handle) : handle_(handle) {}
  void* handle_;
};

// Calls the function if the library has it; otherwise FUNCTION_NOT_FOUND, which NVML itself uses
// for this.
template <typename... Parameters, typename... Arguments>
nvmlReturn_t try_nvml(nvmlReturn_t (*function)(Parameters...), Arguments... arguments) {
  return function == nullptr ? NVML_ERROR_FUNCTION_NOT_FOUND : function(arguments...);
}

// The function exists and the call is not available for this card or driver: try an older function.
constexpr bool is_missing(nvmlReturn_t result) {
  return result == NVML_ERROR_FUNCTION_NOT_FOUND || result == NVML_ERROR_NOT_SUPPORTED ||
         result == NVML_ERROR_ARGUMENT_VERSION_MISMATCH || result == NVML_ERROR_DEPRECATED;
}

constexpr bool is_lost(nvmlReturn_t result) {
  return result == NVML_ERROR_GPU_IS_LOST || result == NVML_ERROR_RESET_REQUIRED;
}

}  // namespace mete::node
