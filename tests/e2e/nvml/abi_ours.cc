// SPDX-License-Identifier: Apache-2.0
// The facts of the NVML ABI from our own header.
#include "abi/nvml_api.h"
#include "tests/e2e/nvml/abi_table.h"

namespace mete::tests {

std::vector<AbiFact> abi_ours() {
  std::vector<AbiFact> table;
#include "tests/e2e/nvml/abi_facts.def"
  return table;
}

}  // namespace mete::tests
