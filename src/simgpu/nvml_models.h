// SPDX-License-Identifier: Apache-2.0
// What NVML reports about a kind of card beyond what the simulation's server knows: identity and
// links. Data only. A card that is not in the table counts as a plain PCIe card.
#pragma once

namespace simgpu::nvml {

struct Model {
  const char* word;  // found in the card's name: "H200"
  unsigned arch;     // NVML_DEVICE_ARCH_*
  unsigned nvlinks;  // 0: reaches its neighbours over PCIe only
  bool mig;          // can be split (here it never is)
  bool datacenter;   // peer access over PCIe works
};

// The model whose word occurs in the name; words are tried in the table's order, so that "A10G"
// comes before "A10" and "L40S" before "L4".
const Model& model_of(const char* name);

}  // namespace simgpu::nvml
