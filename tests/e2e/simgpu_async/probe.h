// SPDX-License-Identifier: Apache-2.0
// What every probe program shares: a driver-API program loads libcuda.so.1 as programs do, runs one
// named scenario and prints "key value" lines. The test judges them, so the program can also be run
// on a real card and its lines compared.
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/cuda_card.h"
#include "tests/support/driver_calls.h"

namespace probe {

constexpr size_t kMiB = 1 << 20;

inline void say(const char* key, long long value) { printf("%s %lld\n", key, value); }

inline void must_be_ok(CUresult result, const char* what, int line) {
  if (result == CUDA_SUCCESS) return;
  fprintf(stderr, "line %d: %s: error %d\n", line, what, static_cast<int>(result));
  fflush(stdout);
  _Exit(71);
}
#define OK(call) probe::must_be_ok((call), #call, __LINE__)

inline CUcontext start() {
  OK(CU(cuInit)(0));
  CUcontext context = nullptr;
  OK(CU(cuDevicePrimaryCtxRetain)(&context, 0));
  OK(CU(cuCtxSetCurrent)(context));
  return context;
}

inline long long used() {
  size_t free_bytes = 0;
  size_t total = 0;
  OK(CU(cuMemGetInfo_v2)(&free_bytes, &total));
  return static_cast<long long>(total - free_bytes);
}

struct Scenario {
  const char* name;
  void (*run)();
};

template <size_t N>
int main_of(int argc, char** argv, const Scenario (&scenarios)[N]) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  for (const Scenario& scenario : scenarios) {
    if (argc > 1 && strcmp(argv[1], scenario.name) == 0) {
      scenario.run();
      return 0;
    }
  }
  for (const Scenario& scenario : scenarios) fprintf(stderr, "%s\n", scenario.name);
  return 64;
}

}  // namespace probe
