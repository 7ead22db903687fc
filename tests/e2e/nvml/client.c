// SPDX-License-Identifier: Apache-2.0
// An NVML client linked with the library in the ordinary way, over METE_SIM=4xH200: every promise
// of the interface that needs no other process. Prints each broken one; exit code 1 if there was
// any.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/nvml_api.h"

static int broken;
#define CHECK(condition)                                     \
  do {                                                       \
    if (!(condition)) {                                      \
      printf("%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      broken = 1;                                            \
    }                                                        \
  } while (0)
#define IS(expected, call)                                                             \
  do {                                                                                 \
    const int got_ = (int)(call);                                                      \
    if (got_ != (int)(expected)) {                                                     \
      printf("%s:%d: %s is %d, not %s\n", __FILE__, __LINE__, #call, got_, #expected); \
      broken = 1;                                                                      \
    }                                                                                  \
  } while (0)
#define OK(call) IS(NVML_SUCCESS, call)

static nvmlDevice_t card[4];

static void starting(void) {
  unsigned count = 0;
  nvmlDevice_t device;
  IS(NVML_ERROR_UNINITIALIZED, nvmlDeviceGetCount_v2(&count));
  IS(NVML_ERROR_UNINITIALIZED, nvmlDeviceGetHandleByIndex_v2(0, &device));
  IS(NVML_ERROR_UNINITIALIZED, nvmlShutdown());
  OK(nvmlInit_v2());
  OK(nvmlInitWithFlags(NVML_INIT_FLAG_NO_GPUS));
  OK(nvmlInit());
  OK(nvmlShutdown());
  OK(nvmlShutdown());
  OK(nvmlDeviceGetCount(&count));  // one start is left
  CHECK(count == 4);
  OK(nvmlShutdown());
  IS(NVML_ERROR_UNINITIALIZED, nvmlDeviceGetCount(&count));
  IS(NVML_ERROR_INVALID_ARGUMENT, nvmlInitWithFlags(0x80));
  OK(nvmlInit_v2());
}

static void handles(void) {
  nvmlDevice_t same;
  char text[96];
  for (unsigned i = 0; i < 4; ++i) {
    unsigned index = 99, minor_number = 99;
    OK(nvmlDeviceGetHandleByIndex_v2(i, &card[i]));
    OK(nvmlDeviceGetIndex(card[i], &index));
    OK(nvmlDeviceGetMinorNumber(card[i], &minor_number));
    CHECK(index == i && minor_number == i);
    OK(nvmlDeviceGetUUID(card[i], text, sizeof(text)));
    CHECK(strlen(text) == 40 && strncmp(text, "GPU-", 4) == 0);
    OK(nvmlDeviceGetHandleByUUID(text, &same));
    CHECK(same == card[i]);
    nvmlUUID_t uuid = {nvmlUUID_v1, NVML_UUID_TYPE_ASCII, {{0}}};
    memcpy(uuid.value.str, text, 41);
    OK(nvmlDeviceGetHandleByUUIDV(&uuid, &same));
    CHECK(same == card[i]);
    nvmlPciInfo_t pci;
    OK(nvmlDeviceGetPciInfo_v3(card[i], &pci));
    OK(nvmlDeviceGetHandleByPciBusId_v2(pci.busId, &same));
    CHECK(same == card[i]);
    OK(nvmlDeviceGetHandleByPciBusId(pci.busIdLegacy, &same));
    CHECK(same == card[i]);
    CHECK(pci.pciDeviceId == 0x233510deU);
    OK(nvmlDeviceGetSerial(card[i], text, sizeof(text)));
    CHECK(strncmp(text, "SIM", 3) == 0);
    OK(nvmlDeviceGetHandleBySerial(text, &same));
    CHECK(same == card[i]);
  }
  IS(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetHandleByIndex_v2(4, &same));
  IS(NVML_ERROR_NOT_FOUND, nvmlDeviceGetHandleByUUID("GPU-none", &same));
  IS(NVML_ERROR_NOT_FOUND, nvmlDeviceGetHandleByPciBusId_v2("0000:FF:1F.0", &same));
  IS(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetHandleByPciBusId_v2("here", &same));
  IS(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetHandleByIndex_v2(0, NULL));
  IS(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetName(NULL, text, sizeof(text)));
  IS(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetName((nvmlDevice_t)text, text, sizeof(text)));
}

// Older functions have shorter structs and must not write past them.
static void pci_versions(void) {
  nvmlPciInfo_t pci;
  memset(&pci, 0x5a, sizeof(pci));
  OK(nvmlDeviceGetPciInfo(card[1], &pci));
  CHECK(pci.pciDeviceId == 0x233510deU && pci.pciSubSystemId == 0x5a5a5a5aU);
  OK(nvmlDeviceGetPciInfo_v2(card[1], &pci));
  CHECK(pci.pciSubSystemId != 0x5a5a5a5aU && pci.busId[0] == 0x5a);
  nvmlPciInfoExt_t extended = {.version = nvmlPciInfoExt_v1};
  OK(nvmlDeviceGetPciInfoExt(card[1], &extended));
  CHECK(extended.bus == pci.bus);
  extended.version = 7;
  IS(NVML_ERROR_ARGUMENT_VERSION_MISMATCH, nvmlDeviceGetPciInfoExt(card[1], &extended));
}

static void texts(void) {
  char text[96];
  OK(nvmlDeviceGetName(card[0], text, sizeof(text)));
  CHECK(strcmp(text, "NVIDIA H200") == 0);
  OK(nvmlDeviceGetName(card[0], text, 12));
  IS(NVML_ERROR_INSUFFICIENT_SIZE, nvmlDeviceGetName(card[0], text, 11));
  IS(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetName(card[0], NULL, 96));
  OK(nvmlSystemGetDriverVersion(text, sizeof(text)));
  CHECK(strcmp(text, "580.159.04") == 0);
  IS(NVML_ERROR_INSUFFICIENT_SIZE, nvmlSystemGetDriverVersion(text, 4));
  OK(nvmlDeviceGetBoardPartNumber(card[0], text, sizeof(text)));
  CHECK(strncmp(text, "SIM", 3) == 0);
  int cuda = 0;
  OK(nvmlSystemGetCudaDriverVersion_v2(&cuda));
  CHECK(cuda == 13000);
  OK(nvmlSystemGetProcessName((unsigned)getpid(), text, sizeof(text)));
  CHECK(strstr(text, "nvml_client") != NULL);
  OK(nvmlSystemGetProcessName((unsigned)getpid(), text, 4));
  CHECK(strlen(text) == 3);
  IS(NVML_ERROR_NOT_FOUND, nvmlSystemGetProcessName(0x7fffffff, text, sizeof(text)));
  CHECK(strcmp(nvmlErrorString(NVML_ERROR_GPU_IS_LOST), "GPU is lost") == 0);
  CHECK(nvmlErrorString((nvmlReturn_t)12345) != NULL);
}

static void memory(void) {
  nvmlMemory_t first;
  nvmlMemory_v2_t second = {.version = nvmlMemory_v2};
  OK(nvmlDeviceGetMemoryInfo(card[0], &first));
  OK(nvmlDeviceGetMemoryInfo_v2(card[0], &second));
  CHECK(second.total == first.total && second.reserved > 0);
  CHECK(second.total == second.reserved + second.used + second.free);
  CHECK(first.used == first.total - first.free && first.used == second.used + second.reserved);
  second.version = 0;
  IS(NVML_ERROR_ARGUMENT_VERSION_MISMATCH, nvmlDeviceGetMemoryInfo_v2(card[0], &second));
  unsigned count = 0;
  OK(nvmlDeviceGetComputeRunningProcesses_v3(card[0], &count, NULL));
  CHECK(count == 0);
  count = 5;
  IS(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetComputeRunningProcesses_v3(card[0], &count, NULL));
  nvmlBAR1Memory_t window;
  OK(nvmlDeviceGetBAR1MemoryInfo(card[0], &window));
  CHECK(window.bar1Total >= first.total && window.bar1Total == window.bar1Free + window.bar1Used);
}

static void readings(void) {
  nvmlUtilization_t load;
  nvmlTemperature_t heat = {nvmlTemperature_v1, NVML_TEMPERATURE_GPU, 0};
  unsigned value = 0, limit = 0, highest = 0, current = 9, pending = 9;
  OK(nvmlDeviceGetUtilizationRates(card[0], &load));
  CHECK(load.gpu <= 100 && load.memory <= 100);
  OK(nvmlDeviceGetTemperature(card[0], NVML_TEMPERATURE_GPU, &value));
  OK(nvmlDeviceGetTemperatureV(card[0], &heat));
  CHECK(value > 0 && value < 120 && (int)value == heat.temperature);
  OK(nvmlDeviceGetPowerUsage(card[0], &value));
  OK(nvmlDeviceGetEnforcedPowerLimit(card[0], &limit));
  CHECK(limit == 700000 && value > 0 && value <= limit);
  OK(nvmlDeviceGetClockInfo(card[0], NVML_CLOCK_SM, &value));
  OK(nvmlDeviceGetMaxClockInfo(card[0], NVML_CLOCK_SM, &highest));
  CHECK(value <= highest && highest > 0);
  nvmlEnableState_t state;
  OK(nvmlDeviceGetPersistenceMode(card[0], &state));
  nvmlComputeMode_t mode = NVML_COMPUTEMODE_PROHIBITED;
  OK(nvmlDeviceGetComputeMode(card[0], &mode));
  CHECK(mode == NVML_COMPUTEMODE_DEFAULT);
  OK(nvmlDeviceGetMigMode(card[0], &current, &pending));
  CHECK(current == NVML_DEVICE_MIG_DISABLE && pending == NVML_DEVICE_MIG_DISABLE);
  int major_version = 0, minor_version = 9;
  OK(nvmlDeviceGetCudaComputeCapability(card[0], &major_version, &minor_version));
  CHECK(major_version == 9 && minor_version == 0);
  nvmlDeviceArchitecture_t architecture;
  OK(nvmlDeviceGetArchitecture(card[0], &architecture));
  CHECK(architecture == NVML_DEVICE_ARCH_HOPPER);
}

static void topology(void) {
  nvmlGpuTopologyLevel_t level;
  nvmlGpuP2PStatus_t status;
  nvmlEnableState_t active;
  unsigned long set[2] = {0, 0};
  OK(nvmlDeviceGetTopologyCommonAncestor(card[0], card[0], &level));
  CHECK(level == NVML_TOPOLOGY_INTERNAL);
  OK(nvmlDeviceGetTopologyCommonAncestor(card[0], card[1], &level));
  CHECK(level >= NVML_TOPOLOGY_SINGLE && level <= NVML_TOPOLOGY_SYSTEM);
  OK(nvmlDeviceGetP2PStatus(card[0], card[3], NVML_P2P_CAPS_INDEX_NVLINK, &status));
  CHECK(status == NVML_P2P_STATUS_OK);
  IS(NVML_ERROR_INVALID_ARGUMENT,
     nvmlDeviceGetP2PStatus(card[0], card[0], NVML_P2P_CAPS_INDEX_READ, &status));
  unsigned links = 0;
  for (unsigned link = 0; link < NVML_NVLINK_MAX_LINKS; ++link)
    if (nvmlDeviceGetNvLinkState(card[0], link, &active) == NVML_SUCCESS &&
        active == NVML_FEATURE_ENABLED)
      ++links;
  CHECK(links == 18);
  IS(NVML_ERROR_INVALID_ARGUMENT,
     nvmlDeviceGetNvLinkState(card[0], NVML_NVLINK_MAX_LINKS, &active));
  OK(nvmlDeviceGetCpuAffinity(card[0], 2, set));
  CHECK((set[0] & 1) == 1);
  OK(nvmlDeviceGetMemoryAffinity(card[0], 2, set, NVML_AFFINITY_SCOPE_NODE));
  CHECK(set[0] != 0);
}

static void* many_calls(void* argument) {
  (void)argument;
  for (int i = 0; i < 200; ++i) {
    nvmlMemory_v2_t now = {.version = nvmlMemory_v2};
    char text[96];
    OK(nvmlInit_v2());
    OK(nvmlDeviceGetMemoryInfo_v2(card[i % 4], &now));
    CHECK(now.total == now.reserved + now.used + now.free);
    OK(nvmlDeviceGetName(card[i % 4], text, sizeof(text)));
    CHECK(strcmp(text, "NVIDIA H200") == 0);
    OK(nvmlShutdown());
  }
  return NULL;
}

static void threads(void) {
  pthread_t thread[4];
  for (int i = 0; i < 4; ++i) CHECK(pthread_create(&thread[i], NULL, many_calls, NULL) == 0);
  for (int i = 0; i < 4; ++i) pthread_join(thread[i], NULL);
}

// Parent and child go on calling, each over its own connection.
static void forking(void) {
  char text[96];
  const pid_t child = fork();
  for (int i = 0; i < 20; ++i) OK(nvmlDeviceGetUUID(card[i % 4], text, sizeof(text)));
  if (child == 0) _exit(broken);
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(void) {
  starting();
  handles();
  if (broken) return 1;  // the rest would fail on invalid handles
  pci_versions();
  texts();
  memory();
  readings();
  topology();
  threads();
  forking();
  OK(nvmlShutdown());
  if (!broken) puts("all promises kept");
  return broken;
}
