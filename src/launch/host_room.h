// SPDX-License-Identifier: Apache-2.0
// How much host memory a process can still take before the kernel kills a process: what the machine
// has available, and what the control groups (v2) above the process leave of their limits.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"

namespace mete::launch {

// The files of the kernel; tests have folders of their own.
struct HostFiles {
  std::string proc = "/proc";
  std::string cgroup = "/sys/fs/cgroup";
};

// The lowest limit of these groups, whatever its usage. A limit that cannot be read is ignored.
Bytes host_limit(std::uint32_t pid, const HostFiles& files = {});
// The least that is left below any of these limits.
Bytes host_room(std::uint32_t pid, const HostFiles& files = {});

}  // namespace mete::launch
