// SPDX-License-Identifier: Apache-2.0
// See nvml_driver.h. The identity of a card, its NUMA node and its links are read once and kept in
// known_; a reading then asks for memory, processes and sensors of each card. Newer functions are
// tried first, and an older one if the driver lacks it. A card that the driver calls lost is
// reported as lost with its identity only, and does not fail the reading of the others.
#include "node/nvml_driver.h"

#include <array>
#include <bit>
#include <map>

#include "base/file.h"
#include "base/text.h"
#include "node/nvml_processes.h"
#include "node/nvml_text.h"

namespace mete::node {
namespace {

using seam::CardLink;
using seam::CardReading;
using seam::CardState;
using seam::ComputeMode;

// "00000000:17:00.0" as sysfs writes it: "0000:17:00.0", lower case.
std::optional<unsigned> numa_from_sysfs(const std::string& pci) {
  if (pci.size() < 8) return std::nullopt;
  const std::string folder = "/sys/bus/pci/devices/" + base::to_lower(pci.substr(pci.size() - 12));
  Result<std::string> text = base::read_all(folder + "/numa_node", 64);
  if (!text) return std::nullopt;
  Result<std::uint64_t> node = base::parse_uint(base::trim(*text));  // "-1": none
  if (!node) return std::nullopt;
  return static_cast<unsigned>(*node);
}

// The one bit in a set of NUMA nodes; nullopt if there are several or none.
std::optional<unsigned> only_bit(const std::array<unsigned long, 16>& set) {
  std::optional<unsigned> found;
  for (std::size_t word = 0; word < set.size(); ++word) {
    if (set[word] == 0) continue;
    if (found || std::popcount(set[word]) != 1) return std::nullopt;
    found = static_cast<unsigned>(word * 64) + static_cast<unsigned>(std::countr_zero(set[word]));
  }
  return found;
}

std::optional<ComputeMode> compute_mode(nvmlComputeMode_t mode) {
  switch (mode) {
    case NVML_COMPUTEMODE_DEFAULT:
      return ComputeMode::kDefault;
    case NVML_COMPUTEMODE_EXCLUSIVE_THREAD:
    case NVML_COMPUTEMODE_EXCLUSIVE_PROCESS:
      return ComputeMode::kExclusiveProcess;
    case NVML_COMPUTEMODE_PROHIBITED:
      return ComputeMode::kProhibited;
    default:
      return std::nullopt;
  }
}

}  // namespace

Result<std::unique_ptr<NvmlDriver>> NvmlDriver::open(const std::string& path, seam::Clock& clock) {
  Result<std::unique_ptr<NvmlLibrary>> library = NvmlLibrary::open(path);
  if (!library) return std::move(library).error();
  const NvmlLibrary& nvml = **library;
  nvmlReturn_t result = try_nvml(nvml.nvmlInit_v2);
  if (is_missing(result)) result = try_nvml(nvml.nvmlInit);
  if (result != NVML_SUCCESS) return nvml_error("nvmlInit", result);
  return std::unique_ptr<NvmlDriver>(new NvmlDriver(std::move(*library), clock));
}

NvmlDriver::NvmlDriver(std::unique_ptr<NvmlLibrary> library, seam::Clock& clock)
    : nvml_(std::move(library)), clock_(clock) {}

NvmlDriver::~NvmlDriver() { (void)try_nvml(nvml_->nvmlShutdown); }

Result<seam::DriverIdentity> NvmlDriver::identity() {
  std::array<char, NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE> version{};
  const nvmlReturn_t result = try_nvml(nvml_->nvmlSystemGetDriverVersion, version.data(),
                                       static_cast<unsigned>(version.size()));
  if (result != NVML_SUCCESS) return nvml_error("nvmlSystemGetDriverVersion", result);
  seam::DriverIdentity identity{version.data(), std::nullopt};
  int cuda = 0;
  if (try_nvml(nvml_->nvmlSystemGetCudaDriverVersion_v2, &cuda) == NVML_SUCCESS ||
      try_nvml(nvml_->nvmlSystemGetCudaDriverVersion, &cuda) == NVML_SUCCESS)
    identity.cuda_version = cuda;
  return identity;
}

Result<std::vector<CardReading>> NvmlDriver::read_all(seam::Milliseconds limit) {
  const seam::Nanoseconds deadline = clock_.monotonic() + limit;
  unsigned count = 0;
  nvmlReturn_t result = try_nvml(nvml_->nvmlDeviceGetCount_v2, &count);
  if (is_missing(result)) result = try_nvml(nvml_->nvmlDeviceGetCount, &count);
  if (result != NVML_SUCCESS) return nvml_error("nvmlDeviceGetCount", result);
  if (known_.size() != count) {
    known_.assign(count, Known{});
    links_known_ = false;
  }
  std::vector<CardReading> cards;
  for (unsigned index = 0; index < count; ++index) {
    if (clock_.monotonic() > deadline) return Error::busy("the driver takes longer than allowed");
    Known& known = known_[index];
    if (!known.read) {
      result = learn(index, known);
      if (is_lost(result)) {
        known.card.index = index;
        known.card.state = CardState::kLost;
        cards.push_back(known.card);
        continue;
      }
      if (result != NVML_SUCCESS) return nvml_error("nvmlDeviceGetHandleByIndex", result);
    }
    Result<CardReading> card = read_card(known);
    if (!card) return std::move(card).error();
    cards.push_back(std::move(*card));
  }
  if (!links_known_) {
    learn_links();
    for (CardReading& card : cards) card.links = known_[card.index].card.links;
  }
  return cards;
}

nvmlReturn_t NvmlDriver::learn(unsigned index, Known& known) const {
  nvmlReturn_t result = try_nvml(nvml_->nvmlDeviceGetHandleByIndex_v2, index, &known.device);
  if (is_missing(result))
    result = try_nvml(nvml_->nvmlDeviceGetHandleByIndex, index, &known.device);
  if (result != NVML_SUCCESS) return result;
  CardReading& card = known.card;
  card = CardReading{};
  card.index = index;
  std::array<char, NVML_DEVICE_NAME_V2_BUFFER_SIZE> text{};
  const unsigned room = static_cast<unsigned>(text.size());
  result = try_nvml(nvml_->nvmlDeviceGetUUID, known.device, text.data(), room);
  if (result != NVML_SUCCESS) return result;  // the UUID identifies a card
  card.uuid = text.data();
  text.fill('\0');
  if (try_nvml(nvml_->nvmlDeviceGetName, known.device, text.data(), room) == NVML_SUCCESS) {
    card.name = text.data();
    card.type = card_type(card.name);
  }
  nvmlPciInfo_t pci{};
  if (try_nvml(nvml_->nvmlDeviceGetPciInfo_v3, known.device, &pci) == NVML_SUCCESS)
    card.pci = pci.busId;
  else if (try_nvml(nvml_->nvmlDeviceGetPciInfo_v2, known.device, &pci) == NVML_SUCCESS)
    card.pci = std::string("0000") + pci.busIdLegacy;
  std::array<unsigned long, 16> nodes{};
  if (try_nvml(nvml_->nvmlDeviceGetMemoryAffinity, known.device,
               static_cast<unsigned>(nodes.size()), nodes.data(),
               nvmlAffinityScope_t{NVML_AFFINITY_SCOPE_NODE}) == NVML_SUCCESS)
    card.numa = only_bit(nodes);
  if (!card.numa) card.numa = numa_from_sysfs(card.pci);
  known.read = true;
  return NVML_SUCCESS;
}

void NvmlDriver::learn_links() {
  for (unsigned index = 0; index < known_.size(); ++index)
    if (known_[index].read) known_[index].card.links = links_of(index);
  links_known_ = true;
}

// A link ends at another card, or at a switch. Through a switch every card is reached with all the
// links that go there, if the driver reports that the pair can use NVLink at all.
std::vector<CardLink> NvmlDriver::links_of(unsigned index) const {
  const nvmlDevice_t device = known_[index].device;
  std::map<unsigned, unsigned> count_to;
  unsigned to_switch = 0;
  for (unsigned link = 0; link < NVML_NVLINK_MAX_LINKS; ++link) {
    nvmlEnableState_t active = NVML_FEATURE_DISABLED;
    if (try_nvml(nvml_->nvmlDeviceGetNvLinkState, device, link, &active) != NVML_SUCCESS) continue;
    if (active != NVML_FEATURE_ENABLED) continue;
    nvmlPciInfo_t pci{};
    nvmlIntNvLinkDeviceType_t type = NVML_NVLINK_DEVICE_TYPE_UNKNOWN;
    (void)try_nvml(nvml_->nvmlDeviceGetNvLinkRemoteDeviceType, device, link, &type);
    std::optional<unsigned> neighbour;
    if (type != NVML_NVLINK_DEVICE_TYPE_SWITCH &&
        try_nvml(nvml_->nvmlDeviceGetNvLinkRemotePciInfo_v2, device, link, &pci) == NVML_SUCCESS)
      for (unsigned other = 0; other < known_.size(); ++other)
        if (known_[other].read &&
            base::to_lower(known_[other].card.pci) == base::to_lower(pci.busId))
          neighbour = other;
    if (neighbour)
      ++count_to[*neighbour];
    else if (type != NVML_NVLINK_DEVICE_TYPE_IBMNPU)
      ++to_switch;
  }
  for (unsigned other = 0; to_switch > 0 && other < known_.size(); ++other) {
    if (other == index || !known_[other].read) continue;
    nvmlGpuP2PStatus_t status = NVML_P2P_STATUS_UNKNOWN;
    const nvmlReturn_t result = try_nvml(nvml_->nvmlDeviceGetP2PStatus, device,
                                         known_[other].device, NVML_P2P_CAPS_INDEX_NVLINK, &status);
    if (result == NVML_SUCCESS && status == NVML_P2P_STATUS_OK) count_to[other] += to_switch;
  }
  std::vector<CardLink> links;
  links.reserve(count_to.size());
  for (const auto& [to, count] : count_to) links.push_back({to, count});
  return links;
}

nvmlReturn_t NvmlDriver::read_memory(nvmlDevice_t device, CardReading& card) const {
  nvmlMemory_v2_t memory{};
  memory.version = nvmlMemory_v2;
  nvmlReturn_t result = try_nvml(nvml_->nvmlDeviceGetMemoryInfo_v2, device, &memory);
  if (result == NVML_SUCCESS) {
    card.total = Bytes::from_bytes(memory.total);
    card.reserved = Bytes::from_bytes(memory.reserved);
    card.free = Bytes::from_bytes(memory.free);
    card.used = Bytes::from_bytes(memory.used);
    return result;
  }
  if (!is_missing(result)) return result;
  nvmlMemory_t old{};
  result = try_nvml(nvml_->nvmlDeviceGetMemoryInfo, device, &old);
  if (result != NVML_SUCCESS) return result;
  card.total = Bytes::from_bytes(old.total);
  card.free = Bytes::from_bytes(old.free);
  card.used = Bytes::from_bytes(old.used);
  return result;
}

void NvmlDriver::read_sensors(nvmlDevice_t device, CardReading& card) const {
  nvmlUtilization_t load{};
  if (try_nvml(nvml_->nvmlDeviceGetUtilizationRates, device, &load) == NVML_SUCCESS) {
    card.utilisation_pct = load.gpu;
    card.memory_utilisation_pct = load.memory;
  }
  nvmlTemperature_t heat{};
  heat.version = nvmlTemperature_v1;
  heat.sensorType = NVML_TEMPERATURE_GPU;
  unsigned value = 0;
  if (try_nvml(nvml_->nvmlDeviceGetTemperatureV, device, &heat) == NVML_SUCCESS)
    card.temperature_c = heat.temperature;
  else if (try_nvml(nvml_->nvmlDeviceGetTemperature, device, NVML_TEMPERATURE_GPU, &value) ==
           NVML_SUCCESS)
    card.temperature_c = static_cast<int>(value);
  if (try_nvml(nvml_->nvmlDeviceGetPowerUsage, device, &value) == NVML_SUCCESS)
    card.power_mw = value;
  if (try_nvml(nvml_->nvmlDeviceGetEnforcedPowerLimit, device, &value) == NVML_SUCCESS)
    card.power_limit_mw = value;
  nvmlComputeMode_t mode = NVML_COMPUTEMODE_DEFAULT;
  if (try_nvml(nvml_->nvmlDeviceGetComputeMode, device, &mode) == NVML_SUCCESS)
    card.compute_mode = compute_mode(mode);
  unsigned current = 0, pending = 0;
  if (try_nvml(nvml_->nvmlDeviceGetMigMode, device, &current, &pending) == NVML_SUCCESS)
    card.mig = current == NVML_DEVICE_MIG_ENABLE;
}

// A lost card keeps its name and nothing else: old figures are worse than none.
Result<CardReading> NvmlDriver::read_card(Known& known) const {
  CardReading card = known.card;
  const nvmlReturn_t result = read_memory(known.device, card);
  if (result == NVML_SUCCESS) {
    Result<std::optional<std::vector<seam::ProcessReading>>> processes =
        read_processes(*nvml_, known.device);
    if (processes) {
      card.processes = std::move(*processes);
      read_sensors(known.device, card);
      if (const auto busy = read_busy(*nvml_, known.device, &known.busy_seen_us))
        add_utilisation(*busy, card);
      return card;
    }
    if (processes.error().code == ErrorCode::kBusy) return std::move(processes).error();
  } else if (is_missing(result)) {
    read_sensors(known.device, card);
    return card;
  } else if (!is_lost(result)) {
    return nvml_error("nvmlDeviceGetMemoryInfo", result);
  }
  card = known.card;
  card.state = CardState::kLost;
  return card;
}

}  // namespace mete::node
