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

// What processes did on a card, by NVML's samples: those that did something are listed.
struct BusyProcess {
  pid_t pid = 0;
  unsigned percent = 0;  // the highest of its engines
};

// What was sampled since `*seen_us`, which moves on. nullopt: this driver or card does not say.
std::optional<std::vector<BusyProcess>> read_busy(const NvmlLibrary& nvml, nvmlDevice_t device,
                                                  unsigned long long* seen_us);

// Puts the samples into the card's list of processes. Who is not among them did nothing, but only
// if what the card did is somebody's of the list: where it is not (samples by the pids of another
// namespace, a process that has just ended, sensors that are not of the same moment), nothing is
// known of the others. Nothing is known of clients of MPS: their work is counted to its server.
void add_utilisation(const std::vector<BusyProcess>& busy, seam::CardReading& card);

}  // namespace mete::node
