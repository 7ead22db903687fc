// SPDX-License-Identifier: Apache-2.0
// Simulated NVML: memory and the processes that hold it. All processes of the simulation are
// compute processes. What a process holds leaves out managed memory, as a driver does; a list that
// does not fit says how long it is and nothing else, so that a caller that guesses too small a
// buffer is told the truth.
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

unsigned long long now_us() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<unsigned long long>(now.tv_sec) * 1000000 +
         static_cast<unsigned long long>(now.tv_nsec) / 1000;
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

// The card's load, shared evenly by the processes on it.
METE_NVML nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                          nvmlProcessUtilizationSample_t* samples,
                                          unsigned int* count, unsigned long long last_seen_us) {
  const CardCall call(device, true);
  if (call.error() != NVML_SUCCESS) return call.error();
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const unsigned long long now = now_us();
  const unsigned present = last_seen_us < now ? count_on(call.reading(), call.index()) : 0;
  const unsigned room = samples == nullptr ? 0 : *count;
  *count = present;
  if (present == 0) return NVML_ERROR_NOT_FOUND;
  if (present > room) return NVML_ERROR_INSUFFICIENT_SIZE;
  unsigned next = 0;
  for (unsigned i = 0; i < call.reading().process_count; ++i) {
    const ProcessInfo& process = call.reading().processes[i];
    if (!is_on(process, call.index())) continue;
    samples[next++] = {
        static_cast<unsigned>(process.pid),           now, call.card().utilisation_pct / present,
        call.card().memory_utilisation_pct / present, 0,   0};
  }
  return NVML_SUCCESS;
}

METE_NVML nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
                                                nvmlProcessesUtilizationInfo_t* out) {
  const CardCall call(device, true);
  if (call.error() != NVML_SUCCESS) return call.error();
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (out->version != nvmlProcessesUtilizationInfo_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  const unsigned long long now = now_us();
  const unsigned present =
      out->lastSeenTimeStamp < now ? count_on(call.reading(), call.index()) : 0;
  const unsigned room = out->procUtilArray == nullptr ? 0 : out->processSamplesCount;
  out->processSamplesCount = present;
  if (present == 0) return NVML_ERROR_NOT_FOUND;
  if (present > room) return NVML_ERROR_INSUFFICIENT_SIZE;
  unsigned next = 0;
  for (unsigned i = 0; i < call.reading().process_count; ++i) {
    const ProcessInfo& process = call.reading().processes[i];
    if (!is_on(process, call.index())) continue;
    const unsigned share = call.card().utilisation_pct / present;
    out->procUtilArray[next++] = {now,   static_cast<unsigned>(process.pid),
                                  share, call.card().memory_utilisation_pct / present,
                                  0,     0,
                                  0,     0};
  }
  return NVML_SUCCESS;
}
