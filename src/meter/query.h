// SPDX-License-Identifier: Apache-2.0
// One truth about a card for CUDA and NVML alike.
#pragma once

#include <cstdint>

#include "abi/cuda_types.h"

namespace mete::meter {

// What this process can still have on a card of which `card_free` bytes are free.
uint64_t free_bytes(int card, uint64_t card_free);

// A driver call that the program made has failed: the context may be beyond repair, and the next
// cuMemGetInfo asks the driver, whose error it is to tell.
void doubt_contexts();
inline CUresult heed(CUresult result) {
  if (__builtin_expect(result != CUDA_SUCCESS, 0)) doubt_contexts();
  return result;
}

}  // namespace mete::meter
