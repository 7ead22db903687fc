// SPDX-License-Identifier: Apache-2.0
// Whether what a job asks for could be parked here, and what would have to change for that. For
// jobs that ask to be parkable (--preemptible): they are told when they are submitted, not when
// another job waits for them. Pure.
#pragma once

#include <string>

#include "base/bytes.h"
#include "engine/engine.h"

namespace mete::serve {

struct ParkRoom {
  Bytes bytes;              // the most that is kept of one card: park.arena and park.spill_max
  Bytes host;               // memory of the machine
  std::string config_file;  // where it can be set
};

// "": it fits, or the machine says no more about it. Otherwise what does not fit, and the line for
// the configuration.
std::string park_note(const core::Request& request, const core::Pool& pool, const ParkRoom& room);

}  // namespace mete::serve
