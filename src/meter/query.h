// SPDX-License-Identifier: Apache-2.0
// One set of figures about a card for CUDA and NVML alike.
#pragma once

#include <cstdint>

#include "abi/cuda_types.h"

namespace mete::meter {

// What this process can still allocate on a card of which `card_free` bytes are free.
uint64_t free_bytes(int card, uint64_t card_free);

// A driver call of the program has failed. The context may be beyond repair, so the next
// cuMemGetInfo calls the driver, which reports the error.
void doubt_contexts();
inline CUresult heed(CUresult result) {
  if (__builtin_expect(result != CUDA_SUCCESS, 0)) doubt_contexts();
  return result;
}

}  // namespace mete::meter
