// SPDX-License-Identifier: Apache-2.0
// A driver's NVML with one card (or 64) that has the failure named in METE_TEST_FAKE_NVML; for
// tests that need what the simulated cards do not do. Only what a daemon calls; everything else is
// missing, as in an old driver. The types are the public ones, written out: no header of ours, none
// of NVIDIA's.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kOk = 0, kInvalid = 2, kNotSupported = 3, kTooSmall = 7, kNotLoaded = 9, kMismatch = 18 };
enum { kExclusiveProcess = 3, kProhibited = 2 };

static int is(const char* trouble) {
  const char* value = getenv("METE_TEST_FAKE_NVML");
  return value != NULL && strcmp(value, trouble) == 0;
}

typedef struct {
  unsigned long long total, free, used;
} Memory;

typedef struct {
  unsigned int version;
  unsigned long long total, reserved, free, used;
} Memory2;

typedef struct {
  unsigned int pid;
  unsigned long long used;
  unsigned int gpu_instance, compute_instance;
} Process;

static const unsigned long long kGib = 1ull << 30;
static char cards[64];

int nvmlInit_v2(void) {
  if (is("mismatch")) return kMismatch;
  if (is("not-loaded")) return kNotLoaded;
  return kOk;
}
int nvmlShutdown(void) { return kOk; }
const char* nvmlErrorString(int error) {
  return error == kMismatch ? "Driver/library version mismatch" : "trouble";
}
int nvmlSystemGetDriverVersion(char* text, unsigned int size) {
  (void)snprintf(text, size, "580.00");
  return kOk;
}
int nvmlDeviceGetCount_v2(unsigned int* count) {
  *count = is("none") ? 0 : is("many") ? sizeof cards : 1;
  return kOk;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void** device) {
  unsigned int count = 0;
  (void)nvmlDeviceGetCount_v2(&count);
  if (index >= count) return kInvalid;
  *device = &cards[index];
  return kOk;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned int size) {
  const int number = (int)((char*)device - cards) + 1;
  (void)snprintf(text, size, "GPU-fa4e0000-0000-0000-0000-%012x", number);
  return kOk;
}
int nvmlDeviceGetName(void* device, char* text, unsigned int size) {
  (void)device;
  (void)snprintf(text, size, "NVIDIA H200");
  return kOk;
}
int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  (void)device;
  if (is("no-memory")) return kNotSupported;
  const unsigned long long used = is("no-processes") ? 60 : 1;
  *memory = (Memory){100 * kGib, (100 - used) * kGib, used * kGib};
  return kOk;
}
int nvmlDeviceGetMemoryInfo_v2(void* device, Memory2* memory) {
  (void)device;
  if (is("no-memory")) return kNotSupported;
  const unsigned long long used = is("no-processes") ? 59 : 0;
  memory->total = 100 * kGib;
  memory->reserved = kGib;
  memory->used = used * kGib;
  memory->free = (99 - used) * kGib;
  return kOk;
}
// A ghost is on the card in every other reading, and has ended whenever it is looked up.
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned int* count, Process* list) {
  (void)device;
  static int reading;
  if (is("no-processes")) return kNotSupported;
  const unsigned int room = *count;
  *count = is("ghost") && room != 0 ? ++reading % 2 : 0;
  if (is("ghost") && room == 0) *count = 1;
  if (*count > room) return kTooSmall;
  if (*count != 0) list[0] = (Process){4194303, kGib, 0, 0};
  return kOk;
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(void* device, unsigned int* count, Process* list) {
  (void)device;
  (void)list;
  if (is("no-processes")) return kNotSupported;
  *count = 0;
  return kOk;
}
// Half of the readings.
int nvmlDeviceGetTemperature(void* device, int sensor, unsigned int* celsius) {
  (void)device;
  (void)sensor;
  *celsius = 61;
  return is("half") || is("many") ? kOk : kNotSupported;
}
int nvmlDeviceGetUtilizationRates(void* device, void* rates) {
  (void)device;
  (void)rates;
  return kNotSupported;
}
int nvmlDeviceGetPowerUsage(void* device, unsigned int* milliwatts) {
  (void)device;
  (void)milliwatts;
  return kNotSupported;
}
int nvmlDeviceGetComputeMode(void* device, int* mode) {
  (void)device;
  *mode = is("exclusive") ? kExclusiveProcess : is("prohibited") ? kProhibited : 0;
  return kOk;
}
int nvmlDeviceGetMigMode(void* device, unsigned int* current, unsigned int* pending) {
  (void)device;
  *current = *pending = is("mig") ? 1 : 0;
  return kOk;
}
