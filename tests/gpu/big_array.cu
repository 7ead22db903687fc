// SPDX-License-Identifier: Apache-2.0
// A CUDA runtime program with 2 GiB of __device__ memory, which no allocation call announces: the meter learns of it
// from NVML's reading within a second, and from then on counts it.   mete cap --gpu 4G -- big_array
#include <cuda_runtime.h>
#include <poll.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#ifndef PARTS
#define PARTS 1
#endif
__device__ unsigned char big[PARTS][(2ull << 30) / PARTS];

__global__ void touch(unsigned long long n) { big[0][n - 1] = 7; }

static bool failed = false;
static void row(bool good, const char* what, const char* format, double a, double b) {
  failed |= !good;
  printf("%s\t%s\t", good ? "ok" : "FAIL", what);
  printf(format, a, b);
  printf("\n");
}

int main() {
  const double mib = 1 << 20;
  size_t free0 = 0, total = 0, free1 = 0;
  if (cudaMemGetInfo(&free0, &total) != cudaSuccess) return 1;
  touch<<<1, 1>>>((2ull << 30) / PARTS);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  const auto begin = std::chrono::steady_clock::now();
  double waited = 0;
  do {
    poll(nullptr, 0, 5);
    if (cudaMemGetInfo(&free1, &total) != cudaSuccess) return 1;
    waited = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  } while (total - free1 < (2ull << 30) && waited < 10);
  row(total - free1 >= (2ull << 30) && waited < 1.5, "2 GiB __device__ array: charged within 1 s", "used %.1f MiB after %.2f s",
      (total - free1) / mib, waited);
  size_t got = 0;
  void* p = nullptr;
  while (got < total && cudaMalloc(&p, 16 << 20) == cudaSuccess) got += 16 << 20;
  row(got <= total - (2ull << 30), "2 GiB __device__ array: what cudaMalloc still gets", "%.1f MiB of %.1f MiB", got / mib, total / mib);
  return failed ? 1 : 0;
}
