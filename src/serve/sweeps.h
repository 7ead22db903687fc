// SPDX-License-Identifier: Apache-2.0
// What users do with sweeps. Routes: /v1/sweeps and all below it. A sweep is named, and names are
// each user's own: administrators add ?user=NAME for another user's.
#pragma once

#include <optional>
#include <string>

#include "serve/call.h"
#include "serve/dispatcher.h"
#include "serve/host.h"
#include "serve/machine_reading.h"
#include "wire/sweep.h"

namespace mete::serve {

class Sweeps {
 public:
  Sweeps(const Host& host, Dispatcher& dispatcher, const MachineReading& machine)
      : clock_(host.clock),
        engine_(host.engine),
        identity_(host.identity),
        dispatcher_(dispatcher),
        machine_(machine) {}

  void list(Call& call);
  void post(Call& call);
  void get(Call& call);
  void extend(Call& call);
  template <core::ChangeSweep::Kind kind>
  void change(Call& call) {
    core::ChangeSweep change;
    change.kind = kind;
    ask_to_change(call, std::move(change));
  }

 private:
  // The sweep that the request names. not_found, denied.
  Result<const core::sweep::Sweep*> named(const Call& call) const;
  void ask_to_change(Call& call, core::ChangeSweep change);
  std::string rows(const core::sweep::Sweep* sweep) const;
  wire::SweepRow row_of(const core::sweep::Sweep& sweep, WallTime at) const;

  seam::Clock& clock_;
  engine::Engine& engine_;
  const Identity& identity_;
  Dispatcher& dispatcher_;
  const MachineReading& machine_;
};

}  // namespace mete::serve
