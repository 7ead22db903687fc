// SPDX-License-Identifier: Apache-2.0
// Where bytes are, and moving them. Nothing is moved before the whole of both sides was found
// valid.
#pragma once

#include "simgpu/driver.h"

namespace simgpu {

// What a caller promises about a pointer: kKnown must be memory of the driver's (device, managed,
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
CUresult check_span(CUdeviceptr p, size_t bytes, bool write, Side side);

}  // namespace simgpu
