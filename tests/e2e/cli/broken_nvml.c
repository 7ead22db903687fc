// SPDX-License-Identifier: Apache-2.0
// A libnvidia-ml.so.1 of a broken driver: METE_TEST_NVML is the error that it begins with, or
// "hang".
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int nvmlInit_v2(void);
int nvmlDeviceGetCount_v2(unsigned* count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device);

int nvmlInit_v2(void) {
  const char* how = getenv("METE_TEST_NVML");
  if (how == NULL) return 0;
  while (strcmp(how, "hang") == 0) (void)pause();
  return atoi(how);
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 0;
  return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  (void)index;
  (void)device;
  return 2;  // INVALID_ARGUMENT
}
