// SPDX-License-Identifier: Apache-2.0
// Launching kernels: what a launch takes from the card, and what the built-in kernels do.
#pragma once

#include "simgpu/module.h"
#include "simgpu/stream.h"

namespace simgpu {

inline constexpr unsigned kMaxDynamicShared = 48 << 10;

struct Shape {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared;
};

CUresult check_shape(const Function* function, const Shape& shape);
// Takes the code, local memory and heap that the kernel needs in its context.
CUresult prepare_launch(Function* function);
// A task for the kernel with its arguments copied. Null `arguments` and `extra`: it has none.
CUresult kernel_task(Function* function, const Shape& shape, void** arguments, void** extra,
                     Task* out);
// The effect of a kernel task (built-in kernels have one).
CUresult run_kernel(Stream* stream, const Task& task);

}  // namespace simgpu
