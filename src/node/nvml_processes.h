// SPDX-License-Identifier: Apache-2.0
// The processes on a card: NVML keeps three lists (compute, graphics, MPS clients), each in up to
// three versions, and a process may stand in several. Here they become one list by pid.
#pragma once

#include <optional>
#include <vector>

#include "node/nvml_library.h"
#include "seam/driver.h"

namespace mete::node {

// Sorted by pid. nullopt inside: this driver does not list processes. An error: the card is lost,
// or the list grew faster than we could read it (busy).
Result<std::optional<std::vector<seam::ProcessReading>>> read_processes(const NvmlLibrary& nvml,
                                                                        nvmlDevice_t device);

// Puts a second list of the same card into the first. A process in both holds its memory once: each
// list tells all that it holds, so the larger figure stands.
void merge_processes(std::vector<seam::ProcessReading>& into,
                     const std::vector<seam::ProcessReading>& more);

}  // namespace mete::node
