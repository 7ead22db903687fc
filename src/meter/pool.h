// SPDX-License-Identifier: Apache-2.0
// Stream-ordered pools and graph memory: charged by what they hold (RESERVED), not by what is in
// use.
#pragma once

#include "meter/state.h"

namespace mete::meter {

// Pools and graph memory grow in steps of 32 MiB.
inline constexpr uint64_t kStepBytes = 32ull << 20;
constexpr uint64_t step_units(uint64_t bytes) {
  return abi::units_for((bytes + kStepBytes - 1) / kStepBytes * kStepBytes);
}

// Reads what every pool of this process holds now and charges or gives back the difference.
void settle_pools();
// settle_pools() if a free may have changed anything. Cheap otherwise.
void settle_pools_soon();
// cuMemFree of a pointer that is no block of the meter: it may belong to a pool.
void note_plain_free();

// Charges the graph memory of a card by what the driver holds now. `reserved` units were taken for
// it before. Returns by how many units it grew.
uint64_t settle_graph(int card, uint64_t reserved);
// The driver was asked to free the graph memory that no graph uses.
void note_graph_trim(int card);

// Frees what this process's own pools and graphs hold without using it. True if anything came back.
bool trim_own(int card);

}  // namespace mete::meter
