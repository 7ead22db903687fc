// SPDX-License-Identifier: Apache-2.0
// An old NVML: only first versions of functions, no reserved memory, no sensors. Two cards; the
// first has more processes than a small buffer holds, and its list grows between two calls; figures
// of one process are not available. OLD_NVML_LOST=1: the second card is lost.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/nvml_api.h"

struct nvmlDevice_st {
  unsigned index;
};
static struct nvmlDevice_st cards[2] = {{0}, {1}};
static unsigned started, asked;

static int lost(nvmlDevice_t device) {
  const char* text = getenv("OLD_NVML_LOST");
  return device->index == 1 && text != NULL && strcmp(text, "1") == 0;
}

nvmlReturn_t nvmlInit(void) {
  ++started;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlShutdown(void) {
  if (started == 0) return NVML_ERROR_UNINITIALIZED;
  --started;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlSystemGetDriverVersion(char* version, unsigned int length) {
  snprintf(version, length, "304.54");
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetCount(unsigned int* count) {
  *count = 2;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t* device) {
  *device = &cards[index];
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char* name, unsigned int length) {
  if (lost(device)) return NVML_ERROR_GPU_IS_LOST;
  snprintf(name, length, "Tesla K80");
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* uuid, unsigned int length) {
  if (lost(device)) return NVML_ERROR_GPU_IS_LOST;
  snprintf(uuid, length, "GPU-00000000-0000-0000-0000-00000000000%u", device->index + 1);
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  if (lost(device)) return NVML_ERROR_GPU_IS_LOST;
  memory->total = 12ULL << 30;
  memory->free = 10ULL << 30;
  memory->used = 2ULL << 30;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int* count,
                                                  nvmlProcessInfo_v1_t* infos) {
  if (lost(device)) return NVML_ERROR_GPU_IS_LOST;
  const unsigned there = device->index == 0 ? 100 + 100 * asked++ : 0;
  const unsigned room = *count;
  *count = there;
  if (there > room) return NVML_ERROR_INSUFFICIENT_SIZE;
  for (unsigned i = 0; i < there; ++i) {
    infos[i].pid = 1000 + i;
    infos[i].usedGpuMemory = i == 0 ? (unsigned long long)NVML_VALUE_NOT_AVAILABLE : i;
  }
  return NVML_SUCCESS;
}
