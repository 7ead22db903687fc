// SPDX-License-Identifier: Apache-2.0
// What the daemon lends to every part of the service, and who may do what.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "engine/engine.h"
#include "net/http.h"
#include "net/loop.h"
#include "wire/cards.h"
#include "wire/job.h"

namespace mete::serve {

inline constexpr int kApiVersion = 1;

// What the daemon knows of itself that is not the service's.
struct Around {
  std::string socket;  // where it listens now
  std::size_t connections = 0;
  std::uint64_t helper_restarts = 0;
  std::string metrics;          // where they are served beside the socket; "": nowhere
  std::string metrics_trouble;  // why not, though the configuration says so
};

struct Identity {
  std::string version;
  std::string grant_abi;  // "1.0"
  int store = 0;          // version of its schema
  std::string mode;       // "user", "system"
  std::string state_dir;
  std::uint32_t uid = 0;
  std::optional<std::uint32_t> admin_gid;  // a group whose members may what root may
  std::optional<std::uint64_t> idle_end_s;
  std::string readings;      // path, for runners
  std::string simulated;     // METE_SIM
  bool preemptible = false;  // the default of jobs
  bool escape_stop = false;  // [escape] policy = "stop"
  core::NotifySpec notify;   // the default of jobs
  std::function<wire::DaemonView::Notify()> notify_counts;
  // How a job that can be parked finds its movers.
  std::function<wire::ParkDoor(const core::Job&)> park_door;
  // The logs of a detached job: its output, and its errors ("": in the log of its output).
  std::function<std::pair<std::string, std::string>(const core::Job&)> logs_of;
  std::function<Around()> around = [] { return Around(); };
  std::size_t metric_jobs = 0;  // jobs that have series of their own
};

struct Host {
  net::Loop& loop;
  seam::Clock& clock;
  engine::Engine& engine;
  const Identity& identity;
};

// Root, the daemon's own user, and the members of its group of administrators.
bool is_admin(const Identity& identity, const net::Peer& peer);
core::Caller caller_of(const Identity& identity, const net::Peer& peer);
// The user of a job and administrators; for other users there is no such job.
bool may_see(const Identity& identity, const core::Job& job, const net::Peer& peer);

}  // namespace mete::serve
