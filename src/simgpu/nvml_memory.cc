// SPDX-License-Identifier: Apache-2.0
// Simulated NVML: memory and the processes that hold it. All processes of the simulation are
// compute processes. The figure of a process excludes managed memory, as in a driver; a list that
// does not fit returns only its length, so that the caller can retry with enough room.
#include <stdlib.h>
#include <time.h>

#include "simgpu/nvml_world.h"

using namespace simgpu;
using namespace simgpu::nvml;

namespace {

enum class Kind { kCompute, kGraphics, kMps };

// A process is on a card as soon as it has a context there.
bool is_on(const ProcessInfo& process, unsigned card) {
  return process.contexts[card] > 0 || process.bytes[card] > 0;
}

unsigned count_on(const Reading& reading, unsigned card) {
  unsigned count = 0;
  for (unsigned i = 0; i < reading.process_count; ++i)
    if (is_on(reading.processes[i], card)) ++count;
  return count;
}

void store(unsigned pid, uint64_t bytes, nvmlProcessInfo_v1_t* out) { *out = {pid, bytes}; }
void store(unsigned pid, uint64_t bytes, nvmlProcessInfo_v2_t* out) {
  *out = {pid, bytes, 0xffffffffU, 0xffffffffU};
}
void store(unsigned pid, uint64_t bytes, nvmlProcessDetail_v1_t* out) {
  *out = {pid, bytes, 0xffffffffU, 0xffffffffU, 0};
}

// The common end of all process lists: `*count` is the caller's room on entry and the true number
// on return.
template <typename Info>
nvmlReturn_t list(const CardCall& call, Kind kind, unsigned* count, Info* infos) {
  if (call.error() != NVML_SUCCESS) return call.error();
  if (count == nullptr || (infos == nullptr && *count != 0)) return NVML_ERROR_INVALID_ARGUMENT;
  const unsigned room = *count;
  *count = kind == Kind::kCompute ? count_on(call.reading(), call.index()) : 0;
  if (*count > room) return NVML_ERROR_INSUFFICIENT_SIZE;
  unsigned next = 0;
  for (unsigned i = 0; *count > 0 && i < call.reading().process_count; ++i) {
    const ProcessInfo& process = call.reading().processes[i];
    if (!is_on(process, call.index())) continue;
    store(static_cast<unsigned>(process.pid), process.bytes[call.index()], &infos[next++]);
  }
  return NVML_SUCCESS;
}

// The recent work of one process on a card.
struct Busy {
  unsigned pid;
  unsigned long long at_us;
  unsigned compute;
  unsigned memory;
};

unsigned long long now_us() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<unsigned long long>(now.tv_sec) * 1000000 +
         static_cast<unsigned long long>(now.tv_nsec) / 1000;
}

// Calls put(position, Busy) for each process with recent work on the card; `*count` becomes their
// number.
template <typename Put>
nvmlReturn_t list_busy(const CardCall& call, unsigned long long since_us, unsigned room,
                       unsigned* count, Put put) {
  if (getenv("METE_SIM_NVML_NO_PROCESS_LOAD") != nullptr) return NVML_ERROR_NOT_SUPPORTED;
  const unsigned long long now = now_us();
  unsigned found = 0;
  for (unsigned i = 0; since_us < now && i < call.reading().process_count; ++i) {
    const ProcessInfo& process = call.reading().processes[i];
    const unsigned card = call.index();
    if (process.compute[card] == 0 && process.memory[card] == 0) continue;
    if (found < room)
      put(found,
          {static_cast<unsigned>(process.pid), now, process.compute[card], process.memory[card]});
    ++found;
  }
  *count = found;
  if (found == 0) return NVML_ERROR_NOT_FOUND;
  return found > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

}  // namespace

METE_NVML nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  const CardCall call(device);
  if (call.error() != NVML_SUCCESS) return call.error();
  if (memory == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  memory->total = call.card().total;
  memory->free = free_bytes(call.card());
  memory->used = memory->total - memory->free;  // version 1: with the driver's own
  return NVML_SUCCESS;
}

METE_NVML nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory) {
  const CardCall call(device);
  if (call.error() != NVML_SUCCESS) return call.error();
  if (memory == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (memory->version != nvmlMemory_v2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  memory->total = call.card().total;
  memory->reserved = call.card().reserved;
  memory->free = free_bytes(call.card());
  memory->used = call.card().used;
  return NVML_SUCCESS;
}

METE_NVML nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t* memory) {
  const CardCall call(device);
  if (call.error() != NVML_SUCCESS) return call.error();
  if (memory == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  // The next power of two above the card's memory, of which the driver uses a little.
  unsigned long long size = 1ULL << 28;
  while (size < call.card().total) size *= 2;
  memory->bar1Total = size;
  memory->bar1Used = 2ULL << 20;
  memory->bar1Free = size - memory->bar1Used;
  return NVML_SUCCESS;
}

// NOLINTBEGIN(bugprone-macro-parentheses): names and types cannot stand in parentheses here
#define METE_NVML_PROCESSES(name, kind, type)                             \
  METE_NVML name(nvmlDevice_t device, unsigned int* count, type* infos) { \
    return list(CardCall(device, true), kind, count, infos);              \
  }
// NOLINTEND(bugprone-macro-parentheses)
METE_NVML_PROCESSES(nvmlDeviceGetComputeRunningProcesses, Kind::kCompute, nvmlProcessInfo_v1_t)
METE_NVML_PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2, Kind::kCompute, nvmlProcessInfo_v2_t)
METE_NVML_PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, Kind::kCompute, nvmlProcessInfo_t)
METE_NVML_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses, Kind::kGraphics, nvmlProcessInfo_v1_t)
METE_NVML_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2, Kind::kGraphics, nvmlProcessInfo_v2_t)
METE_NVML_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, Kind::kGraphics, nvmlProcessInfo_t)
METE_NVML_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses, Kind::kMps, nvmlProcessInfo_v1_t)
METE_NVML_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2, Kind::kMps, nvmlProcessInfo_v2_t)
METE_NVML_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, Kind::kMps, nvmlProcessInfo_t)
#undef METE_NVML_PROCESSES

METE_NVML nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_t* out) {
  const CardCall call(device, true);
  if (call.error() != NVML_SUCCESS) return call.error();
  if (out == nullptr || out->mode > 2) return NVML_ERROR_INVALID_ARGUMENT;
  if (out->version != nvmlProcessDetailList_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  return list(call, static_cast<Kind>(out->mode), &out->numProcArrayEntries, out->procArray);
}

// Processes with recent work, as a driver lists them: a process that is not listed did nothing.
METE_NVML nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                          nvmlProcessUtilizationSample_t* samples,
                                          unsigned int* count, unsigned long long last_seen_us) {
  const CardCall call(device, true);
  if (call.error() != NVML_SUCCESS) return call.error();
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return list_busy(call, last_seen_us, samples == nullptr ? 0 : *count, count,
                   [&](unsigned at, const Busy& busy) {
                     samples[at] = {busy.pid, busy.at_us, busy.compute, busy.memory, 0, 0};
                   });
}
