// SPDX-License-Identifier: Apache-2.0
// Names, versions and addresses for cuGetProcAddress. abi/cuda_api.h must not be included here: the
// table needs every symbol, whatever its prototype.
#include <string.h>

#include "simgpu/procaddr.h"

// clang-format off
#define CUDA_SYMBOL(name) extern "C" int name();
#include "abi/cuda_symbols.def"
#undef CUDA_SYMBOL

namespace simgpu {
namespace {

struct Versioned {
  const char* name;
  int version;
  bool per_thread;
  Function function;
};

constexpr Versioned kVersions[] = {
#define CUDA_VERSIONED(name, version, per_thread, symbol) {#name, version, per_thread != 0, symbol},
#include "abi/cuda_versions.def"
#undef CUDA_VERSIONED
};
// clang-format on
constexpr int kCount = sizeof kVersions / sizeof kVersions[0];
}  // namespace

Found look_up(const char* name, int version, bool per_thread, Function* function) {
  int low = 0;
  int high = kCount;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (strcmp(kVersions[middle].name, name) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  Function plain = nullptr;
  Function threaded = nullptr;
  bool known = false;
  bool has_threaded = false;
  for (; low < kCount && strcmp(kVersions[low].name, name) == 0; ++low) {
    known = true;
    has_threaded = has_threaded || kVersions[low].per_thread;
    if (kVersions[low].version > version) continue;
    (kVersions[low].per_thread ? threaded : plain) = kVersions[low].function;
  }
  // With the flag, a function that has a per-thread variant is too new before that variant existed
  // (7000), though without the flag it is available (driver 580).
  *function = per_thread && has_threaded ? threaded : plain;
  if (!known) return Found::kUnknownName;
  return *function != nullptr ? Found::kYes : Found::kTooNew;
}

}  // namespace simgpu
