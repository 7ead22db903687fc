// SPDX-License-Identifier: Apache-2.0
// Simulated NVML: load, heat, power, clocks and modes, most of them as the server tells them.
#include "simgpu/nvml_world.h"

using namespace simgpu::nvml;

namespace {

constexpr unsigned kSlowdownTemperature = 87;

// An idle card runs at a fifth of its clock.
nvmlReturn_t clock(const CardCall& call, nvmlClockType_t type, bool highest, unsigned* out) {
  if (call.error() != NVML_SUCCESS) return call.error();
  if (out == nullptr || static_cast<unsigned>(type) >= NVML_CLOCK_COUNT)
    return NVML_ERROR_INVALID_ARGUMENT;
  if (type == NVML_CLOCK_MEM) return put(out, call.card().memory_clock_mhz);
  const unsigned top =
      type == NVML_CLOCK_VIDEO ? call.card().sm_clock_mhz * 7 / 8 : call.card().sm_clock_mhz;
  return put(out, highest || call.card().utilisation_pct > 0 ? top : top / 5);
}

nvmlReturn_t power_limit(nvmlDevice_t device, unsigned* limit) {
  const CardCall call(device);
  return call.error() != NVML_SUCCESS ? call.error() : put(limit, call.card().power_limit_mw);
}

nvmlReturn_t performance(nvmlDevice_t device, nvmlPstates_t* state) {
  const CardCall call(device);
  if (call.error() != NVML_SUCCESS) return call.error();
  return put(state, call.model().datacenter || call.card().utilisation_pct > 0 ? NVML_PSTATE_0
                                                                               : NVML_PSTATE_8);
}

// Bit 0 is "idle", the only reason that the simulation knows.
nvmlReturn_t clock_reasons(nvmlDevice_t device, unsigned long long* reasons) {
  const CardCall call(device);
  return call.error() != NVML_SUCCESS ? call.error()
                                      : put(reasons, call.card().utilisation_pct == 0 ? 1 : 0);
}

// For encoder and decoder: nothing ever runs on them.
nvmlReturn_t engine(nvmlDevice_t device, unsigned* busy, unsigned* period_us) {
  const CardCall call(device);
  if (call.error() != NVML_SUCCESS) return call.error();
  if (busy == nullptr || period_us == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *busy = 0;
  *period_us = 167000;
  return NVML_SUCCESS;
}

template <typename T, typename V>
nvmlReturn_t constant(nvmlDevice_t device, T* out, V value) {
  const CardCall call(device);
  return call.error() != NVML_SUCCESS ? call.error() : put(out, value);
}

}  // namespace

METE_NVML nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t* out) {
  const CardCall call(device);
  if (call.error() != NVML_SUCCESS) return call.error();
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  out->gpu = call.card().utilisation_pct;
  out->memory = call.card().memory_utilisation_pct;
  return NVML_SUCCESS;
}
METE_NVML nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned int* busy,
                                          unsigned int* period_us) {
  return engine(device, busy, period_us);
}
METE_NVML nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned int* busy,
                                          unsigned int* period_us) {
  return engine(device, busy, period_us);
}
METE_NVML nvmlDeviceGetPcieThroughput(nvmlDevice_t device, nvmlPcieUtilCounter_t counter,
                                      unsigned int* kib_s) {
  if (static_cast<unsigned>(counter) >= NVML_PCIE_UTIL_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
  return constant(device, kib_s, 0);
}

METE_NVML nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor,
                                   unsigned int* out) {
  const CardCall call(device);
  if (call.error() != NVML_SUCCESS) return call.error();
  return sensor != NVML_TEMPERATURE_GPU ? NVML_ERROR_INVALID_ARGUMENT
                                        : put(out, call.card().temperature_c);
}
METE_NVML nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t* out) {
  const CardCall call(device);
  if (call.error() != NVML_SUCCESS) return call.error();
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (out->version != nvmlTemperature_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  if (out->sensorType != NVML_TEMPERATURE_GPU) return NVML_ERROR_INVALID_ARGUMENT;
  return put(&out->temperature, call.card().temperature_c);
}
METE_NVML nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, nvmlTemperatureThresholds_t kind,
                                            unsigned int* out) {
  const CardCall call(device);
  if (call.error() != NVML_SUCCESS) return call.error();
  switch (kind) {
    case NVML_TEMPERATURE_THRESHOLD_SHUTDOWN:
      return put(out, kSlowdownTemperature + 5);
    case NVML_TEMPERATURE_THRESHOLD_SLOWDOWN:
      return put(out, kSlowdownTemperature);
    case NVML_TEMPERATURE_THRESHOLD_MEM_MAX:
      return put(out, kSlowdownTemperature + 8);
    case NVML_TEMPERATURE_THRESHOLD_GPU_MAX:
      return put(out, kSlowdownTemperature - 2);
    default:
      return NVML_ERROR_NOT_SUPPORTED;
  }
}

