// SPDX-License-Identifier: Apache-2.0
// Simulated NVML: initialisation, the system, and the ways to a device handle. NVML numbers the
// cards as the machine does: CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER have no effect here, as
// with the real library.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "simgpu/nvml_world.h"

using namespace simgpu;
using namespace simgpu::nvml;

namespace {

constexpr char kDriverVersion[] = "580.159.04";
constexpr int kCudaVersion = 13000;

// Finds the first card for which `matches` holds.
template <typename Matches>
nvmlReturn_t find(nvmlDevice_t* device, const Matches& matches) {
  const SystemCall call;
  if (call.error() != NVML_SUCCESS) return call.error();
  if (device == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  for (unsigned i = 0; i < call.reading().card_count; ++i) {
    if (!matches(i, call.reading().cards[i])) continue;
    if (is_lost(call.reading().cards[i])) return NVML_ERROR_GPU_IS_LOST;
    *device = handle_of(i);
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t handle_by_index(unsigned wanted, nvmlDevice_t* device) {
  const nvmlReturn_t result =
      find(device, [&](unsigned i, const CardInfo&) { return i == wanted; });
  return result == NVML_ERROR_NOT_FOUND ? NVML_ERROR_INVALID_ARGUMENT : result;
}

nvmlReturn_t handle_by_pci(const char* text, nvmlDevice_t* device) {
  if (text == nullptr)
    return enter() == NVML_SUCCESS ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_UNINITIALIZED;
  // "0000:17:00.0" and "00000000:17:00.0" are one address; so is "17:00.0".
  unsigned domain = 0, bus = 0, slot = 0;
  if (sscanf(text, "%x:%x:%x", &domain, &bus, &slot) != 3) {
    domain = 0;
    if (sscanf(text, "%x:%x", &bus, &slot) != 2)
      return enter() == NVML_SUCCESS ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_UNINITIALIZED;
  }
  return find(device, [&](unsigned, const CardInfo& card) {
    return card.pci_domain == domain && card.pci_bus == bus && card.pci_device == slot;
  });
}

// "GPU-xxxxxxxx-xxxx-..." to its sixteen bytes; false when it is not that.
bool uuid_bytes(const char* text, unsigned char* out) {
  if (strncmp(text, "GPU-", 4) != 0) return false;
  unsigned count = 0;
  for (const char* c = text + 4; *c != '\0' && count < 32; ++c) {
    if (*c == '-') continue;
    unsigned digit = 0;
    if (sscanf(c, "%1x", &digit) != 1) return false;
    const unsigned char high = static_cast<unsigned char>(count % 2 ? out[count / 2] : 0);
    out[count / 2] = static_cast<unsigned char>(high << 4 | digit);
    ++count;
  }
  return count == 32;
}

}  // namespace

METE_NVML nvmlInit(void) { return initialise(0); }
METE_NVML nvmlInit_v2(void) { return initialise(0); }
METE_NVML nvmlInitWithFlags(unsigned int flags) { return initialise(flags); }
METE_NVML nvmlShutdown(void) { return shut_down(); }

extern "C" __attribute__((visibility("default"))) const char* nvmlErrorString(nvmlReturn_t result) {
  switch (result) {
    case NVML_SUCCESS:
      return "Success";
    case NVML_ERROR_UNINITIALIZED:
      return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT:
      return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED:
      return "Not Supported";
    case NVML_ERROR_NO_PERMISSION:
      return "Insufficient Permissions";
    case NVML_ERROR_ALREADY_INITIALIZED:
      return "Already Initialized";
    case NVML_ERROR_NOT_FOUND:
      return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
      return "Insufficient Size";
    case NVML_ERROR_INSUFFICIENT_POWER:
      return "Insufficient External Power";
    case NVML_ERROR_DRIVER_NOT_LOADED:
      return "Driver Not Loaded";
    case NVML_ERROR_TIMEOUT:
      return "Timeout";
    case NVML_ERROR_IRQ_ISSUE:
      return "Interrupt Request Issue";
    case NVML_ERROR_LIBRARY_NOT_FOUND:
      return "NVML Shared Library Not Found";
    case NVML_ERROR_FUNCTION_NOT_FOUND:
      return "Function Not Found";
    case NVML_ERROR_CORRUPTED_INFOROM:
      return "Corrupted infoROM";
    case NVML_ERROR_GPU_IS_LOST:
      return "GPU is lost";
    case NVML_ERROR_RESET_REQUIRED:
      return "GPU requires reset";
    case NVML_ERROR_OPERATING_SYSTEM:
      return "GPU access blocked by the operating system";
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
      return "Driver/library version mismatch";
    case NVML_ERROR_IN_USE:
      return "In use by another client";
    case NVML_ERROR_MEMORY:
      return "Insufficient Memory";
    case NVML_ERROR_NO_DATA:
      return "No data";
    case NVML_ERROR_INSUFFICIENT_RESOURCES:
      return "Insufficient Resources";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
      return "Argument version mismatch";
    case NVML_ERROR_DEPRECATED:
      return "Deprecated";
    case NVML_ERROR_NOT_READY:
      return "Not ready";
    case NVML_ERROR_GPU_NOT_FOUND:
      return "No GPUs found";
    case NVML_ERROR_INVALID_STATE:
      return "Invalid state";
    default:
      return "Unknown Error";
  }
}

METE_NVML nvmlSystemGetDriverVersion(char* version, unsigned int length) {
  const nvmlReturn_t error = enter();
  return error != NVML_SUCCESS ? error : put_text(kDriverVersion, version, length);
}

// The real library allows these two before nvmlInit.
METE_NVML nvmlSystemGetCudaDriverVersion(int* version) { return put(version, kCudaVersion); }
METE_NVML nvmlSystemGetCudaDriverVersion_v2(int* version) { return put(version, kCudaVersion); }

METE_NVML nvmlSystemGetProcessName(unsigned int pid, char* name, unsigned int length) {
  const nvmlReturn_t error = enter();
  if (error != NVML_SUCCESS) return error;
  if (name == nullptr || length == 0) return NVML_ERROR_INVALID_ARGUMENT;
  char path[40];
  snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return NVML_ERROR_NOT_FOUND;
  char text[4096];
  const ssize_t got = read(fd, text, sizeof(text) - 1);
  close(fd);
  if (got <= 0) return NVML_ERROR_NOT_FOUND;
  text[got] = '\0';
  snprintf(name, length, "%s", text);  // cut to the buffer, as documented
  return NVML_SUCCESS;
}

METE_NVML nvmlDeviceGetCount_v2(unsigned int* count) {
  const SystemCall call;
  return call.error() != NVML_SUCCESS ? call.error() : put(count, call.reading().card_count);
}
METE_NVML nvmlDeviceGetCount(unsigned int* count) {
  const SystemCall call;
  return call.error() != NVML_SUCCESS ? call.error() : put(count, call.reading().card_count);
}

METE_NVML nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t* device) {
  return handle_by_index(index, device);
}
METE_NVML nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t* device) {
  return handle_by_index(index, device);
}
METE_NVML nvmlDeviceGetHandleByPciBusId(const char* pci, nvmlDevice_t* device) {
  return handle_by_pci(pci, device);
}
METE_NVML nvmlDeviceGetHandleByPciBusId_v2(const char* pci, nvmlDevice_t* device) {
  return handle_by_pci(pci, device);
}

METE_NVML nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device) {
  return find(device, [&](unsigned, const CardInfo& card) {
    return uuid != nullptr && strcmp(card.uuid, uuid) == 0;
  });
}

