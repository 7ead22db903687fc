// SPDX-License-Identifier: Apache-2.0
// One reading of all cards, as accounting needs it: how much each card has free, and how much each
// process holds on each card. Called in a loop by the helper process that may block; values only.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "seam/clock.h"
#include "seam/driver.h"

namespace mete::node {

struct CardSample {
  std::string uuid;
  std::optional<seam::UuidBytes>
      uuid_bytes;  // as the grant file has it; nullopt if the text is not a GPU's
  bool lost = false;
  std::optional<Bytes> total;
  std::optional<Bytes> free;
  std::optional<Bytes> used;
  bool processes_known = false;  // false: a process that is not listed may still be there
};

struct ProcessSample {
  pid_t pid = 0;
  std::vector<std::optional<Bytes>>
      used;                   // by position in Sample::cards; nullopt: not there, or not reported
  std::vector<bool> present;  // by position in Sample::cards
};

struct Sample {
  seam::Nanoseconds at{};  // when the reading began: never newer than the figures
  std::vector<CardSample> cards;
  std::vector<ProcessSample> processes;  // by pid

  // nullptr: holds nothing, as far as is known.
  const ProcessSample* find(pid_t pid) const;
};

// Pure: the readings of one moment, by process.
Sample make_sample(const std::vector<seam::CardReading>& cards, seam::Nanoseconds at);

// Calls the driver once. Passes its errors on; keeps nothing from earlier calls.
Result<Sample> take_sample(seam::Driver& driver, seam::Clock& clock, seam::Milliseconds limit);

}  // namespace mete::node
