// SPDX-License-Identifier: Apache-2.0
// A driver's NVML with one card that has the trouble named in METE_TEST_FAKE_NVML; for tests that
// need what the simulated cards do not do. Only what a daemon asks for; everything else is missing,
// as in an old driver. The types are the public ones, written out: no header of ours, none of
// NVIDIA's.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kOk = 0, kNotSupported = 3, kInvalid = 2, kUnknown = 999, kMismatch = 18, kNotLoaded = 9 };
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

static const unsigned long long kGib = 1ull << 30;

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
  *count = is("none") ? 0 : 1;
  return kOk;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void** device) {
  static int card;
  *device = &card;
  return index == 0 ? kOk : kInvalid;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned int size) {
  (void)device;
  (void)snprintf(text, size, "GPU-fa4e0000-0000-0000-0000-000000000001");
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
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned int* count, void* list) {
  (void)device;
  (void)list;
  if (is("no-processes")) return kNotSupported;
  *count = 0;
  return kOk;
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(void* device, unsigned int* count, void* list) {
  return nvmlDeviceGetComputeRunningProcesses_v3(device, count, list);
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
