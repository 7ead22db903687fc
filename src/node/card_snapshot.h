// SPDX-License-Identifier: Apache-2.0
// The result of one look at the machine: the cards, and the processes on them. Values only; taken
// by the helper process (card_helper.h), because both the driver and /proc can block.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "seam/clock.h"
#include "seam/driver.h"

namespace mete::node {

// The meter of a process on a card, from its grant file.
struct MeterFacts {
  enum class State {
    kUnknown,  // could not be read
    kNone,     // the process has none
    kSlot,
  };
  struct Charge {
    std::string uuid;
    Bytes bytes;      // what the driver should count for it, with memory of other processes that it
                      // has open
    Bytes peak = {};  // the most that all processes of its job ever held of the card
    bool operator==(const Charge&) const = default;
  };
  State state = State::kUnknown;
  std::vector<Charge> charges;
  bool operator==(const MeterFacts&) const = default;
};

// A process on a card, or an ancestor of one. A process that is not in the list had ended when it
// was looked up.
struct ProcessFacts {
  pid_t pid = 0;
  // False: it lives, and /proc hides it from us (hidepid). Then only the pid is known.
  bool visible = true;
  std::uint64_t start_ticks = 0;
  pid_t parent = 0;
  std::optional<std::uint32_t> uid;  // real
  std::string user;                  // "alice"; "uid 1000" for a user without a name
  std::string comm;                  // "python"
  // The first process of its pid namespace, if that is not ours; 0: ours, or not visible.
  pid_t namespace_init = 0;
  // METE_JOB_ID and METE_JOB_TOKEN of its environment, "" if unset; read only for processes on a
  // card.
  std::string job;
  std::string token;
  bool exiting = false;   // its memory is about to be freed
  MeterFacts meter = {};  // read only for processes on a card
  bool operator==(const ProcessFacts&) const = default;
};

struct CardSnapshot {
  seam::Nanoseconds at{};  // when the reading began
  seam::DriverIdentity driver;
  std::vector<seam::CardReading> cards;
  std::vector<ProcessFacts> processes;  // by pid
  bool operator==(const CardSnapshot&) const = default;
};

}  // namespace mete::node
