// SPDX-License-Identifier: Apache-2.0
// The facts of the NVML ABI from a real nvml.h, whose path the build passes as METE_NVML_H.
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include METE_NVML_H

#include "tests/e2e/nvml/abi_table.h"

namespace mete::tests {

std::vector<AbiFact> abi_theirs() {
  std::vector<AbiFact> table;
#include "tests/e2e/nvml/abi_facts.def"
  return table;
}

}  // namespace mete::tests
