// SPDX-License-Identifier: Apache-2.0
// Which cards a process sees and in which order: CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER.
#pragma once

#include "simgpu/protocol.h"

namespace simgpu {

// Fills `order` with indices into `cards`; returns how many. `visible` and `device_order` are the
// variables' values, null when unset. An entry that names no card, or one named before, ends the
// list.
int choose_cards(const CardInfo* cards, int count, const char* visible, const char* device_order,
                 uint32_t* order);

}  // namespace simgpu
