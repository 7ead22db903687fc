// SPDX-License-Identifier: Apache-2.0
// The server's only clock: monotonic milliseconds.
#pragma once

#include <cstdint>

namespace simgpu {
uint64_t now_ms();
}
