// SPDX-License-Identifier: Apache-2.0
// Simulated NVML: the identity of a card. The name is the true name of the model, so that programs
// that check it work; a simulated card is recognised by its serial number and board part number,
// which begin with SIM.
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "simgpu/nvml_world.h"

using namespace simgpu;
using namespace simgpu::nvml;

namespace {

// The first `size` bytes of version 3: older entry points have a shorter struct, and must not write
// past it.
nvmlReturn_t pci(nvmlDevice_t device, nvmlPciInfo_t* out, size_t size) {
  const CardCall call(device);
  if (call.error() != NVML_SUCCESS) return call.error();
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  nvmlPciInfo_t info;
  fill_pci(call.card(), &info);
  memcpy(out, &info, size);
  return NVML_SUCCESS;
}

}  // namespace

namespace simgpu::nvml {

void fill_pci(const CardInfo& card, nvmlPciInfo_t* out) {
  memset(out, 0, sizeof(*out));
  snprintf(out->busIdLegacy, sizeof(out->busIdLegacy), "%04X:%02X:%02X.0", card.pci_domain & 0xffff,
           card.pci_bus & 0xff, card.pci_device & 0x1f);
  snprintf(out->busId, sizeof(out->busId), "%08X:%02X:%02X.0", card.pci_domain, card.pci_bus & 0xff,
           card.pci_device & 0x1f);
  out->domain = card.pci_domain;
  out->bus = card.pci_bus;
  out->device = card.pci_device;
  out->pciDeviceId = card.pci_device_id;
  out->pciSubSystemId = 0x18be10de;
}

}  // namespace simgpu::nvml

METE_NVML nvmlDeviceGetName(nvmlDevice_t device, char* name, unsigned int length) {
  const CardCall call(device);
  return call.error() != NVML_SUCCESS ? call.error() : put_text(call.card().name, name, length);
}

METE_NVML nvmlDeviceGetUUID(nvmlDevice_t device, char* uuid, unsigned int length) {
  const CardCall call(device);
  return call.error() != NVML_SUCCESS ? call.error() : put_text(call.card().uuid, uuid, length);
}

METE_NVML nvmlDeviceGetSerial(nvmlDevice_t device, char* serial, unsigned int length) {
  const CardCall call(device);
  if (call.error() != NVML_SUCCESS) return call.error();
  char text[NVML_DEVICE_SERIAL_BUFFER_SIZE];
  snprintf(text, sizeof(text), "SIM%010u", call.index() + 1);
  return put_text(text, serial, length);
}

METE_NVML nvmlDeviceGetBoardPartNumber(nvmlDevice_t device, char* number, unsigned int length) {
  const CardCall call(device);
  if (call.error() != NVML_SUCCESS) return call.error();
  char text[NVML_DEVICE_PART_NUMBER_BUFFER_SIZE];
  snprintf(text, sizeof(text), "SIM-%04X", call.card().pci_device_id >> 16);
  return put_text(text, number, length);
}

METE_NVML nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int* index) {
  const CardCall call(device);
  return call.error() != NVML_SUCCESS ? call.error() : put(index, call.index());
}

METE_NVML nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int* minor) {
  const CardCall call(device);
  return call.error() != NVML_SUCCESS ? call.error() : put(minor, call.index());
}

METE_NVML nvmlDeviceGetArchitecture(nvmlDevice_t device, nvmlDeviceArchitecture_t* arch) {
  const CardCall call(device);
  return call.error() != NVML_SUCCESS ? call.error() : put(arch, call.model().arch);
}

METE_NVML nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int* major, int* minor) {
  const CardCall call(device);
  if (call.error() != NVML_SUCCESS) return call.error();
  if (major == nullptr || minor == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *major = static_cast<int>(call.card().cc_major);
  *minor = static_cast<int>(call.card().cc_minor);
  return NVML_SUCCESS;
}

METE_NVML nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t* out) {
  return pci(device, out, offsetof(nvmlPciInfo_t, pciSubSystemId));
}
METE_NVML nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t* out) {
  return pci(device, out, offsetof(nvmlPciInfo_t, busId));
}
METE_NVML nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* out) {
  return pci(device, out, sizeof(*out));
}

METE_NVML nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_t* out) {
  const CardCall call(device);
  if (call.error() != NVML_SUCCESS) return call.error();
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (out->version != nvmlPciInfoExt_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  nvmlPciInfo_t info;
  fill_pci(call.card(), &info);
  out->domain = info.domain;
  out->bus = info.bus;
  out->device = info.device;
  out->pciDeviceId = info.pciDeviceId;
  out->pciSubSystemId = info.pciSubSystemId;
  out->baseClass = 0x03;
  out->subClass = 0x02;
  memcpy(out->busId, info.busId, sizeof(out->busId));
  return NVML_SUCCESS;
}
