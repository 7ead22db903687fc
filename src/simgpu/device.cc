// SPDX-License-Identifier: Apache-2.0
// cuInit and the queries about cards. cuInit connects to the server, takes a snapshot of the cards
// and keeps those that visible.cc chooses, in its order. Attributes come from a table of one real
// card; those that depend on the card are set here.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simgpu/attribute_values.h"
#include "simgpu/client.h"
#include "simgpu/state.h"
#include "simgpu/visible.h"

namespace simgpu {
namespace {

CUresult initialise() {
  const Guard guard;
  if (driver.forked) return CUDA_ERROR_NOT_INITIALIZED;
  if (driver.initialised) return driver.device_count > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
  const int status = connect_server(ClientKind::kCuda);
  if (status != kStatusOk) return static_cast<CUresult>(status);
  CardInfo cards[kMaxCards];
  uint32_t count = 0;
  const int got = take_snapshot(cards, kMaxCards, &count, nullptr, 0, nullptr);
  if (got != kStatusOk) return static_cast<CUresult>(got);
  uint32_t order[kMaxCards];
  const int visible = choose_cards(cards, static_cast<int>(count), getenv("CUDA_VISIBLE_DEVICES"),
                                   getenv("CUDA_DEVICE_ORDER"), order);
  for (int i = 0; i < visible; ++i) {
    Device* device = &driver.devices[i];
    device->info = cards[order[i]];
    device->card = order[i];
    device->total = device->info.total - device->info.reserved;
  }
  if (visible == 0) return CUDA_ERROR_NO_DEVICE;
  driver.device_count = visible;
  pause_begin();
  watch_forks();
  driver.initialised = true;
  return CUDA_SUCCESS;
}

int attribute(const Device& device, int number) {
  const CardInfo& info = device.info;
  switch (number) {
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return static_cast<int>(info.sms);
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      return static_cast<int>(info.sm_clock_mhz) * 1000;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      return static_cast<int>(info.memory_clock_mhz) * 1000;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      return static_cast<int>(info.memory_bus_bits);
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      return static_cast<int>(info.l2_bytes);
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
      return static_cast<int>(info.pci_bus);
    case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
      return static_cast<int>(info.pci_device);
    case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
      return static_cast<int>(info.pci_domain);
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return static_cast<int>(info.cc_major);
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return static_cast<int>(info.cc_minor);
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:
      return info.numa;
    case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
      return info.cc_major >= 9 ? 1 : 0;
    default:
      return kAttributeValues[number];
  }
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

extern "C" CUresult cuInit(unsigned int flags) {
  SIM_ENTRY_FREE(cuInit);
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return initialise();
}

extern "C" CUresult cuDriverGetVersion(int* version) {
  SIM_ENTRY_FREE(cuDriverGetVersion);
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = 13000;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuDeviceGetCount(int* count) {
  SIM_ENTRY(cuDeviceGetCount);
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = driver.device_count;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  SIM_ENTRY(cuDeviceGet);
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!device_ok(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  SIM_ENTRY(cuDeviceGetName);
  if (name == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
  snprintf(name, static_cast<size_t>(length), "%s", driver.devices[device].info.name);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  SIM_ENTRY(cuDeviceGetUuid_v2);
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
  memcpy(uuid->bytes, driver.devices[device].info.uuid_bytes, 16);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  return cuDeviceGetUuid_v2(uuid, device);
}

extern "C" CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  SIM_ENTRY(cuDeviceTotalMem_v2);
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = driver.devices[device].total;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuDeviceTotalMem(unsigned int* bytes, CUdevice device) {
  SIM_ENTRY(cuDeviceTotalMem);
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
  const uint64_t total = driver.devices[device].total;
  *bytes = total > 0xffffffffu ? 0xffffffffu : static_cast<unsigned>(total);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice device) {
  SIM_ENTRY(cuDeviceGetAttribute);
  const int number = static_cast<int>(which);
  if (value == nullptr || number < 1 || number >= kAttributeCount) return CUDA_ERROR_INVALID_VALUE;
  if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
  *value = attribute(driver.devices[device], number);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuDeviceGetPCIBusId(char* text, int length, CUdevice device) {
  SIM_ENTRY(cuDeviceGetPCIBusId);
  if (text == nullptr || length < 13) return CUDA_ERROR_INVALID_VALUE;
  if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
  const CardInfo& info = driver.devices[device].info;
  snprintf(text, static_cast<size_t>(length), "%04x:%02x:%02x.0", info.pci_domain, info.pci_bus,
           info.pci_device);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* text) {
  SIM_ENTRY(cuDeviceGetByPCIBusId);
  if (device == nullptr || text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  unsigned domain = 0, bus = 0, slot = 0;
  if (sscanf(text, "%x:%x:%x", &domain, &bus, &slot) != 3) {
    domain = 0;
    if (sscanf(text, "%x:%x", &bus, &slot) != 2) return CUDA_ERROR_INVALID_VALUE;
  }
  for (int i = 0; i < driver.device_count; ++i) {
    const CardInfo& info = driver.devices[i].info;
    if (info.pci_domain != domain || info.pci_bus != bus || info.pci_device != slot) continue;
    *device = i;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_DEVICE;
}

extern "C" CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  SIM_ENTRY(cuDeviceCanAccessPeer);
  if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!device_ok(device) || !device_ok(peer)) return CUDA_ERROR_INVALID_DEVICE;
  const CardInfo& from = driver.devices[device].info;
  // Cards with NVLink reach one another; others of one kind do so over PCIe from compute 7.0 on.
  *can = device != peer && strcmp(from.name, driver.devices[peer].info.name) == 0 ? 1 : 0;
  return CUDA_SUCCESS;
}
