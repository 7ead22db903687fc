// SPDX-License-Identifier: Apache-2.0
// An ordinary CUDA driver-API program: takes GPU memory in steps, writes to it, reads it back. It
// knows nothing of mete and needs no CUDA toolkit (its few prototypes are below). demo.sh runs two
// of them side by side.
//   tenant NAME MIB           take MIB mebibytes in 256 MiB steps, or as much as the driver gives
//   tenant NAME MIB --stay    the same, then check its memory again and again until its input is
//   closed
// Facts go to stdout as `NAME: key=value` lines. Exit: 0 got all, 2 refused as out of memory, 1
// anything else.
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kSuccess = 0, kOutOfMemory = 2, kMaxBlocks = 4096 };
static const size_t kMiB = 1 << 20, kStep = (size_t)256 << 20;

static int (*cuInit)(unsigned);
static int (*cuDeviceGet)(int*, int);
static int (*cuDeviceTotalMem)(size_t*, int);
static int (*cuDevicePrimaryCtxRetain)(void**, int);
static int (*cuCtxSetCurrent)(void*);
static int (*cuMemGetInfo)(size_t*, size_t*);
static int (*cuMemAlloc)(unsigned long long*, size_t);
static int (*cuMemFree)(unsigned long long);
static int (*cuMemsetD8)(unsigned long long, unsigned char, size_t);
static int (*cuMemcpyDtoH)(void*, unsigned long long, size_t);
static int (*cuGetErrorName)(int, const char**);

static const char* name;
static unsigned long long block[kMaxBlocks];
static int blocks;

static void* find(void* library, const char* symbol) {
  void* f = library ? dlsym(library, symbol) : NULL;
  if (!f) {
    fprintf(stderr, "%s: %s is not there: %s\n", name, symbol, dlerror());
    exit(1);
  }
  return f;
}

static void must(int result, const char* what) {
  if (result == kSuccess) return;
  const char* text = "?";
  cuGetErrorName(result, &text);
  fprintf(stderr, "%s: %s: %s (%d)\n", name, what, text, result);
  exit(1);
}

static void load(void) {
  void* cuda = dlopen("libcuda.so.1", RTLD_NOW);
  if (!cuda) fprintf(stderr, "%s: %s\n", name, dlerror());
  *(void**)&cuInit = find(cuda, "cuInit");
  *(void**)&cuDeviceGet = find(cuda, "cuDeviceGet");
  *(void**)&cuDeviceTotalMem = find(cuda, "cuDeviceTotalMem_v2");
  *(void**)&cuDevicePrimaryCtxRetain = find(cuda, "cuDevicePrimaryCtxRetain");
  *(void**)&cuCtxSetCurrent = find(cuda, "cuCtxSetCurrent");
  *(void**)&cuMemGetInfo = find(cuda, "cuMemGetInfo_v2");
  *(void**)&cuMemAlloc = find(cuda, "cuMemAlloc_v2");
  *(void**)&cuMemFree = find(cuda, "cuMemFree_v2");
  *(void**)&cuMemsetD8 = find(cuda, "cuMemsetD8_v2");
  *(void**)&cuMemcpyDtoH = find(cuda, "cuMemcpyDtoH_v2");
  *(void**)&cuGetErrorName = find(cuda, "cuGetErrorName");
}

// What NVML, the library behind nvidia-smi, says about the first card.
static void nvml_memory(unsigned long long* total, unsigned long long* used) {
  struct {
    unsigned long long total, free, used;
  } memory = {0, 0, 0};
  void* device = NULL;
  void* nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  int (*init)(void);
  int (*handle)(unsigned, void**);
  int (*info)(void*, void*);
  *(void**)&init = find(nvml, "nvmlInit_v2");
  *(void**)&handle = find(nvml, "nvmlDeviceGetHandleByIndex_v2");
  *(void**)&info = find(nvml, "nvmlDeviceGetMemoryInfo");
  if (init() || handle(0, &device) || info(device, &memory)) {
    fprintf(stderr, "%s: NVML does not answer\n", name);
    exit(1);
  }
  *total = memory.total;
  *used = memory.used;
}

static void check(int index) {
  unsigned char seen = 0;
  const unsigned char written = (unsigned char)(index * 7 + 1);
  must(cuMemcpyDtoH(&seen, block[index] + kStep - 1, 1), "cuMemcpyDtoH");
  if (seen == written) return;
  fprintf(stderr, "%s: block %d holds %d instead of %d\n", name, index, seen, written);
  exit(1);
}

// Returns the driver's answer to the first request that failed, or success.
static int fill(size_t want) {
  for (size_t got = 0; got + kStep <= want && blocks < kMaxBlocks; got += kStep) {
    const int result = cuMemAlloc(&block[blocks], kStep);
    if (result != kSuccess) return result;
    must(cuMemsetD8(block[blocks], (unsigned char)(blocks * 7 + 1), kStep), "cuMemsetD8");
    check(blocks++);
  }
  return kSuccess;
}

static long stay(void) {
  long rounds = 0;
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  char ignored[64];
  for (;; rounds++) {
    for (int i = 0; i < blocks; i++) check(i);
    if (poll(&input, 1, 20) == 1 && read(STDIN_FILENO, ignored, sizeof ignored) <= 0) return rounds;
  }
}

int main(int argc, char** argv) {
  if (argc < 3) return 1;
  name = argv[1];
  const size_t want = strtoull(argv[2], NULL, 10) * kMiB;
  setvbuf(stdout, NULL, _IOLBF, 0);
  load();
  int device = 0;
  void* context = NULL;
  must(cuInit(0), "cuInit");
  must(cuDeviceGet(&device, 0), "cuDeviceGet");
  must(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  must(cuCtxSetCurrent(context), "cuCtxSetCurrent");

  size_t card = 0, free_before = 0, free_after = 0, total = 0;
  unsigned long long nvml_total = 0, nvml_used = 0;
  must(cuDeviceTotalMem(&card, device), "cuDeviceTotalMem");
  must(cuMemGetInfo(&free_before, &total), "cuMemGetInfo");
  printf("%s: card_mib=%zu total_mib=%zu free_mib=%zu\n", name, card / kMiB, total / kMiB,
         free_before / kMiB);

  const int result = fill(want);
  must(cuMemGetInfo(&free_after, &total), "cuMemGetInfo");
  nvml_memory(&nvml_total, &nvml_used);
  printf("%s: held_mib=%zu free_mib=%zu nvml_total_mib=%llu nvml_used_mib=%llu\n", name,
         blocks * (kStep / kMiB), free_after / kMiB, nvml_total / kMiB, nvml_used / kMiB);
  if (result != kSuccess) {
    const char* text = "?";
    cuGetErrorName(result, &text);
    printf("%s: refused=%s code=%d\n", name, text, result);
  }
  if (argc > 3 && strcmp(argv[3], "--stay") == 0) {
    printf("%s: ready=1\n", name);
    printf("%s: rounds=%ld correct=1\n", name, stay());
  }
  for (int i = 0; i < blocks; i++) must(cuMemFree(block[i]), "cuMemFree");
  return result == kSuccess ? 0 : result == kOutOfMemory ? 2 : 1;
}
