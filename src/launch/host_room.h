// SPDX-License-Identifier: Apache-2.0
// How much memory of the host a process can still take before the kernel ends something: what the
// machine has available, and what the control groups (v2) above the process leave of their limits.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"

namespace mete::launch {

// Where the kernel tells; tests have folders of their own.
struct HostFiles {
  std::string proc = "/proc";
  std::string cgroup = "/sys/fs/cgroup";
};

// The least limit of those groups, whatever is taken of it. What cannot be read does not bound it.
Bytes host_limit(std::uint32_t pid, const HostFiles& files = {});
// The same for what is left.
Bytes host_room(std::uint32_t pid, const HostFiles& files = {});

}  // namespace mete::launch
