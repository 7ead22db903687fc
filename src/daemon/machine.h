// SPDX-License-Identifier: Apache-2.0
// The daemon's model of the machine, made from a snapshot: pure, values in and out.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "node/attribution.h"
#include "node/card_snapshot.h"
#include "node/claims.h"
#include "node/idle.h"
#include "serve/machine_reading.h"

namespace mete::daemon {

struct MachineInputs {
  const node::CardSnapshot* snapshot = nullptr;  // nullptr: none yet, or no driver
  std::string trouble;                           // why there is no newer snapshot
  std::optional<Error> unread;                   // why there is no snapshot at all
  // Capacities from earlier readings: a lost card reports nothing, and may come back.
  std::map<std::string, Bytes> capacities;
  bool stale = false;                     // the snapshot is too old to grant by
  std::vector<node::JobHold> jobs;        // our jobs, including those that just ended
  std::vector<node::OtherClaim> claims;   // of other daemons
  std::map<std::string, Bytes> contexts;  // cost of a context, by UUID
  bool parking = false;                   // movers are possible
  std::map<std::string, pid_t> movers;    // running movers, by UUID
  Bytes arena;                            // host memory for the parked bytes of one card
  Bytes reserve;                          // kept free on each card
  // Whether the configuration allows grants on this card.
  std::function<bool(const seam::CardReading&)> granted_here = [](const seam::CardReading&) {
    return true;
  };
};

struct MachineSeen {
  serve::MachineReading machine;
  std::map<pid_t, core::JobId> owners;      // for the next look
  std::map<std::string, Bytes> capacities;  // for the next look
  // Utilisation of the jobs' processes. An empty list: the job certainly has no process on its
  // cards.
  node::JobLoads loads;
};

MachineSeen look_at(const MachineInputs& inputs, const std::map<pid_t, core::JobId>& owners_before);

}  // namespace mete::daemon
