// SPDX-License-Identifier: Apache-2.0
// mete-demo-program: the program that `mete demo` runs. A minimal program of the CUDA driver API:
// it takes GPU memory in blocks of 256 MiB, writes to them, reads them back. It knows nothing of
// mete, links nothing of it and needs no CUDA toolkit (its few prototypes are below).
//   mete-demo-program NAME BLOCKS    takes BLOCKS blocks, or as many as the driver gives. Then one
//                                    more for each line that it reads, until its input ends.
// It reports on stdout, a line each: `NAME: word key=value ...`. Exit code 0: it got all that it
// wanted; 2: refused as out of memory (it then reads no input); 1: anything else.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kSuccess = 0, kOutOfMemory = 2, kMaxBlocks = 4096, kMark = 64 << 10 };
static const size_t kBlock = (size_t)256 << 20;

static int (*cuInit)(unsigned);
static int (*cuDeviceGet)(int*, int);
static int (*cuDeviceGetCount)(int*);
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

static void load(void) {
  void* cuda = dlopen("libcuda.so.1", RTLD_NOW);
  *(void**)&cuInit = find(cuda, "cuInit");
  *(void**)&cuDeviceGet = find(cuda, "cuDeviceGet");
  *(void**)&cuDeviceGetCount = find(cuda, "cuDeviceGetCount");
  *(void**)&cuDevicePrimaryCtxRetain = find(cuda, "cuDevicePrimaryCtxRetain");
  *(void**)&cuCtxSetCurrent = find(cuda, "cuCtxSetCurrent");
  *(void**)&cuMemGetInfo = find(cuda, "cuMemGetInfo_v2");
  *(void**)&cuMemAlloc = find(cuda, "cuMemAlloc_v2");
  *(void**)&cuMemFree = find(cuda, "cuMemFree_v2");
  *(void**)&cuMemsetD8 = find(cuda, "cuMemsetD8_v2");
  *(void**)&cuMemcpyDtoH = find(cuda, "cuMemcpyDtoH_v2");
  *(void**)&cuGetErrorName = find(cuda, "cuGetErrorName");
}

static const char* error_name(int result) {
  const char* text = "?";
  cuGetErrorName(result, &text);
  return text;
}

static void must(int result, const char* what) {
  if (result == kSuccess) return;
  fprintf(stderr, "%s: %s: %s (%d)\n", name, what, error_name(result), result);
  exit(1);
}

// What is written to the end of a block, and must still be there later.
static unsigned char pattern(int index) { return (unsigned char)(index * 7 + 1); }

static int is_intact(int index) {
  static unsigned char seen[kMark];
  must(cuMemcpyDtoH(seen, block[index] + kBlock - kMark, kMark), "cuMemcpyDtoH");
  for (int i = 0; i < kMark; i++)
    if (seen[i] != pattern(index)) return 0;
  return 1;
}

static int all_intact(void) {
  int intact = 1;
  for (int i = 0; i < blocks; i++) intact = intact && is_intact(i);
  return intact;
}

// The driver's answer.
static int take_one(void) {
  const int result = blocks < kMaxBlocks ? cuMemAlloc(&block[blocks], kBlock) : kOutOfMemory;
  if (result != kSuccess) return result;
  must(cuMemsetD8(block[blocks] + kBlock - kMark, pattern(blocks), kMark), "cuMemsetD8");
  blocks++;
  return result;
}

static void say(const char* word, const char* more) {
  size_t free_bytes = 0, total_bytes = 0;
  must(cuMemGetInfo(&free_bytes, &total_bytes), "cuMemGetInfo");
  printf("%s: %s%s held_bytes=%zu total_bytes=%zu free_bytes=%zu intact=%d\n", name, word, more,
         blocks * kBlock, total_bytes, free_bytes, all_intact());
}

static int refused(int result) {
  char more[128];
  snprintf(more, sizeof more, " error=%s", error_name(result));
  say("refused", more);
  return result == kOutOfMemory ? 2 : 1;
}

static int work(long wanted) {
  int device = 0, count = 0;
  void* context = NULL;
  must(cuInit(0), "cuInit");
  must(cuDeviceGetCount(&count), "cuDeviceGetCount");
  must(cuDeviceGet(&device, 0), "cuDeviceGet");
  must(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  char more[32];
  snprintf(more, sizeof more, " cards=%d", count);
  say("sees", more);
  int result = kSuccess;
  while (blocks < wanted && result == kSuccess) result = take_one();
  if (result != kSuccess) return refused(result);
  say("holds", "");
  char line[64];
  while (fgets(line, sizeof line, stdin) != NULL) {
    result = take_one();
    if (result != kSuccess) return refused(result);
    say("holds", "");
  }
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: mete-demo-program NAME BLOCKS\n");
    return 1;
  }
  name = argv[1];
  setvbuf(stdout, NULL, _IOLBF, 0);
  load();
  const int code = work(strtol(argv[2], NULL, 10));
  for (int i = 0; i < blocks; i++) must(cuMemFree(block[i]), "cuMemFree");
  return code;
}
