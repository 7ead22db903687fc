// SPDX-License-Identifier: Apache-2.0
// The cards of a machine as documents have them: {"schema":"mete.cards/1",...}, see
// docs/formats/cards.schema.json. An unknown figure is absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"

namespace mete::wire {

struct CardView {
  std::uint32_t index = 0;
  std::string uuid;
  std::string name;
  std::string type;
  std::string state = "ok";  // ok, drained, lost
  std::string unusable;      // why nothing can be granted here; "": usable
  std::optional<Bytes> total;
  std::optional<Bytes> capacity;
  Bytes granted;
  std::optional<Bytes> used;
  std::optional<Bytes> foreign;
  Bytes over;  // held by jobs beyond their grants; not part of `granted` or `foreign`
  Bytes grantable;
  std::optional<unsigned> utilisation_pct;
  std::optional<int> temperature_c;
  std::optional<double> power_w;
  std::optional<double> power_limit_w;
  std::optional<double> reading_age_s;
  std::optional<unsigned> numa;
  struct Link {
    std::uint32_t to = 0;
    std::uint32_t count = 0;
  };
  std::vector<Link> links;
  struct JobShare {
    std::string id;
    std::string user;
    Bytes bytes;
    bool whole = false;
    std::optional<Bytes> used;
    Bytes outside = {};     // outside its meter, as last reported for its processes
    std::string name = {};  // "": the reader may not see this job
    std::optional<WallTime> idle_since = {};
    Bytes over = {};  // beyond `bytes`
  };
  std::vector<JobShare> jobs;
  struct Foreign {
    std::optional<std::int32_t> pid;  // absent: another daemon's claim
    std::string user;
    std::optional<Bytes> used;
    std::string name = {};  // of the program: "python"; "": unknown
    std::optional<unsigned> utilisation_pct = {};
  };
  std::vector<Foreign> foreign_list;
};

// `trouble` says why the readings are missing or old: "the driver does not answer".
struct CardsDocument {
  WallTime at;
  std::string trouble;
  std::vector<CardView> cards;
};
std::string encode(const CardsDocument& document);
Result<CardsDocument> decode_cards(std::string_view json);

// {"schema":"mete.daemon/1",...}
struct DaemonView {
  std::string version;
  std::int32_t pid = 0;
  std::string mode;  // "user", "system"
  std::string socket;
  std::string state_dir;
  std::uint64_t uptime_s = 0;
  std::uint64_t pending = 0;
  std::uint64_t running = 0;
  std::string policy;
  std::string trouble;
  bool disk_full = false;
  std::optional<std::uint64_t> idle_end_s;  // ends by itself after being idle for this long
  std::string metrics = {};                 // address of the metrics beside the socket; "": none
  std::string metrics_trouble = {};         // why there is none, though it is configured
  std::string escapes = "warn";             // policy for memory outside meters: "warn" or "stop"
  // Notifications since the daemon started.
  struct Notify {
    std::uint64_t waiting = 0;
    std::uint64_t sent = 0;
    std::uint64_t failed = 0;   // given up after several attempts
    std::uint64_t dropped = 0;  // there were too many
    bool operator==(const Notify&) const = default;
  };
  Notify notify = {};
  std::string simulated = {};       // METE_SIM; "": real cards
  std::string config_trouble = {};  // why the last reload changed nothing; "": it did, or none was
  std::vector<std::string> needs_restart = {};  // keys of which only a new daemon takes the value
};
std::string encode(const DaemonView& view, WallTime at);
Result<DaemonView> decode_daemon(std::string_view json);

// What a reload of the configuration has done.
struct ReloadView {
  // Values as a configuration file has them; "": not set.
  struct Change {
    std::string key;  // "queue.grace_s"
    std::string old_value;
    std::string new_value;
    std::string origin;  // of the new value: "/etc/mete/config.toml:3", "default"
    bool operator==(const Change&) const = default;
  };
  std::vector<std::string> files;  // that were read
  std::vector<Change> applied;
  std::vector<Change> restart;  // the daemon keeps the old value until it is started again
};
std::string encode(const ReloadView& view, WallTime at);
Result<ReloadView> decode_reload(std::string_view json);

// Where a copy of the state is to be made: an absolute path.
struct BackupRequest {
  std::string path;
};
std::string encode(const BackupRequest& request);
Result<BackupRequest> decode_backup_request(std::string_view json);

// A copy of the state that was made.
struct BackupView {
  std::string path;
  std::uint64_t bytes = 0;
  std::uint64_t last_seq = 0;  // the last event in it
};
std::string encode(const BackupView& view, WallTime at);
Result<BackupView> decode_backup(std::string_view json);
std::string text_of(const BackupView& view);

}  // namespace mete::wire
