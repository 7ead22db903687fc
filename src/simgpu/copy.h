// SPDX-License-Identifier: Apache-2.0
// Resolving addresses, and moving bytes. Nothing is moved before both sides were found valid as a
// whole.
#pragma once

#include "simgpu/driver.h"

namespace simgpu {

// What a caller promises about a pointer: kKnown must be memory of the driver (device, managed,
// registered), kHost is the program's own and is trusted, kAny is looked up and trusted if unknown.
enum class Side : uint8_t { kAny, kKnown, kHost };

struct Copy {
  CUdeviceptr to;
  CUdeviceptr from;
  size_t bytes;
  Side to_side;
  Side from_side;
};
CUresult copy_checked(const Copy& copy);
// copy_box.cc: whether copy_3d (driver.h) would succeed, and a 2D copy as a 3D one.
CUresult check_3d(const CUDA_MEMCPY3D& what);
CUDA_MEMCPY3D one_slice(const CUDA_MEMCPY2D& what);
CUresult check_span(CUdeviceptr p, size_t bytes, bool write, Side side);

}  // namespace simgpu
