// SPDX-License-Identifier: Apache-2.0
// All that one look at the machine says: the cards, and who the processes on them are. Values only;
// taken by the helper process (card_helper.h), because both the driver and /proc can block.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "seam/clock.h"
#include "seam/driver.h"

namespace mete::node {

// The meter of a process on a card, as its grant file tells.
struct MeterFacts {
  enum class State {
    kUnknown,  // it could not be looked at
    kNone,     // it has none
    kSlot,
  };
  struct Charge {
    std::string uuid;
    Bytes bytes;      // that the driver should count to it, with what it has open of others
    Bytes peak = {};  // the most that its job, with all its processes, ever held of the card
    bool operator==(const Charge&) const = default;
  };
  State state = State::kUnknown;
  std::vector<Charge> charges;
  bool operator==(const MeterFacts&) const = default;
};

// A process that is on a card, or an ancestor of one. A process that is not in the list had ended
// when it was looked for.
struct ProcessFacts {
  pid_t pid = 0;
  // False: it lives, and /proc hides it from us (hidepid). Then only the pid is known.
  bool visible = true;
  std::uint64_t start_ticks = 0;
  pid_t parent = 0;
  std::optional<std::uint32_t> uid;  // real
  std::string user;                  // "alice"; "uid 1000" for one without a name
  std::string comm;                  // "python"
  // The first process of its pid namespace, when that is not ours; 0: ours, or not to be seen.
  pid_t namespace_init = 0;
  // METE_JOB_ID and METE_JOB_TOKEN of its environment, "" without; looked for only on a card.
  std::string job;
  std::string token;
  bool exiting = false;   // what it holds is about to be given back
  MeterFacts meter = {};  // looked for only on a card
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
