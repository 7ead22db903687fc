// SPDX-License-Identifier: Apache-2.0
// What the daemon provides to every part of the service, and permissions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "net/http.h"
#include "net/loop.h"
#include "serve/park_room.h"
#include "wire/cards.h"
#include "wire/job.h"

namespace mete::serve {

inline constexpr int kApiVersion = 1;

// Facts about the daemon from outside the service.
struct Around {
  std::string socket;  // where the daemon listens now
  std::size_t connections = 0;
  std::uint64_t helper_restarts = 0;
  std::string metrics;                     // where they are served beside the socket; "": nowhere
  std::string metrics_trouble;             // why not, although it is configured
  std::string config_trouble;              // why the last reload changed nothing
  std::vector<std::string> needs_restart;  // keys whose new value only a new daemon takes
};

struct Identity {
  std::string version;
  std::string grant_abi;  // "1.0"
  int store = 0;          // version of its schema
  std::string mode;       // "user", "system"
  std::string state_dir;
  std::uint32_t uid = 0;
  std::optional<std::uint32_t> admin_gid;  // a group whose members have root's rights here
  std::optional<std::uint64_t> idle_end_s;
  std::string readings;      // path, for runners
  std::string simulated;     // METE_SIM
  bool preemptible = false;  // default for jobs
  bool escape_stop = false;  // [escape] policy = "stop"
  core::NotifySpec notify;   // default for jobs
  std::function<wire::DaemonView::Notify()> notify_counts;
  // How a parkable job finds its movers.
  std::function<wire::ParkDoor(const core::Job&)> park_door;
  // What can be kept of parked jobs; absent: nothing can be parked here.
  std::function<ParkRoom()> park_room;
  // The logs of a detached job: its output, and its errors ("": in the log of its output).
  std::function<std::pair<std::string, std::string>(const core::Job&)> logs_of;
  // Where the files of a user's jobs and sweeps are.
  std::function<std::string(std::uint32_t uid)> folder_of;
  std::function<Around()> around = [] { return Around(); };
  std::size_t metric_jobs = 0;                  // jobs that have series of their own
  core::Others others = core::Others::kTotals;  // what users are shown of other users' jobs
};

struct Host {
  net::Loop& loop;
  seam::Clock& clock;
  engine::Engine& engine;
  const Identity& identity;
};

// Root, the daemon's own user, and members of its administrators' group.
bool is_admin(const Identity& identity, const net::Peer& peer);
core::Caller caller_of(const Identity& identity, const net::Peer& peer);
// The user of a job and administrators see all of it, and may change it. Other users see what
// `identity.others` says.
bool may_see(const Identity& identity, const core::Job& job, const net::Peer& peer);
// Its row, at least.
bool may_see_row(const Identity& identity, const core::Job& job, const net::Peer& peer);

}  // namespace mete::serve
