// SPDX-License-Identifier: Apache-2.0
// The look-up behind cuGetProcAddress.
#pragma once

namespace simgpu {

using Function = int (*)();
enum class Found { kYes, kUnknownName, kTooNew };

// The function that `name` means at `version`; `per_thread` means its per-thread-stream variant
// where it has one.
Found look_up(const char* name, int version, bool per_thread, Function* function);

}  // namespace simgpu
