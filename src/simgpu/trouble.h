// SPDX-License-Identifier: Apache-2.0
// Faults and delays on demand (METE_SIM_FAULT, METE_SIM_DELAY_US; docs/formats/simgpu.md).
#pragma once

namespace simgpu {

// The result of an entry point that is not modelled: a fault requested by name, else 801.
int not_modelled(const char* name);

}  // namespace simgpu
