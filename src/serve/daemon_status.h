// SPDX-License-Identifier: Apache-2.0
// The daemon itself. Routes: /v1/version, /v1/daemon, /v1/daemon/stop,
// /v1/daemon/reload, /v1/daemon/backup.
#pragma once

#include <functional>

#include "serve/call.h"
#include "serve/host.h"
#include "serve/machine_reading.h"
#include "wire/cards.h"

namespace mete::serve {

using OnBackup = std::function<void(const std::string& path,
                                    std::function<void(const Result<wire::BackupView>&)> done)>;

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
  void reload(Call& call);
  void backup(Call& call);

  std::function<void()> on_stop = [] {};
  std::function<Result<wire::ReloadView>()> on_reload = [] { return wire::ReloadView(); };
  OnBackup on_backup;

 private:
  // Root and the daemon's own user: the others are answered.
  bool is_for(Call& call, const char* denied) const;

  seam::Clock& clock_;
  engine::Engine& engine_;
  const Identity& identity_;
  const MachineReading& machine_;
  seam::Nanoseconds started_;
};

}  // namespace mete::serve
