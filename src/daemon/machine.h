// SPDX-License-Identifier: Apache-2.0
// What the daemon believes of the machine, made of what its helper saw: pure, values in and out.
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
  std::string trouble;                           // why there is no newer one
  std::optional<Error> unread;                   // why there is none at all
  // What the cards had when they could be read: a lost one says nothing, and comes back.
  std::map<std::string, Bytes> capacities;
  bool stale = false;                     // the snapshot is too old to grant by
  std::vector<node::JobHold> jobs;        // of ours, those that just ended included
  std::vector<node::OtherClaim> claims;   // of other daemons
  std::map<std::string, Bytes> contexts;  // what a context costs, by UUID
  bool parking = false;                   // there can be movers
  std::map<std::string, pid_t> movers;    // those that there are, by UUID
  Bytes arena;                            // of host memory, for what is parked of one card
  Bytes reserve;                          // kept free on each card
  // Whether the configuration lets this card be granted.
  std::function<bool(const seam::CardReading&)> granted_here = [](const seam::CardReading&) {
    return true;
  };
};

struct MachineSeen {
  serve::MachineReading machine;
  std::map<pid_t, core::JobId> owners;      // for the next look
  std::map<std::string, Bytes> capacities;  // the same
  node::JobLoads loads;                     // what the processes of jobs do
};

MachineSeen look_at(const MachineInputs& inputs, const std::map<pid_t, core::JobId>& owners_before);

}  // namespace mete::daemon
