// SPDX-License-Identifier: Apache-2.0
// The processes on a card: NVML keeps three lists (compute, graphics, MPS clients), each in up to
// three versions, and a process may be in several. Here they become one list by pid.
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

// Merges a second list of a card into the first. A process in both holds its memory once: each list
// has all that it holds, so the larger figure counts.
void merge_processes(std::vector<seam::ProcessReading>& into,
                     const std::vector<seam::ProcessReading>& more);

// The work of processes on a card, by NVML's samples: only processes that did something are listed.
struct BusyProcess {
  pid_t pid = 0;
  unsigned percent = 0;  // the highest of its engines
};

// Samples since `*seen_us`, which advances. nullopt: this driver or card does not report.
std::optional<std::vector<BusyProcess>> read_busy(const NvmlLibrary& nvml, nvmlDevice_t device,
                                                  unsigned long long* seen_us);

// Puts the samples into the card's list of processes. A process without a sample did nothing, but
// only if the card's work belongs to listed processes. Otherwise (samples with the pids of another
// namespace, a process that has just ended, sensors read at different moments) the others are
// unknown. Clients of MPS are always unknown: their work is counted for its server.
void add_utilisation(const std::vector<BusyProcess>& busy, seam::CardReading& card);

}  // namespace mete::node
