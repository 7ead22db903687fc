/* SPDX-License-Identifier: Apache-2.0
 * An ordinary driver-API program. "linked" calls what it was linked with; "dlopen NAME" opens the
 * library by that name and finds the functions with dlsym. Prints the bytes that a 3 MiB block
 * took. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "abi/cuda_api.h"

struct Functions {
  CUresult (*init)(unsigned int);
  CUresult (*retain)(CUcontext*, CUdevice);
  CUresult (*set)(CUcontext);
  CUresult (*info)(size_t*, size_t*);
  CUresult (*take)(CUdeviceptr*, size_t);
  CUresult (*fill)(CUdeviceptr, unsigned int, size_t);
  CUresult (*fetch)(void*, CUdeviceptr, size_t);
  CUresult (*give)(CUdeviceptr);
};

#define NEED(call)                                      \
  do {                                                  \
    const CUresult result_ = (call);                    \
    if (result_ != CUDA_SUCCESS) {                      \
      fprintf(stderr, "%s: %d\n", #call, (int)result_); \
      return 1;                                         \
    }                                                   \
  } while (0)

static int run(const struct Functions* f) {
  CUcontext context;
  CUdeviceptr block;
  size_t before, after, total;
  unsigned int words[4] = {0, 0, 0, 0};
  NEED(f->init(0));
  NEED(f->retain(&context, 0));
  NEED(f->set(context));
  NEED(f->info(&before, &total));
  NEED(f->take(&block, 3u << 20));
  NEED(f->info(&after, &total));
  NEED(f->fill(block, 0xfeedf00du, (3u << 20) / 4));
  NEED(f->fetch(words, block + (3u << 20) - sizeof words, sizeof words));
  if (words[0] != 0xfeedf00du || words[3] != 0xfeedf00du) return 2;
  NEED(f->give(block));
  printf("%zu\n", before - after);
  return 0;
}

int main(int argc, char** argv) {
  struct Functions f = {cuInit,        cuDevicePrimaryCtxRetain, cuCtxSetCurrent, cuMemGetInfo_v2,
                        cuMemAlloc_v2, cuMemsetD32_v2,           cuMemcpyDtoH_v2, cuMemFree_v2};
  if (argc == 3 && strcmp(argv[1], "dlopen") == 0) {
    void* library = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
      fprintf(stderr, "%s\n", dlerror());
      return 3;
    }
    *(void**)&f.init = dlsym(library, "cuInit");
    *(void**)&f.retain = dlsym(library, "cuDevicePrimaryCtxRetain");
    *(void**)&f.set = dlsym(library, "cuCtxSetCurrent");
    *(void**)&f.info = dlsym(library, "cuMemGetInfo_v2");
    *(void**)&f.take = dlsym(library, "cuMemAlloc_v2");
    *(void**)&f.fill = dlsym(library, "cuMemsetD32_v2");
    *(void**)&f.fetch = dlsym(library, "cuMemcpyDtoH_v2");
    *(void**)&f.give = dlsym(library, "cuMemFree_v2");
  }
  return run(&f);
}
