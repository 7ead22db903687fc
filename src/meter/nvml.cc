// SPDX-License-Identifier: Apache-2.0
// NVML as a job sees it: only the granted cards, index i being the i-th of them, the size of the
// grant, and the job's own processes with their charges. Everything else is the driver's answer,
// untouched. These handlers run only when the program itself calls NVML; the meter never does.
#include <string.h>

#include "abi/cuda_card.h"
#include "abi/process.h"
#include "meter/budget.h"
#include "meter/grow.h"
#include "meter/query.h"
#include "meter/real.h"
#include "meter/state.h"

namespace mete::meter {
namespace {

int hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// "GPU-9887cdf3-cf90-…" or "MIG-…" to its sixteen bytes.
bool parse_uuid(const char* text, uint8_t* out) {
  const char* at = strchr(text, '-');
  if (at == nullptr) return false;
  int digits = 0;
  for (++at; *at != 0 && digits < 32; ++at) {
    if (*at == '-') continue;
    const int value = hex(*at);
    if (value < 0) return false;
    out[digits / 2] = static_cast<uint8_t>(digits % 2 == 0 ? value << 4 : out[digits / 2] | value);
    ++digits;
  }
  return digits == 32;
}

// The granted card behind an NVML handle, or kNoCard.
int card_behind(nvmlDevice_t device) {
  char text[96];
  uint8_t uuid[16];
  if (!attach() || real_nvml.nvmlDeviceGetUUID == nullptr ||
      real_nvml.nvmlDeviceGetUUID(device, text, sizeof(text)) != NVML_SUCCESS ||
      !parse_uuid(text, uuid))
    return kNoCard;
  for (uint32_t c = 0; c < process.grant->header.card_count; ++c)
    if (memcmp(uuid, process.grant->header.cards[c].uuid, 16) == 0) return static_cast<int>(c);
  return kNoCard;
}

nvmlReturn_t handle_by_index(unsigned int index, nvmlDevice_t* device) {
  if (!attach()) return NVML_ERROR_OPERATING_SYSTEM;
  if (index >= process.grant->header.card_count || device == nullptr)
    return NVML_ERROR_INVALID_ARGUMENT;
  abi::UuidText uuid = abi::uuid_text(process.grant->header.cards[index].uuid);
  nvmlReturn_t result = NVML_ERROR_NOT_FOUND;
  for (const char* prefix : {"GPU", "MIG"}) {
    memcpy(uuid.text, prefix, 3);
    result = real_nvml.nvmlDeviceGetHandleByUUID(uuid.text, device);
    if (result != NVML_ERROR_NOT_FOUND && result != NVML_ERROR_INVALID_ARGUMENT) break;
  }
  return result;
}

// A handle that the driver found is shown only if its card is granted.
nvmlReturn_t only_granted(nvmlReturn_t result, const nvmlDevice_t* device) {
  if (result != NVML_SUCCESS) return result;
  return card_behind(*device) == kNoCard ? NVML_ERROR_NOT_FOUND : NVML_SUCCESS;
}

// Calls visit(pid, charged bytes) for each living process of the job that holds memory on the card.
template <class Visit>
void each_process(int card, Visit visit) {
  abi::Grant& grant = *process.grant;
  for (uint32_t s = 0; s < abi::slot_count(grant); ++s) {
    const uint64_t owner = grant.slots[s].owner.load();
    // Includes what NVML saw beyond the charge: the list adds up to the card's used memory.
    const uint64_t units = abi::charged_units(grant, s, static_cast<uint32_t>(card)) +
                           grant.slots[s].cards[card].excess_units.load();
    if (owner == 0 || units == 0 || abi::process_is_gone(owner, process.owner)) continue;
    visit(abi::OwnerWord::unpack(owner).pid, units * abi::kUnitBytes);
  }
}

// Fills a list in the caller's struct. Like the driver: a list that is too small reports how many
// there are.
template <class Info, class Fill>
nvmlReturn_t list_processes(nvmlDevice_t device, unsigned int* count, Info* infos, Fill fill) {
  if (count == nullptr || (*count > 0 && infos == nullptr)) return NVML_ERROR_INVALID_ARGUMENT;
  const int card = card_behind(device);
  if (card == kNoCard) return NVML_ERROR_INVALID_ARGUMENT;
  const unsigned int room = *count;
  unsigned int found = 0;
  each_process(card, [&](uint32_t pid, uint64_t bytes) {
    if (found < room) fill(infos[found], pid, bytes);
    ++found;
  });
  *count = found;
  return found > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

nvmlReturn_t list_v1(nvmlDevice_t device, unsigned int* count, nvmlProcessInfo_v1_t* infos) {
  return list_processes(device, count, infos,
                        [](nvmlProcessInfo_v1_t& info, uint32_t pid, uint64_t bytes) {
                          info.pid = pid;
                          info.usedGpuMemory = bytes;
                        });
}

nvmlReturn_t list_v2(nvmlDevice_t device, unsigned int* count, nvmlProcessInfo_v2_t* infos) {
  return list_processes(device, count, infos,
                        [](nvmlProcessInfo_v2_t& info, uint32_t pid, uint64_t bytes) {
                          info.pid = pid;
                          info.usedGpuMemory = bytes;
                          info.gpuInstanceId = 0xffffffff;
                          info.computeInstanceId = 0xffffffff;
                        });
}

// The list that nvidia-smi asks for. Mode 0 is compute; graphics and MPS are empty.
nvmlReturn_t list_details(nvmlDevice_t device, nvmlProcessDetailList_t* list) {
  if (list->mode != 0) {
    list->numProcArrayEntries = 0;
    return NVML_SUCCESS;
  }
  unsigned int count = list->procArray != nullptr ? list->numProcArrayEntries : 0;
  const nvmlReturn_t result =
      list_processes(device, &count, list->procArray,
                     [](nvmlProcessDetail_v1_t& info, uint32_t pid, uint64_t bytes) {
                       info.pid = pid;
                       info.usedGpuMemory = bytes;
                       info.gpuInstanceId = 0xffffffff;
                       info.computeInstanceId = 0xffffffff;
                       info.usedGpuCcProtectedMemory = 0;
                     });
  list->numProcArrayEntries = count;
  return result;
}

// Graphics and MPS lists: the job's processes are all in the compute list.
nvmlReturn_t list_nothing(unsigned int* count) {
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *count = 0;
  return NVML_SUCCESS;
}

}  // namespace
}  // namespace mete::meter

using namespace mete::meter;

extern "C" {

nvmlReturn_t hook_nvmlDeviceGetCount_v2(unsigned int* count) {
  // The driver's own call comes first: it knows whether NVML is initialised.
  const nvmlReturn_t result = real_nvml.nvmlDeviceGetCount_v2(count);
  if (result != NVML_SUCCESS) return result;
  if (!attach()) return NVML_ERROR_OPERATING_SYSTEM;
  *count = process.grant->header.card_count;
  return result;
}
nvmlReturn_t hook_nvmlDeviceGetCount(unsigned int* count) {
  return hook_nvmlDeviceGetCount_v2(count);
}

nvmlReturn_t hook_nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t* device) {
  return handle_by_index(index, device);
}
nvmlReturn_t hook_nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t* device) {
  return handle_by_index(index, device);
}
nvmlReturn_t hook_nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device) {
  return only_granted(real_nvml.nvmlDeviceGetHandleByUUID(uuid, device), device);
}
nvmlReturn_t hook_nvmlDeviceGetHandleByPciBusId_v2(const char* bus, nvmlDevice_t* device) {
  return only_granted(real_nvml.nvmlDeviceGetHandleByPciBusId_v2(bus, device), device);
}
nvmlReturn_t hook_nvmlDeviceGetHandleByPciBusId(const char* bus, nvmlDevice_t* device) {
  return only_granted(real_nvml.nvmlDeviceGetHandleByPciBusId(bus, device), device);
}
nvmlReturn_t hook_nvmlDeviceGetHandleBySerial(const char* serial, nvmlDevice_t* device) {
  return only_granted(real_nvml.nvmlDeviceGetHandleBySerial(serial, device), device);
}

