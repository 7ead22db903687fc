// SPDX-License-Identifier: Apache-2.0
// The simulated machine: which cards it has and what they report. Built from METE_SIM's text
// ("4xH200") or from a small file; a text that cannot be understood gives a message, never a guess.
#pragma once

#include <string>
#include <vector>

#include "simgpu/protocol.h"

namespace simgpu {

struct Card {
  CardInfo info{};
  uint64_t used = 0;
  uint32_t idle_mw = 0;
  // Set by `--ctl set-card`; below zero: computed from the load.
  int temperature_set = -1;
  int utilisation_set = -1;
  // How long the card worked, in this second and in the one before.
  uint64_t window_ms = 0;
  uint64_t busy_us = 0;
  uint64_t busy_before_us = 0;

  uint64_t capacity() const { return info.total - info.reserved; }
};

struct Machine {
  std::string text;  // what it was built from
  std::vector<Card> cards;
};

// Builds the machine that `text` names; on failure returns false and a one-line `why`.
bool build_machine(const std::string& text, Machine* machine, std::string* why);

// Sizes as "80G", "143771M", "512MiB", "8GB", "1024": bytes. False when it is not a size.
bool parse_size(const std::string& text, uint64_t* bytes);

}  // namespace simgpu
