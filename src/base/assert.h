// SPDX-License-Identifier: Apache-2.0
// METE_ASSERT(condition): for what cannot happen unless our own code is wrong. It stays on in
// release builds: dying with a line number is cheaper than continuing with a broken ledger. Bad
// input, full disks and driver errors are a Result instead. Not for src/meter or src/simgpu, which
// are guests and must not abort their host.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace mete::base {

[[noreturn]] inline void assert_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "mete: impossible: %s is false at %s:%d\n", condition, file, line);
  std::abort();
}

}  // namespace mete::base

#define METE_ASSERT(condition)                                     \
  do {                                                             \
    if (!(condition)) [[unlikely]]                                 \
      ::mete::base::assert_failed(#condition, __FILE__, __LINE__); \
  } while (false)