METE_NVML nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t* uuid, nvmlDevice_t* device) {
  const nvmlReturn_t error = enter();
  if (error != NVML_SUCCESS) return error;
  if (uuid == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (uuid->version != nvmlUUID_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  if (uuid->type != NVML_UUID_TYPE_ASCII && uuid->type != NVML_UUID_TYPE_BINARY)
    return NVML_ERROR_INVALID_ARGUMENT;
  return find(device, [&](unsigned, const CardInfo& card) {
    if (uuid->type == NVML_UUID_TYPE_ASCII)
      return strncmp(card.uuid, uuid->value.str, sizeof(uuid->value.str)) == 0;
    unsigned char bytes[NVML_DEVICE_UUID_BINARY_LEN];
    return uuid_bytes(card.uuid, bytes) && memcmp(bytes, uuid->value.bytes, sizeof(bytes)) == 0;
  });
}

METE_NVML nvmlDeviceGetHandleBySerial(const char* serial, nvmlDevice_t* device) {
  return find(device, [&](unsigned i, const CardInfo&) {
    char text[NVML_DEVICE_SERIAL_BUFFER_SIZE];
    snprintf(text, sizeof(text), "SIM%010u", i + 1);
    return serial != nullptr && strcmp(text, serial) == 0;
  });
}
