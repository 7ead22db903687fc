// SPDX-License-Identifier: Apache-2.0
// Simulated NVML: load, heat, power, clocks and modes, most of them as the server reports them.
#include "simgpu/nvml_world.h"

using namespace simgpu::nvml;

namespace {

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

METE_NVML nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int* milliwatts) {
  const CardCall call(device);
  return call.error() != NVML_SUCCESS ? call.error() : put(milliwatts, call.card().power_mw);
}
METE_NVML nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int* limit) {
  return power_limit(device, limit);
}

METE_NVML nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int* mhz) {
  return clock(CardCall(device), type, false, mhz);
}
METE_NVML nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int* mhz) {
  return clock(CardCall(device), type, true, mhz);
}

METE_NVML nvmlDeviceGetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t* mode) {
  return constant(device, mode, NVML_FEATURE_ENABLED);
}
METE_NVML nvmlDeviceGetComputeMode(nvmlDevice_t device, nvmlComputeMode_t* mode) {
  return constant(device, mode, NVML_COMPUTEMODE_DEFAULT);
}

METE_NVML nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int* current, unsigned int* pending) {
  const CardCall call(device);
  if (call.error() != NVML_SUCCESS) return call.error();
  if (current == nullptr || pending == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (!call.model().mig) return NVML_ERROR_NOT_SUPPORTED;
  *current = *pending = NVML_DEVICE_MIG_DISABLE;
  return NVML_SUCCESS;
}
