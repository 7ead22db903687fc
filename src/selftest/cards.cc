// SPDX-License-Identifier: Apache-2.0
// See cards.h.
#include "selftest/cards.h"

#include <dlfcn.h>

#include <cstdio>
#include <string>

#include "abi/nvml_api.h"

namespace mete::selftest {

namespace {

struct Nvml {
  void* library;

  template <class Function>
  Function* find(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library, name));
  }
};

#define FIND(nvml, name) ((nvml).find<decltype(::name)>(#name))

void print_card(const Nvml& nvml, unsigned index, nvmlDevice_t device) {
  char uuid[96] = "";
  char serial[64] = "";
  char name[128] = "";
  nvmlPciInfo_t pci{};
  nvmlMemory_t memory{};
  const auto get_uuid = FIND(nvml, nvmlDeviceGetUUID);
  const auto get_serial = FIND(nvml, nvmlDeviceGetSerial);
  const auto get_name = FIND(nvml, nvmlDeviceGetName);
  const auto get_pci = FIND(nvml, nvmlDeviceGetPciInfo_v3);
  const auto get_memory = FIND(nvml, nvmlDeviceGetMemoryInfo);
  if (get_uuid == nullptr || get_uuid(device, uuid, sizeof uuid) != NVML_SUCCESS) return;
  if (get_serial == nullptr || get_serial(device, serial, sizeof serial) != NVML_SUCCESS)
    serial[0] = 0;
  if (get_name == nullptr || get_name(device, name, sizeof name) != NVML_SUCCESS) name[0] = 0;
  if (get_pci == nullptr || get_pci(device, &pci) != NVML_SUCCESS) pci.busId[0] = 0;
  if (get_memory == nullptr || get_memory(device, &memory) != NVML_SUCCESS) memory = {};
  std::printf("%u\t%s\t%s\t%s\t%llu\t%llu\t%s\n", index, uuid, pci.busId, serial, memory.total,
              memory.free, name);
}

}  // namespace

int print_cards(const char* library) {
  const Nvml nvml{dlopen(library, RTLD_NOW | RTLD_LOCAL)};
  if (nvml.library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  const auto init = FIND(nvml, nvmlInit_v2);
  const auto count_cards = FIND(nvml, nvmlDeviceGetCount_v2);
  const auto by_index = FIND(nvml, nvmlDeviceGetHandleByIndex_v2);
  unsigned count = 0;
  if (init == nullptr || count_cards == nullptr || by_index == nullptr || init() != NVML_SUCCESS ||
      count_cards(&count) != NVML_SUCCESS) {
    std::fputs("NVML does not answer\n", stderr);
    return 1;
  }
  for (unsigned i = 0; i < count; ++i) {
    nvmlDevice_t device = nullptr;
    if (by_index(i, &device) == NVML_SUCCESS) print_card(nvml, i, device);
  }
  return 0;
}

}  // namespace mete::selftest
