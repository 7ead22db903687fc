// SPDX-License-Identifier: Apache-2.0
// The daemon itself. Routes: /v1/version, /v1/daemon, /v1/daemon/stop.
#pragma once

#include <functional>

#include "serve/call.h"
#include "serve/host.h"
#include "serve/machine_reading.h"
#include "wire/cards.h"

namespace mete::serve {

class DaemonStatus {
 public:
  DaemonStatus(const Host& host, const MachineReading& machine)
      : clock_(host.clock),
        engine_(host.engine),
        identity_(host.identity),
        machine_(machine),
        started_(clock_.monotonic()) {}

  wire::DaemonView view() const;
  seam::Nanoseconds uptime() const { return clock_.monotonic() - started_; }

  void get_version(Call& call);
  void get(Call& call);
  void stop(Call& call);

  std::function<void()> on_stop = [] {};

 private:
  seam::Clock& clock_;
  engine::Engine& engine_;
  const Identity& identity_;
  const MachineReading& machine_;
  seam::Nanoseconds started_;
};

}  // namespace mete::serve
