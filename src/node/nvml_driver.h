// SPDX-License-Identifier: Apache-2.0
// The cards of this machine through NVML: seam::Driver for real GPUs and, since simgpu has the same
// interface, for simulated ones. Works with old drivers: a reading that the driver does not offer
// is nullopt. A wedged driver can block any call for ever, so this belongs into a helper process. A
// lost card may stay lost after a reset until NVML is opened anew, with a new NvmlDriver. Not
// thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "node/nvml_library.h"
#include "seam/clock.h"
#include "seam/driver.h"

namespace mete::node {

class NvmlDriver final : public seam::Driver {
 public:
  // Opens and initialises. not_found: no driver here.
  static Result<std::unique_ptr<NvmlDriver>> open(const std::string& path = "libnvidia-ml.so.1",
                                                  seam::Clock& clock = seam::system_clock());
  ~NvmlDriver() override;

  Result<seam::DriverIdentity> identity() override;
  Result<std::vector<seam::CardReading>> read_all(seam::Milliseconds limit) override;

 private:
  // What does not change while the driver is loaded; read once per card.
  struct Known {
    bool read = false;
    nvmlDevice_t device = nullptr;
    seam::CardReading card;               // identity, NUMA and links only
    unsigned long long busy_seen_us = 0;  // the newest sample of process utilisation
  };

  NvmlDriver(std::unique_ptr<NvmlLibrary> library, seam::Clock& clock);
  nvmlReturn_t learn(unsigned index, Known& known) const;
  void learn_links();
  std::vector<seam::CardLink> links_of(unsigned index) const;
  nvmlReturn_t read_memory(nvmlDevice_t device, seam::CardReading& card) const;
  void read_sensors(nvmlDevice_t device, seam::CardReading& card) const;
  Result<seam::CardReading> read_card(Known& known) const;

  std::unique_ptr<NvmlLibrary> nvml_;
  seam::Clock& clock_;
  std::vector<Known> known_;
  bool links_known_ = false;
};

}  // namespace mete::node
