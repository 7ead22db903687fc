// SPDX-License-Identifier: Apache-2.0
// See nvml_processes.h. Each list is read with a buffer that grows until NVML accepts it, in the
// newest version that the driver has; the three lists are merged by pid. Utilisation comes from
// NVML's samples since the newest one seen: a listed process without a sample did nothing, provided
// that the card's work can be attributed to listed processes.
#include "node/nvml_processes.h"

#include <algorithm>

#include "node/nvml_text.h"

namespace mete::node {
namespace {

using seam::ProcessReading;

constexpr unsigned kFirstRoom = 64;
constexpr unsigned kMostRoom = 65536;

// NVML says "not available" with all bits set.
std::optional<Bytes> known(unsigned long long bytes) {
  if (bytes == static_cast<unsigned long long>(NVML_VALUE_NOT_AVAILABLE)) return std::nullopt;
  return Bytes::from_bytes(bytes);
}

// Calls with a growing buffer until the list fits. Processes start and end between two calls, so
// the size that NVML asks for is doubled.
template <typename Info>
nvmlReturn_t read_list(nvmlReturn_t (*function)(nvmlDevice_t, unsigned*, Info*),
                       nvmlDevice_t device, bool mps, std::vector<ProcessReading>& out) {
  if (function == nullptr) return NVML_ERROR_FUNCTION_NOT_FOUND;
  std::vector<Info> infos(kFirstRoom);
  for (;;) {
    unsigned count = static_cast<unsigned>(infos.size());
    const nvmlReturn_t result = function(device, &count, infos.data());
    if (result == NVML_ERROR_INSUFFICIENT_SIZE) {
      if (infos.size() >= kMostRoom) return NVML_ERROR_TIMEOUT;
      infos.resize(
          std::min<std::size_t>(kMostRoom, std::max<std::size_t>(count, infos.size()) * 2));
      continue;
    }
    if (result != NVML_SUCCESS) return result;
    for (unsigned i = 0; i < std::min<std::size_t>(count, infos.size()); ++i)
      out.push_back({static_cast<pid_t>(infos[i].pid), known(infos[i].usedGpuMemory), mps});
    return NVML_SUCCESS;
  }
}

// The newest version that this driver has.
template <typename V3, typename V2, typename V1>
nvmlReturn_t read_newest(V3 v3, V2 v2, V1 v1, nvmlDevice_t device, bool mps,
                         std::vector<ProcessReading>& out) {
  nvmlReturn_t result = read_list(v3, device, mps, out);
  if (is_missing(result)) result = read_list(v2, device, mps, out);
  if (is_missing(result)) result = read_list(v1, device, mps, out);
  return result;
}

}  // namespace

void merge_processes(std::vector<ProcessReading>& into, const std::vector<ProcessReading>& more) {
  into.insert(into.end(), more.begin(), more.end());
  std::stable_sort(into.begin(), into.end(),
                   [](const ProcessReading& a, const ProcessReading& b) { return a.pid < b.pid; });
  std::vector<ProcessReading> merged;
  for (const ProcessReading& process : into) {
    if (merged.empty() || merged.back().pid != process.pid) {
      merged.push_back(process);
      continue;
    }
    ProcessReading& same = merged.back();
    if (!same.used || (process.used && *process.used > *same.used)) same.used = process.used;
    same.mps = same.mps || process.mps;
  }
  into = std::move(merged);
}

Result<std::optional<std::vector<ProcessReading>>> read_processes(const NvmlLibrary& nvml,
                                                                  nvmlDevice_t device) {
  struct List {
    nvmlReturn_t result;
    std::vector<ProcessReading> processes;
  };
  List compute{}, graphics{}, mps{};
  compute.result = read_newest(
      nvml.nvmlDeviceGetComputeRunningProcesses_v3, nvml.nvmlDeviceGetComputeRunningProcesses_v2,
      nvml.nvmlDeviceGetComputeRunningProcesses, device, false, compute.processes);
  graphics.result = read_newest(
      nvml.nvmlDeviceGetGraphicsRunningProcesses_v3, nvml.nvmlDeviceGetGraphicsRunningProcesses_v2,
      nvml.nvmlDeviceGetGraphicsRunningProcesses, device, false, graphics.processes);
  mps.result =
      read_newest(nvml.nvmlDeviceGetMPSComputeRunningProcesses_v3,
                  nvml.nvmlDeviceGetMPSComputeRunningProcesses_v2,
                  nvml.nvmlDeviceGetMPSComputeRunningProcesses, device, true, mps.processes);
  std::vector<ProcessReading> all;
  bool any = false;
  for (const List* list : {&compute, &graphics, &mps}) {
    if (is_lost(list->result)) return nvml_error("list the processes", list->result);
    if (list->result == NVML_ERROR_TIMEOUT)
      return Error::busy("the list of processes keeps growing");
    if (list->result != NVML_SUCCESS) continue;
    any = true;
    merge_processes(all, list->processes);
  }
  // Accounting relies on the compute list: without it an empty answer would be wrong.
  if (!any || compute.result != NVML_SUCCESS) return std::optional<std::vector<ProcessReading>>();
  return std::optional(std::move(all));
}

std::optional<std::vector<BusyProcess>> read_busy(const NvmlLibrary& nvml, nvmlDevice_t device,
                                                  unsigned long long* seen_us) {
  const auto function = nvml.nvmlDeviceGetProcessUtilization;
  if (function == nullptr) return std::nullopt;
  std::vector<nvmlProcessUtilizationSample_t> samples(kFirstRoom);
  for (;;) {
    unsigned count = static_cast<unsigned>(samples.size());
    const nvmlReturn_t result = function(device, samples.data(), &count, *seen_us);
    if (result == NVML_ERROR_NOT_FOUND) return std::vector<BusyProcess>();
    if (result == NVML_ERROR_INSUFFICIENT_SIZE && samples.size() < kMostRoom) {
      samples.resize(
          std::min<std::size_t>(kMostRoom, std::max<std::size_t>(count, samples.size()) * 2));
      continue;
    }
    if (result != NVML_SUCCESS) return std::nullopt;
    samples.resize(std::min<std::size_t>(count, samples.size()));
    break;
  }
  std::vector<BusyProcess> busy;
  for (const nvmlProcessUtilizationSample_t& sample : samples) {
    // Some drivers pad the list with empty entries.
    if (sample.timeStamp == 0 && sample.pid == 0) continue;
    *seen_us = std::max(*seen_us, sample.timeStamp);
    busy.push_back({static_cast<pid_t>(sample.pid),
                    std::max({sample.smUtil, sample.memUtil, sample.encUtil, sample.decUtil})});
  }
  return busy;
}

void add_utilisation(const std::vector<BusyProcess>& busy, seam::CardReading& card) {
  if (!card.processes) return;
  bool somebodys = false;
  bool nobodys = card.utilisation_pct.value_or(0) > 0;
  for (const BusyProcess& each : busy) {
    const auto process =
        std::find_if(card.processes->begin(), card.processes->end(),
                     [&](const ProcessReading& listed) { return listed.pid == each.pid; });
    if (process == card.processes->end()) {
      nobodys = nobodys || each.percent > 0;
      continue;
    }
    process->utilisation_pct = std::max(process->utilisation_pct.value_or(0), each.percent);
    somebodys = somebodys || each.percent > 0;
  }
  for (ProcessReading& process : *card.processes) {
    if (process.mps)
      process.utilisation_pct.reset();
    else if (!process.utilisation_pct && (somebodys || !nobodys))
      process.utilisation_pct = 0;
  }
}

}  // namespace mete::node