nvmlReturn_t hook_nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int* index) {
  const nvmlReturn_t result = real_nvml.nvmlDeviceGetIndex(device, index);
  if (result != NVML_SUCCESS) return result;
  const int card = card_behind(device);
  if (card == kNoCard) return NVML_ERROR_INVALID_ARGUMENT;
  *index = static_cast<unsigned int>(card);
  return result;
}

nvmlReturn_t hook_nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  const nvmlReturn_t result = real_nvml.nvmlDeviceGetMemoryInfo(device, memory);
  if (result != NVML_SUCCESS) return result;
  const int card = card_behind(device);
  if (card == kNoCard) return NVML_ERROR_INVALID_ARGUMENT;
  memory->total = shown_bytes(card);
  memory->free = free_bytes(card, memory->free);
  memory->used = memory->total - memory->free;
  return result;
}

nvmlReturn_t hook_nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory) {
  const nvmlReturn_t result = real_nvml.nvmlDeviceGetMemoryInfo_v2(device, memory);
  if (result != NVML_SUCCESS) return result;
  const int card = card_behind(device);
  if (card == kNoCard) return NVML_ERROR_INVALID_ARGUMENT;
  memory->total = shown_bytes(card);
  memory->reserved = 0;  // memory that the driver keeps for itself is not part of a grant
  memory->free = free_bytes(card, memory->free);
  memory->used = memory->total - memory->free;
  return result;
}

nvmlReturn_t hook_nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int* count,
                                                       nvmlProcessInfo_v1_t* infos) {
  return list_v1(device, count, infos);
}
nvmlReturn_t hook_nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int* count,
                                                          nvmlProcessInfo_v2_t* infos) {
  return list_v2(device, count, infos);
}
nvmlReturn_t hook_nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int* count,
                                                          nvmlProcessInfo_t* infos) {
  return list_v2(device, count, infos);
}
nvmlReturn_t hook_nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device,
                                                        nvmlProcessDetailList_t* list) {
  // The driver checks the version of the struct; its list is then replaced by the job's.
  if (list == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  nvmlProcessDetailList_t probe = *list;
  probe.numProcArrayEntries = 0;
  probe.procArray = nullptr;
  const nvmlReturn_t result = real_nvml.nvmlDeviceGetRunningProcessDetailList(device, &probe);
  if (result != NVML_SUCCESS && result != NVML_ERROR_INSUFFICIENT_SIZE) return result;
  return list_details(device, list);
}
nvmlReturn_t hook_nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t, unsigned int* count,
                                                        nvmlProcessInfo_v1_t*) {
  return list_nothing(count);
}
nvmlReturn_t hook_nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t, unsigned int* count,
                                                           nvmlProcessInfo_v2_t*) {
  return list_nothing(count);
}
nvmlReturn_t hook_nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t, unsigned int* count,
                                                           nvmlProcessInfo_t*) {
  return list_nothing(count);
}
nvmlReturn_t hook_nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t, unsigned int* count,
                                                          nvmlProcessInfo_v1_t*) {
  return list_nothing(count);
}
nvmlReturn_t hook_nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t, unsigned int* count,
                                                             nvmlProcessInfo_v2_t*) {
  return list_nothing(count);
}
nvmlReturn_t hook_nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t, unsigned int* count,
                                                             nvmlProcessInfo_t*) {
  return list_nothing(count);
}
}
