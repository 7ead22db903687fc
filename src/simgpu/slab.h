// SPDX-License-Identifier: Apache-2.0
// Small blocks: 512-byte cells in 2 MiB slabs, per context. No request to the server except when a
// slab is taken or becomes empty. Every caller holds the Guard.
#pragma once

#include "simgpu/driver.h"

namespace simgpu {

inline constexpr size_t kCell = 512;
inline constexpr size_t kSmallMax = 1ull << 20;  // larger requests are granules of their own

// `align` in cells (arrays need 64 KiB). CUDA_ERROR_OUT_OF_MEMORY when no slab is available.
CUresult slab_take(Context* context, size_t bytes, size_t align_cells, CUdeviceptr* p);
CUresult slab_give(Range* range, CUdeviceptr p);
extern const RangeOps kSlabOps;

}  // namespace simgpu
