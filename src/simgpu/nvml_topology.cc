// SPDX-License-Identifier: Apache-2.0
// Simulated NVML: how cards reach one another and the processors. The server reports how many
// NVLinks lead from a card to each other card. As long as the card has enough of them these are
// wires, each to one neighbour; otherwise they go through a switch, which reaches every card at
// full width.
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "simgpu/nvml_world.h"

using namespace simgpu;
using namespace simgpu::nvml;

namespace {

// The links of a card: four H200 with 18 links to each other card have 18 each, to a switch.
struct Links {
  unsigned count;   // that the card has, active or not
  unsigned active;  // the first `active` of them
  bool at_switch;
};

Links links_of(const CardCall& call) {
  unsigned most = 0, sum = 0;
  for (unsigned i = 0; i < call.reading().card_count; ++i) {
    if (i == call.index()) continue;
    const unsigned to = call.card().nvlinks[i];
    most = to > most ? to : most;
    sum += to;
  }
  const unsigned built = call.model().nvlinks;
  const bool at_switch = most > 0 && (most >= built || sum > built);
  const unsigned active = at_switch ? most : sum;
  return {built > active ? built : active, active, at_switch};
}

// The card at the other end of a wire. Wires are numbered by neighbour: first those to card 0.
unsigned neighbour_at(const CardCall& call, unsigned link) {
  unsigned first = 0;
  for (unsigned i = 0; i < call.reading().card_count; ++i) {
    if (i == call.index()) continue;
    first += call.card().nvlinks[i];
    if (link < first) return i;
  }
  return call.index();
}

nvmlReturn_t check_link(const CardCall& call, unsigned link) {
  if (call.error() != NVML_SUCCESS) return call.error();
  if (link >= NVML_NVLINK_MAX_LINKS) return NVML_ERROR_INVALID_ARGUMENT;
  const unsigned count = links_of(call).count;
  if (count == 0) return NVML_ERROR_NOT_SUPPORTED;
  return link < count ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlGpuTopologyLevel_t level_between(const CardInfo& a, const CardInfo& b) {
  return a.numa == b.numa ? NVML_TOPOLOGY_NODE : NVML_TOPOLOGY_SYSTEM;
}

nvmlReturn_t remote_pci(nvmlDevice_t device, unsigned link, nvmlPciInfo_t* out, size_t size) {
  const CardCall call(device);
  const nvmlReturn_t error = check_link(call, link);
  if (error != NVML_SUCCESS) return error;
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const Links links = links_of(call);
  if (link >= links.active) return NVML_ERROR_NOT_SUPPORTED;
  nvmlPciInfo_t info;
  if (links.at_switch) {
    memset(&info, 0, sizeof(info));
    info.bus = 0xc0 + link % 4;
    info.pciDeviceId = 0x22a310de;
    snprintf(info.busIdLegacy, sizeof(info.busIdLegacy), "0000:%02X:00.0", info.bus);
    snprintf(info.busId, sizeof(info.busId), "00000000:%02X:00.0", info.bus);
  } else {
    fill_pci(call.reading().cards[neighbour_at(call, link)], &info);
  }
  memcpy(out, &info, size);
  return NVML_SUCCESS;
}

nvmlReturn_t all_cpus(nvmlDevice_t device, unsigned words, unsigned long* set) {
  const CardCall call(device);
  if (call.error() != NVML_SUCCESS) return call.error();
  if (set == nullptr || words == 0) return NVML_ERROR_INVALID_ARGUMENT;
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  memset(set, 0, words * sizeof(*set));
  for (unsigned cpu = 0; cpu < static_cast<unsigned>(online > 0 ? online : 1) && cpu / 64 < words;
       ++cpu)
    set[cpu / 64] |= 1UL << cpu % 64;
  return NVML_SUCCESS;
}

}  // namespace

METE_NVML nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t device, nvmlDevice_t device2,
                                              nvmlGpuTopologyLevel_t* out) {
  CardCall call(device);
  unsigned second = 0;
  if (call.error() != NVML_SUCCESS || !call.other(device2, &second)) return call.error();
  if (call.index() == second) return put(out, NVML_TOPOLOGY_INTERNAL);
  return put(out, level_between(call.card(), call.reading().cards[second]));
}

METE_NVML nvmlDeviceGetP2PStatus(nvmlDevice_t device, nvmlDevice_t device2,
                                 nvmlGpuP2PCapsIndex_t capability, nvmlGpuP2PStatus_t* out) {
  CardCall call(device);
  unsigned second = 0;
  if (call.error() != NVML_SUCCESS || !call.other(device2, &second)) return call.error();
  if (call.index() == second) return NVML_ERROR_INVALID_ARGUMENT;
  const CardInfo& other = call.reading().cards[second];
  const bool link = call.card().nvlinks[second] > 0;
  const bool pcie = call.model().datacenter && model_of(other.name).datacenter;
  switch (capability) {
    case NVML_P2P_CAPS_INDEX_READ:
    case NVML_P2P_CAPS_INDEX_WRITE:
      return put(out, link || pcie ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED);
    case NVML_P2P_CAPS_INDEX_NVLINK:
    case NVML_P2P_CAPS_INDEX_ATOMICS:
      return put(out, link ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED);
    case NVML_P2P_CAPS_INDEX_PCI:
      return put(out, pcie ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED);
    default:
      return NVML_ERROR_INVALID_ARGUMENT;
  }
}

METE_NVML nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link,
                                   nvmlEnableState_t* active) {
  const CardCall call(device);
  const nvmlReturn_t error = check_link(call, link);
  if (error != NVML_SUCCESS) return error;
  return put(active, link < links_of(call).active ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED);
}

METE_NVML nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link,
                                              nvmlIntNvLinkDeviceType_t* type) {
  const CardCall call(device);
  const nvmlReturn_t error = check_link(call, link);
  if (error != NVML_SUCCESS) return error;
  const Links links = links_of(call);
  if (link >= links.active) return NVML_ERROR_NOT_SUPPORTED;
  return put(type, links.at_switch ? NVML_NVLINK_DEVICE_TYPE_SWITCH : NVML_NVLINK_DEVICE_TYPE_GPU);
}

METE_NVML nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device, unsigned int link,
                                           nvmlPciInfo_t* out) {
  return remote_pci(device, link, out, offsetof(nvmlPciInfo_t, pciSubSystemId));
}
METE_NVML nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link,
                                              nvmlPciInfo_t* out) {
  return remote_pci(device, link, out, sizeof(*out));
}

METE_NVML nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int words, unsigned long* set) {
  return all_cpus(device, words, set);
}

METE_NVML nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int words, unsigned long* set,
                                      nvmlAffinityScope_t scope) {
  const CardCall call(device);
  if (call.error() != NVML_SUCCESS) return call.error();
  if (set == nullptr || scope > NVML_AFFINITY_SCOPE_SOCKET) return NVML_ERROR_INVALID_ARGUMENT;
  if (call.card().numa < 0) return NVML_ERROR_NOT_SUPPORTED;
  const unsigned node = static_cast<unsigned>(call.card().numa);
  if (words <= node / 64) return NVML_ERROR_INVALID_ARGUMENT;
  memset(set, 0, words * sizeof(*set));
  set[node / 64] = 1UL << node % 64;
  return NVML_SUCCESS;
}
