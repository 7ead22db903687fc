// SPDX-License-Identifier: Apache-2.0
// What a toolkit's cuda.h says, with the old versions of functions visible too.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#define COLLECT_NAME real_facts
#include "tests/checks/cuda_abi_collect.h"
