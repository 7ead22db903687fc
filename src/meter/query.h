// SPDX-License-Identifier: Apache-2.0
// One truth about a card for CUDA and NVML alike.
#pragma once

#include <cstdint>

namespace mete::meter {

// What this process can still have on a card of which `card_free` bytes are free.
uint64_t free_bytes(int card, uint64_t card_free);

}  // namespace mete::meter
