// SPDX-License-Identifier: Apache-2.0
// Snapshots, streams of snapshots, and metrics. A text is made on demand, once for all clients with
// equal rights, and again when there is a new reading. A slow client of a stream gets the newest
// snapshot next, and misses the ones before. Routes: /v1/snapshot, /metrics.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "net/http_server.h"
#include "net/loop.h"
#include "serve/call.h"
#include "serve/cards.h"
#include "serve/daemon_status.h"
#include "serve/dispatcher.h"
#include "serve/forecasts.h"
#include "serve/history.h"
#include "serve/host.h"
#include "serve/job_views.h"
#include "serve/metrics.h"
#include "wire/snapshot.h"

namespace mete::serve {

class Sight {
 public:
  Sight(const Host& host, Dispatcher& dispatcher, const Cards& cards, const DaemonStatus& status,
        Forecasts& forecasts, JobViews& views)
      : loop_(host.loop),
        clock_(host.clock),
        engine_(host.engine),
        identity_(host.identity),
        dispatcher_(dispatcher),
        cards_(cards),
        machine_(cards.machine()),
        status_(status),
        forecasts_(forecasts),
        views_(views) {}

  // There is a new reading: it goes into the history.
  void see();

  void get_snapshot(Call& call);
  void get_metrics(Call& call);

 private:
  // A client that gets snapshots periodically.
  struct Viewer {
    std::uint64_t number = 0;
    net::Peer peer;
    net::Responder responder;
    net::Timer timer;
    bool others = false;                           // with rows of other users' jobs
    std::optional<std::uint64_t> history;          // the version that it has
    std::optional<seam::Nanoseconds> stuck_since;  // it takes nothing
    bool queued = false;                           // to be shown the newest
  };
  // A finished text, and what it was made from.
  struct CachedText {
    std::uint64_t reading = 0;
    std::uint64_t version = 0;  // of the engine
    seam::Nanoseconds made{};
    std::shared_ptr<const std::string> text;
  };

  std::optional<unsigned> utilisation_of(core::JobId id) const;

  // What a client asks to be shown.
  struct Wish {
    bool others = false;
    bool history = false;
    auto operator<=>(const Wish&) const = default;
  };
  wire::Snapshot snapshot(const net::Peer& peer, const Wish& wish);
  void add_pending(const net::Peer& peer, bool others, wire::Snapshot& all);
  wire::Snapshot::Job snapshot_job(const core::Job& job);
  // Of another user's job: no process, no utilisation, no history.
  wire::Snapshot::Job snapshot_row(const core::Job& job);
  std::shared_ptr<const std::string> snapshot_text(const net::Peer& peer, const Wish& wish);
  std::list<Viewer>::iterator find(std::uint64_t number);
  void show_soon(std::uint64_t number);
  void show_to(std::uint64_t number);

  Figures daemon_figures() const;
  Figures::Job job_figures(const core::Job& job, WallTime now) const;
  Figures figures();
  std::shared_ptr<const std::string> metrics_text_now();

  net::Loop& loop_;
  seam::Clock& clock_;
  engine::Engine& engine_;
  const Identity& identity_;
  Dispatcher& dispatcher_;
  const Cards& cards_;
  const MachineReading& machine_;
  const DaemonStatus& status_;
  Forecasts& forecasts_;
  JobViews& views_;
  std::uint64_t reading_ = 0;  // grows with each reading
  History history_;
  std::list<Viewer> viewers_;
  std::uint64_t last_number_ = 0;
  // By the user who may see it (-1: administrators).
  std::map<std::pair<std::int64_t, Wish>, CachedText> snapshots_;
  CachedText metrics_;
};

}  // namespace mete::serve