METE_NVML nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int* milliwatts) {
  const CardCall call(device);
  return call.error() != NVML_SUCCESS ? call.error() : put(milliwatts, call.card().power_mw);
}
METE_NVML nvmlDeviceGetPowerManagementMode(nvmlDevice_t device, nvmlEnableState_t* mode) {
  return constant(device, mode, NVML_FEATURE_ENABLED);
}
METE_NVML nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned int* limit) {
  return power_limit(device, limit);
}
METE_NVML nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t device, unsigned int* limit) {
  return power_limit(device, limit);
}
METE_NVML nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int* limit) {
  return power_limit(device, limit);
}
METE_NVML nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned int* lowest,
                                                       unsigned int* highest) {
  const CardCall call(device);
  if (call.error() != NVML_SUCCESS) return call.error();
  if (lowest == nullptr || highest == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *highest = call.card().power_limit_mw;
  *lowest = *highest * 2 / 7;
  return NVML_SUCCESS;
}

METE_NVML nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int* mhz) {
  return clock(CardCall(device), type, false, mhz);
}
METE_NVML nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int* mhz) {
  return clock(CardCall(device), type, true, mhz);
}
METE_NVML nvmlDeviceGetApplicationsClock(nvmlDevice_t device, nvmlClockType_t type,
                                         unsigned int* mhz) {
  return clock(CardCall(device), type, true, mhz);
}
METE_NVML nvmlDeviceGetDefaultApplicationsClock(nvmlDevice_t device, nvmlClockType_t type,
                                                unsigned int* mhz) {
  return clock(CardCall(device), type, true, mhz);
}
METE_NVML nvmlDeviceGetMaxCustomerBoostClock(nvmlDevice_t device, nvmlClockType_t type,
                                             unsigned int* mhz) {
  return clock(CardCall(device), type, true, mhz);
}
METE_NVML nvmlDeviceGetClock(nvmlDevice_t device, nvmlClockType_t type, nvmlClockId_t id,
                             unsigned int* mhz) {
  return clock(CardCall(device), type, id != NVML_CLOCK_ID_CURRENT, mhz);
}
METE_NVML nvmlDeviceGetPerformanceState(nvmlDevice_t device, nvmlPstates_t* state) {
  return performance(device, state);
}
METE_NVML nvmlDeviceGetPowerState(nvmlDevice_t device, nvmlPstates_t* state) {
  return performance(device, state);
}
METE_NVML nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long* reasons) {
  return clock_reasons(device, reasons);
}
METE_NVML nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device,
                                                    unsigned long long* reasons) {
  return clock_reasons(device, reasons);
}

METE_NVML nvmlDeviceGetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t* mode) {
  return constant(device, mode, NVML_FEATURE_ENABLED);
}
METE_NVML nvmlDeviceGetComputeMode(nvmlDevice_t device, nvmlComputeMode_t* mode) {
  return constant(device, mode, NVML_COMPUTEMODE_DEFAULT);
}
METE_NVML nvmlDeviceGetDisplayMode(nvmlDevice_t device, nvmlEnableState_t* mode) {
  return constant(device, mode, NVML_FEATURE_DISABLED);
}
METE_NVML nvmlDeviceGetDisplayActive(nvmlDevice_t device, nvmlEnableState_t* mode) {
  return constant(device, mode, NVML_FEATURE_DISABLED);
}
METE_NVML nvmlDeviceGetAccountingMode(nvmlDevice_t device, nvmlEnableState_t* mode) {
  return constant(device, mode, NVML_FEATURE_DISABLED);
}

METE_NVML nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int* current, unsigned int* pending) {
  const CardCall call(device);
  if (call.error() != NVML_SUCCESS) return call.error();
  if (current == nullptr || pending == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (!call.model().mig) return NVML_ERROR_NOT_SUPPORTED;
  *current = *pending = NVML_DEVICE_MIG_DISABLE;
  return NVML_SUCCESS;
}
METE_NVML nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int* count) {
  const CardCall call(device);
  return call.error() != NVML_SUCCESS ? call.error() : put(count, call.model().mig ? 7 : 0);
}
METE_NVML nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int,
                                              nvmlDevice_t* slice) {
  const CardCall call(device);
  if (call.error() != NVML_SUCCESS) return call.error();
  if (slice == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return call.model().mig ? NVML_ERROR_NOT_FOUND : NVML_ERROR_NOT_SUPPORTED;
}
METE_NVML nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int* is_slice) {
  return constant(device, is_slice, 0);
}
