// SPDX-License-Identifier: Apache-2.0
// Quotas, reservations and statistics of the queue. Routes: /v1/quotas, /v1/reservations and below,
// /v1/stats.
#pragma once

#include "serve/call.h"
#include "serve/dispatcher.h"
#include "serve/host.h"
#include "serve/machine_reading.h"
#include "wire/queue.h"

namespace mete::serve {

class QueueRules {
 public:
  QueueRules(const Host& host, Dispatcher& dispatcher, const MachineReading& machine)
      : clock_(host.clock),
        engine_(host.engine),
        identity_(host.identity),
        dispatcher_(dispatcher),
        machine_(machine) {}

  void get_quotas(Call& call);
  void set_quota(Call& call);
  void get_reservations(Call& call);
  void reserve(Call& call);
  void unreserve(Call& call);
  void get_stats(Call& call);

 private:
  wire::QuotaDocument quotas(const net::Peer& peer) const;
  wire::ReservationsDocument reservations() const;
  wire::StatsDocument stats() const;

  seam::Clock& clock_;
  engine::Engine& engine_;
  const Identity& identity_;
  Dispatcher& dispatcher_;
  const MachineReading& machine_;
};

}  // namespace mete::serve
