// SPDX-License-Identifier: Apache-2.0
// The cards of this machine, as everything above sees them: plain values, one reading at a time. A
// figure that the hardware does not offer is nullopt, never zero. Real: node's NvmlDriver, over a
// GPU or over simulated cards. Tests: a fake that returns given values.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "seam/clock.h"

namespace mete::seam {

enum class CardState {
  kOk,
  kLost,  // fell off the bus or needs a reset: known, but not to be used
};

enum class ComputeMode { kDefault, kExclusiveProcess, kProhibited };

// The connection of one card to another, apart from PCIe.
struct CardLink {
  unsigned to = 0;     // index of the other card
  unsigned count = 0;  // NVLinks between the two
  bool operator==(const CardLink&) const = default;
};

// One process on one card. A process with graphics and compute work on a card is one reading.
struct ProcessReading {
  pid_t pid = 0;              // in the pid namespace of the caller
  std::optional<Bytes> used;  // contexts and code included, managed memory not
  bool mps = false;           // a client of the MPS server
  // Its work on the card since the previous reading; 0 is certain. nullopt: the driver does not
  // report it, or the reading is inconclusive.
  std::optional<unsigned> utilisation_pct = {};
  bool operator==(const ProcessReading&) const = default;
};

struct CardReading {
  unsigned index = 0;  // the driver's own numbering: PCI order
  std::string uuid;    // "GPU-…"; empty only for a card that was lost before it was ever read
  std::string name;    // "NVIDIA H200"
  std::string type;    // "H200": what --gpu-type takes
  std::string pci;     // "00000000:17:00.0"
  CardState state = CardState::kOk;

  std::optional<Bytes> total;     // all of the card
  std::optional<Bytes> reserved;  // the driver's and firmware's own part of it
  std::optional<Bytes> free;
  std::optional<Bytes> used;  // by processes, `reserved` not included where that is known

  std::optional<unsigned> utilisation_pct;
  std::optional<unsigned> memory_utilisation_pct;
  std::optional<int> temperature_c;
  std::optional<unsigned> power_mw;
  std::optional<unsigned> power_limit_mw;
  std::optional<unsigned> numa;
  std::optional<ComputeMode> compute_mode;
  std::optional<bool> mig;  // split into MIG slices at the moment
  std::vector<CardLink> links;

  // nullopt: the driver does not list processes (which does not mean that there are none).
  std::optional<std::vector<ProcessReading>> processes;

  // What may be granted on an empty card: total less what the driver keeps.
  std::optional<Bytes> capacity() const;
  bool operator==(const CardReading&) const = default;
};

// Identifies the driver, so that a measurement under it is not used under another.
struct DriverIdentity {
  std::string version;              // "580.159.04"
  std::optional<int> cuda_version;  // 13000
  bool operator==(const DriverIdentity&) const = default;
};

struct Driver {
  virtual ~Driver() = default;
  virtual Result<DriverIdentity> identity() = 0;
  // All cards in index order, lost ones included. kBusy once `limit` has passed; a driver that
  // hangs inside a single call can still block, which is why it is called in a process of its own.
  virtual Result<std::vector<CardReading>> read_all(Milliseconds limit) = 0;
};

using UuidBytes = std::array<std::uint8_t, 16>;

// "GPU-8-4-4-4-12 hex digits" in either case; nullopt for anything else, MIG names too.
std::optional<UuidBytes> parse_uuid(std::string_view text);
std::string to_string(const UuidBytes& uuid);

}  // namespace mete::seam
