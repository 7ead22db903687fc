// SPDX-License-Identifier: Apache-2.0
// Holds memory on one card until its standard input ends: holder LIBCUDA ORDINAL PLAIN_BYTES
// MANAGED_BYTES. Prints "ready" when it holds everything. For each byte of input it writes to its
// plain memory and prints "done". Exit code 1 and the failing call on stderr otherwise.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "abi/cuda_api.h"

static void* library;

static void* find(const char* name) {
  void* function = dlsym(library, name);
  if (function == NULL) {
    fprintf(stderr, "no %s\n", name);
    exit(1);
  }
  return function;
}

static void check(const char* what, CUresult result) {
  if (result == CUDA_SUCCESS) return;
  fprintf(stderr, "%s: %d\n", what, (int)result);
  exit(1);
}

int main(int argc, char** argv) {
  if (argc != 5) return 64;
  library = dlopen(argv[1], RTLD_NOW);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  CUresult (*init)(unsigned) = find("cuInit");
  CUresult (*get)(CUdevice*, int) = find("cuDeviceGet");
  CUresult (*retain)(CUcontext*, CUdevice) = find("cuDevicePrimaryCtxRetain");
  CUresult (*set_current)(CUcontext) = find("cuCtxSetCurrent");
  CUresult (*alloc)(CUdeviceptr*, size_t) = find("cuMemAlloc_v2");
  CUresult (*fill)(CUdeviceptr, unsigned char, size_t) = find("cuMemsetD8_v2");
  CUresult (*alloc_managed)(CUdeviceptr*, size_t, unsigned) = find("cuMemAllocManaged");
  CUdevice device = 0;
  CUcontext context = NULL;
  CUdeviceptr block = 0, other = 0;
  const size_t plain = strtoull(argv[3], NULL, 10), managed = strtoull(argv[4], NULL, 10);
  check("cuInit", init(0));
  check("cuDeviceGet", get(&device, atoi(argv[2])));
  check("cuDevicePrimaryCtxRetain", retain(&context, device));
  check("cuCtxSetCurrent", set_current(context));
  if (plain > 0) check("cuMemAlloc_v2", alloc(&block, plain));
  if (managed > 0) check("cuMemAllocManaged", alloc_managed(&other, managed, 1));
  puts("ready");
  fflush(stdout);
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
    check("cuMemsetD8_v2", fill(block, 7, plain));
    puts("done");
    fflush(stdout);
  }
  return 0;
}
