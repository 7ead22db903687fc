// SPDX-License-Identifier: Apache-2.0
// Names, versions and addresses for cuGetProcAddress. abi/cuda_api.h must not be included here: the
// table needs every symbol, whatever its prototype.
#include <string.h>

#include "simgpu/procaddr.h"

// clang-format off
#define CUDA_SYMBOL(name) extern "C" int name();
#include "abi/cuda_symbols.def"

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
#include "abi/cuda_symbols.def"
};
// clang-format on
}  // namespace

Found look_up(const char* name, int version, bool per_thread, Function* function) {
  const Versioned* plain = nullptr;
  const Versioned* threaded = nullptr;
  bool known = false;
  bool has_threaded = false;
  for (const Versioned& row : kVersions) {
    if (strcmp(row.name, name) != 0) continue;
    known = true;
    has_threaded = has_threaded || row.per_thread;
    const Versioned*& best = row.per_thread ? threaded : plain;
    if (row.version <= version && (best == nullptr || row.version > best->version)) best = &row;
  }
  // With the flag, a function that has a per-thread variant is too new before that variant came
  // (7000), though without the flag it is there (driver 580).
  const Versioned* const found = per_thread && has_threaded ? threaded : plain;
  *function = found != nullptr ? found->function : nullptr;
  if (!known) return Found::kUnknownName;
  return *function != nullptr ? Found::kYes : Found::kTooNew;
}

}  // namespace simgpu
