// SPDX-License-Identifier: Apache-2.0
// What our header says.
#include "abi/cuda_api.h"

#define COLLECT_NAME our_facts
#include "tests/checks/cuda_abi_collect.h"
